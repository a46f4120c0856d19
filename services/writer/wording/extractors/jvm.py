"""javac, kotlinc, Maven, Gradle, sbt."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_TEST, _COMPILE = "test assertion", "compile error"
_THROWN = r"^(?P<error>(?:[\w$]+\.)+[\w$]*(?:Error|Exception|Failure)\b.*)"
_FORMS = (
    form(
        "javac",
        r"^\[ERROR\] (?P<where>\S+\.(?:java|kt|scala|groovy)):\[\d+,\d+\] (?:error: )?(?P<error>.+)",
        kind=_COMPILE,
    ),
    form("javac", r"^(?:\[ERROR\] )?(?P<where>\S+\.java):\d+: error: (?P<error>.+)", kind=_COMPILE),
    form("scalac", r"^\[error\] (?P<where>\S+\.(?:scala|java)):\d+(?::\d+)?: (?P<error>.+)", kind=_COMPILE),
    form("kotlinc", r"^e: (?P<where>\S+?\.kt)\S* (?P<error>.+)", kind=_COMPILE),
    form(
        "Maven",
        r"^(?:\[ERROR\] )?(?P<what>\w+(?:\[[^\]]*\])?\([\w.$]+\)).*<<< (?:FAILURE|ERROR)!",
        kind=_TEST,
        words="{what} fails",
        below=_THROWN,
    ),
    form("Gradle", r"^(?P<what>[\w.$]+ > \S.*) FAILED$", kind=_TEST, words="{what} fails", below=_THROWN),
    form("sbt", r"^\[error\] \* (?P<error>.+)", words="a check fails"),
    form(
        "Maven",
        r"^\[ERROR\] Failed to execute goal (?P<what>[\w.:-]+).*?: (?P<error>.+)",
        words="goal {what} fails",
    ),
    form("Gradle", r"^\* What went wrong:$", words="the build fails", below=r"^(?P<error>\S.+)"),
    form("JVM", r"^Caused by: (?P<error>(?:[\w$]+\.)+[\w$]*(?:Error|Exception): .+)", kind="exception"),
)


def find_jvm(texts: Sequence[str]) -> Finding | None:
    return find_first(_FORMS, texts)

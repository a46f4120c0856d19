"""gcc, clang, MSVC, linkers, CMake and configure; tsc, which reports like MSVC."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_KIND, _SET_UP = "compile error", "build configuration"
_FORMS = (
    form(
        "tsc",
        r"^(?P<where>[^\s(:]+\.[cm]?tsx?)(?:\(\d+,\d+\)|:\d+:\d+)(?::| -) error (?P<error>TS\d+: .+)",
        kind=_KIND,
    ),
    form("MSVC", r"^(?P<where>[^\s(]+\.\w+)\(\d+(?:,\d+)?\) ?: (?:fatal )?error (?P<error>C\d+: .+)", kind=_KIND),
    form(
        "C compiler",
        r"^(?P<where>[^\s:]+\.(?:cc?|cpp|cxx|cu|mm?|hh?|hpp|hxx|S)):\d+(?::\d+)?: (?:fatal )?error: (?P<error>.+)",
        kind=_KIND,
    ),
    form("linker", r"(?P<error>undefined reference to .+)|^Undefined symbols for (?P<where>.+):", kind=_KIND),
    form("linker", r"^(?:/\S+/)?ld(?:\.\w+)?: (?P<error>.+)", kind=_KIND),
    form("linker", r"fatal error (?P<error>LNK\d+: .+)", kind=_KIND),
    form("configure", r"^configure: error: (?!in [`'])(?P<error>.+)", kind=_SET_UP),
    form(
        "CMake",
        r"^CMake Error at (?P<where>\S+?):\d+",
        kind=_SET_UP,
        below=r"^(?P<error>(?!Call Stack)\S.+)",
    ),
)


def find_native(texts: Sequence[str]) -> Finding | None:
    return find_first(_FORMS, texts)

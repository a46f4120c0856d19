"""Limits of time, memory and disk, and other machines that do not answer."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_MEMORY = (
    form(
        "",
        r"(?P<error>(?:CUDA |heap )?[Oo]ut of memory\b|Java heap space|std::bad_alloc|[Cc]annot allocate memory)",
        kind="out of memory",
    ),
    form("", r"(?P<error>\w+: Killed\b|^Killed\b|exit(?:ed with)? (?:code )?137)", kind="out of memory"),
    form("", r"(?P<error>[Nn]o space left on device)", kind="disk full"),
)
_TIME = (
    form("", r"(?P<error>The action '.+' has timed out after \d+ minutes)", kind="timeout"),
    form("", r"(?P<error>The job .*exceeded the maximum .+)", kind="timeout"),
    form("", r"(?P<error>No output has been received in the last \S+)", kind="timeout"),
    form("", r'^The command "(?P<what>.+?)"? exited with 124', kind="timeout", words="the command `{what}` is cut"),
    form(
        "", r"(?P<error>\btimeout of \d+ ?ms exceeded|Exceeded timeout of \d+ ?ms|timed out after .+)", kind="timeout"
    ),
)
_HOST = r"(?:Could not resolve (?:host|hostname):?|getaddrinfo \w+|failed to lookup address information)"
_NETWORK = (
    form(
        "",
        r"^\W*Requesting (?P<where>\S+)$",
        kind="package download",
        words="a download fails",
        below=r"(?P<error>Failure \d{3} .+)",
        reach=3,
    ),
    form("curl", r"^curl: \(\d+\) (?P<error>.+)", kind="network"),
    form("", rf"(?P<error>{_HOST}.*|(?:in name resolution|[Nn]ame or service not known))", kind="network"),
    form(
        "",
        r"(?P<error>\b[Cc]onnect(?:ion)?:? (?:time[ds]? ?out|refused|reset).*|ECONNRE\w+.*|Max retries exceeded.*)",
        kind="network",
    ),
    form("", r"(?P<error>.*\brate limit (?:exceeded|reached).*)", kind="network"),
)


def find_memory(texts: Sequence[str]) -> Finding | None:
    return find_first(_MEMORY, texts)


def find_timeout(texts: Sequence[str]) -> Finding | None:
    return find_first(_TIME, texts)


def find_network(texts: Sequence[str]) -> Finding | None:
    return find_first(_NETWORK, texts)

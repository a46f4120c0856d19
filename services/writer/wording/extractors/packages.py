"""npm, pip, conda, apt, docker and bundler when a package cannot be had, or not together with the others."""

import re
from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_KIND = "dependency resolution"
_FORMS = (
    form("npm", r"^npm (?:ERR!|error) (?P<error>peer .+? from \S+)", kind=_KIND),
    form("npm", r"^npm (?:ERR!|error) (?:code )?(?P<error>ERESOLVE .+)", kind=_KIND),
    form("npm", r"^npm (?:ERR!|error) (?:404|notarget) (?P<error>\S.+)", kind=_KIND),
    form(
        "pip",
        r"^(?:ERROR: )?(?P<error>(?:No matching distribution|Could not find a version|Cannot install).+)",
        kind=_KIND,
    ),
    form("apt", r"^E: (?P<error>(?:Failed to fetch|Unable to (?:locate|correct)|Package|Version) .+)", kind=_KIND),
    form("docker", r"(?P<error>manifest for \S+ not found|pull access denied .+)", kind="package download"),
    form(
        "Emacs",
        r"^(?P<what>(?:require-package|package-install|package-refresh-contents)\([^()]*\))$",
        words="{what} fails",
        place=r'^eval-buffer\(.* nil "(?P<where>[^"]+\.el)"',
    ),
    form("bundler", r"^(?P<error>(?:Could not find gem|Bundler could not find compatible).+)", kind=_KIND),
)
_CONDA = re.compile(r"^(?:PackagesNotFoundError|ResolvePackageNotFound|UnsatisfiableError): ")
_LISTED = re.compile(r"^- ([^\s/]+)$")
_LIST_LINES, _NAMED_MAX = 20, 5


def find_packages(texts: Sequence[str]) -> Finding | None:
    return find_conda(texts) or find_first(_FORMS, texts)


def find_conda(texts: Sequence[str]) -> Finding | None:
    """conda names the packages in a list below, in another order in every run."""
    start = next((index for index, text in enumerate(texts) if _CONDA.match(text)), None)
    if start is None:
        return None
    listed = [match for text in texts[start + 1 : start + _LIST_LINES] if (match := _LISTED.match(text))]
    names = ", ".join(sorted(match[1] for match in listed)[:_NAMED_MAX])
    lines = (texts[start], *(match.string for match in listed[:_NAMED_MAX]))
    return Finding("conda", error=f"{texts[start]} {names}".strip(), kind=_KIND, lines=lines)

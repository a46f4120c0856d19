"""The digest: at most five entries of each of four kinds, which share 4 000 characters equally (spec 4.6)."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from services.writer.transcripts.excerpts import keep_head, keep_tail, share_out
from services.writer.transcripts.findings import KIND_CHARS_MAX, Finding, Findings

Found = Sequence[tuple[Finding, tuple[str, ...]]]
Keep = Callable[[str, int], str]

COMMAND_LINK = "\n→ "
"""Between a failed command and the end of its output."""

DEED_PART = 3
"""A deed may take one part in three of its entry, and what the outcome leaves."""


@dataclass(frozen=True, slots=True)
class Entry:
    text: str
    transcript_ids: tuple[str, ...]
    """More than one where sessions share it: the same failure, or a file that all of them wrote."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Entries are oldest first. All are texts from outside, cleaned of credentials but not screened."""

    failed_tools: tuple[Entry, ...] = ()
    failed_commands: tuple[Entry, ...] = ()
    churned_files: tuple[Entry, ...] = ()
    final_notes: tuple[Entry, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(self._kinds().values())

    @property
    def transcript_ids(self) -> tuple[str, ...]:
        """The transcripts that an entry comes from, and no others."""
        entries = (entry for kind in self._kinds().values() for entry in kind)
        return tuple(dict.fromkeys(one for entry in entries for one in entry.transcript_ids))

    def entries(self) -> dict[str, str]:
        """The texts to screen, by an id that `without` takes."""
        return {_entry_id(kind, n): entry.text for kind, all_ in self._kinds().items() for n, entry in enumerate(all_)}

    def without(self, ids: Collection[str]) -> "Digest":
        return Digest(*(_keep(kind, entries, ids) for kind, entries in self._kinds().items()))

    def only(self, ids: Collection[str]) -> "Digest":
        return self.without(self.entries().keys() - set(ids))

    def render(self) -> dict[str, list[str]]:
        """As the writer's model reads it; a kind without entries is left out."""
        names = ("failedTools", "failedCommands", "churnedFiles", "finalNotes")
        kinds = zip(names, self._kinds().values(), strict=True)
        return {name: [entry.text for entry in entries] for name, entries in kinds if entries}

    def citation(self) -> dict[str, object]:
        """What the lesson was written from, for `metadata.evidence`."""
        counts = {kind: len(entries) for kind, entries in self._kinds().items() if kind != "final_notes"}
        return {"ids": list(self.transcript_ids), **counts}

    def _kinds(self) -> dict[str, tuple[Entry, ...]]:
        return {
            "failed_tools": self.failed_tools,
            "failed_commands": self.failed_commands,
            "churned_files": self.churned_files,
            "final_notes": self.final_notes,
        }


def _entry_id(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def _keep(kind: str, entries: tuple[Entry, ...], dropped: Collection[str]) -> tuple[Entry, ...]:
    return tuple(entry for number, entry in enumerate(entries) if _entry_id(kind, number) not in dropped)


def render_digest(findings: Findings) -> Digest:
    return Digest(
        failed_tools=_render_kind(findings.failed_tools.items(), ": ", keep_head),
        failed_commands=_render_kind(findings.failed_commands.items(), COMMAND_LINK, keep_tail),
        churned_files=_render_kind(findings.churned_files.items(), ": ", keep_head),
        final_notes=_render_kind(findings.final_notes.items(), "", keep_head),
    )


def _render_kind(found: Found, link: str, keep: Keep) -> tuple[Entry, ...]:
    """`keep` says which end of an outcome is worth more."""
    shares = share_out([len(finding.deed) + len(link) + len(finding.outcome) for finding, _ in found], KIND_CHARS_MAX)
    distinct: dict[str, tuple[Finding, tuple[str, ...]]] = {}
    for (finding, transcript_ids), chars_max in zip(found, shares, strict=True):
        text = _render(finding, link, chars_max, keep)
        _, others = distinct.pop(text, (finding, ()))
        distinct[text] = finding, tuple(dict.fromkeys((*others, *transcript_ids)))
    if len(distinct) < len(found):
        # Cut to their shares some were alike. The latest stands for them, and their room is shared out anew.
        return _render_kind(list(distinct.values()), link, keep)
    return tuple(Entry(text, transcript_ids) for text, (_, transcript_ids) in distinct.items())


def _render(finding: Finding, link: str, chars_max: int, keep: Keep) -> str:
    if not finding.outcome:
        return keep_head(finding.deed, chars_max)
    left = chars_max - len(link) - len(finding.outcome)
    deed = keep_head(finding.deed, max(chars_max // DEED_PART, left))
    return f"{deed}{link}{keep(finding.outcome, chars_max - len(deed) - len(link))}"

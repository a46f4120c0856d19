"""What the taps hear of a request: counts, ids, reasons and labels of patterns."""

from collections.abc import Sequence

from lorebus.contracts.facts.consolidator import (
    ChannelConsolidated,
    ConsolidationRefused,
    ConsolidationScanUnavailable,
    LessonsConsolidated,
)
from lorebus.contracts.facts.fact import MemoryEvent

from services.consolidator.rules import Job, Left, Tally


def build_facts(job: Job, tally: Tally, left: Sequence[Left]) -> list[MemoryEvent]:
    """One for each cluster that the gate stood against, then what the request came to."""
    refusals = [fact for one in left if (fact := _refusal(job, one))]
    return [*refusals, _outcome(job, tally)]


def _refusal(job: Job, left: Left) -> MemoryEvent | None:
    about = job.about()
    ids = [str(id_) for id_ in left.source_ids]
    match left.reason:
        case "matched":
            return ConsolidationRefused(**about, source_ids=ids, patterns=list(left.patterns))
        case "incomplete" | "unreadable_answer":
            return ConsolidationScanUnavailable(**about, source_ids=ids, reason=left.reason)
        case _:
            return None


def _outcome(job: Job, tally: Tally) -> MemoryEvent:
    about = job.about()
    created = [str(id_) for id_ in tally.created]
    if job.scope.kind == "channel-memory":
        return ChannelConsolidated(
            **about,
            clusters_found=tally.found,
            clusters_consolidated=tally.consolidated,
            memories_consolidated=tally.sources,
            memories_created=len(created),
            left=tally.left,
            created=created,
        )
    return LessonsConsolidated(
        **about,
        clusters_found=tally.found,
        clusters_consolidated=tally.consolidated,
        lessons_consolidated=tally.sources,
        lessons_created=len(created),
        left=tally.left,
        created=created,
    )

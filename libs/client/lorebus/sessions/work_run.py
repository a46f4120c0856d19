"""A scheduled run of a Work: it leaves a summary, and finds those of the runs before it (spec 2.2).

Nothing here raises for the memory's sake.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lorebus.sessions.provider import Memory
from lorebus.sessions.records import Metadata, Record
from lorebus.sessions.session import MemorySession

SOURCE = "work-run"
SUMMARIES_MAX = 10


@dataclass(frozen=True, slots=True)
class WorkRunDetails:
    """What a summary and its session tell of the run."""

    work_id: str
    work_name: str
    work_slug: str
    work_kind: str
    history_id: str | None = None
    schedule_id: str | None = None

    @property
    def tags(self) -> Sequence[str]:
        return [SOURCE, _work_tag(self.work_id), f"kind:{self.work_kind}"]

    @property
    def metadata(self) -> Metadata:
        named = {
            "source": SOURCE,
            "workId": self.work_id,
            "workName": self.work_name,
            "workSlug": self.work_slug,
            "workKind": self.work_kind,
            "historyId": self.history_id,
            "scheduleId": self.schedule_id,
        }
        return {name: value for name, value in named.items() if value is not None}


async def keep_summary(
    memory: Memory | None, details: WorkRunDetails, summary: str, *, project_id: str | None = None
) -> Record | None:
    """In a session of its own, closed whatever becomes of the save. None where it was not stored."""
    async with MemorySession(memory, project_id=project_id, metadata=details.metadata) as session:
        return await session.save(summary, tags=details.tags)


async def find_summaries(memory: Memory | None, work_id: str, *, project_id: str | None = None) -> Sequence[Record]:
    """Of the Work's last runs, the newest first; none where the memory fails. Untrusted."""
    session = MemorySession(memory, project_id=project_id)
    return (await session.search("*", limit=SUMMARIES_MAX, tags=[_work_tag(work_id)])).results


def _work_tag(work_id: str) -> str:
    return f"work:{work_id}"

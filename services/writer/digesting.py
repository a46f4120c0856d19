"""A run's transcripts as a digest: read, screened entry by entry, and told to the taps (spec 4.6).

Best effort: whatever a transcript breaks costs the digest and never the lesson. Only a gate that is down counts
against the whole run, since without one nothing could be stored anyway.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.writer import TranscriptDigest, TranscriptDigestDropped, TranscriptDigestUnavailable
from lorebus.contracts.gate import Origin
from lorebus.contracts.runs import RunFinished

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_cascade import Owner
from libs.common.domain.setting_keys import LESSON_TRANSCRIPT_EVIDENCE
from libs.common.errors import GateUnavailable, StoreUnavailable
from libs.common.gate_client import GateClient, Screening
from services.writer.evidence.cleaning import clean_text
from services.writer.parts import Parts
from services.writer.rules import Source
from services.writer.transcripts.deadline import Deadline, DigestTimedOut
from services.writer.transcripts.digest import Digest
from services.writer.transcripts.reading import build_digest

_log = structlog.get_logger("writer")

SECONDS_MAX = 20.0
"""For everything, the look at the setting included."""


@dataclass(frozen=True)
class Digested:
    """The digest, where it holds something, and what the taps should hear."""

    digest: Digest | None = None
    facts: tuple[MemoryEvent, ...] = ()


class Digesting:
    def __init__(self, parts: Parts, gate: GateClient, settings: AdministeredSettings) -> None:
        self._parts = parts
        self._gate = gate
        self._settings = settings

    async def digest(self, run: RunFinished, source: Source) -> Digested:
        """Raises GateUnavailable and nothing else."""
        if not run.transcripts:
            return Digested()
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._read(run, source)
        except GateUnavailable:
            raise
        except (TimeoutError, DigestTimedOut):
            return _unavailable(source, "timed_out")
        except StoreUnavailable:
            return _unavailable(source, "read_error")
        except Exception as error:  # noqa: BLE001 - a transcript of nobody knows what must not cost the lesson
            _log.error("writer.digest_failed", event_id=source.event_id, error=type(error).__name__, exc_info=True)
            return _unavailable(source, "failed")

    async def _read(self, run: RunFinished, source: Source) -> Digested:
        owner = Owner(team=source.team_id, organization=source.org_id)
        deadline = Deadline(time.monotonic, time.monotonic() + SECONDS_MAX)
        if not await self._settings.get(LESSON_TRANSCRIPT_EVIDENCE, source.tenant, owner):
            return Digested()
        found = await asyncio.to_thread(build_digest, run.transcripts, self._fetch(source), clean_text, deadline)
        if found.is_empty:
            return Digested(facts=(_told(source, found, dropped=0),))
        origin = Origin(kind="transcript", run_id=source.run_id, writer=source.agent_key)
        screening = await self._gate.screen("write", found.entries(), tenant=source.tenant, origin=origin)
        return _unavailable(source, "scan") if screening.incomplete else _sift(source, found, screening)

    def _fetch(self, source: Source) -> Callable[[str], bytes]:
        """Reads a part that was put ahead, for the thread that reads the transcripts."""
        loop = asyncio.get_running_loop()

        def fetch(ref: str) -> bytes:
            looking = self._parts.find_part(source.tenant, source.event_id, ref)
            part = asyncio.run_coroutine_threadsafe(looking, loop).result(SECONDS_MAX)
            if part is None:
                raise LookupError(ref)
            return part

        return fetch


def _sift(source: Source, found: Digest, screening: Screening) -> Digested:
    """Without the entries in which the gate found a pattern."""
    kept = found.without(screening.matched)
    facts: list[MemoryEvent] = [_told(source, kept, dropped=len(screening.matched))]
    if screening.matched:
        dropped = TranscriptDigestDropped(
            **source.about(),
            transcript_ids=list(found.only(screening.matched).transcript_ids),
            count=len(screening.matched),
            patterns=screening.patterns,
        )
        facts.append(dropped)
    return Digested(None if kept.is_empty else kept, tuple(facts))


def _told(source: Source, digest: Digest, *, dropped: int) -> TranscriptDigest:
    return TranscriptDigest(
        **source.about(),
        transcript_ids=list(digest.transcript_ids),
        failed_tools=len(digest.failed_tools),
        failed_commands=len(digest.failed_commands),
        churned_files=len(digest.churned_files),
        final_notes=len(digest.final_notes),
        dropped=dropped,
    )


def _unavailable(source: Source, reason: str) -> Digested:
    return Digested(facts=(TranscriptDigestUnavailable(**source.about(), reason=reason),))

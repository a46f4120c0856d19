"""Which transcripts of a run are read: its implementer's newest, chosen newest first and read oldest first.

The run is over, so a transcript that does not say when it was closed counts as closed, before those that do.

A transcript with a part that fails its check gives nothing at all; one that is cut short gives what it holds.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from lorebus.contracts.runs import Transcript

from services.writer.transcripts.deadline import Deadline
from services.writer.transcripts.digest import Digest, render_digest
from services.writer.transcripts.findings import Clean, Findings, Session
from services.writer.transcripts.formats import FORMATS
from services.writer.transcripts.parts import Fetch, PartReader, PartUnreadable

TRANSCRIPTS_MAX = 3
CHANGING = frozenset({"fix", "fixes", "fixer", "fixing", "conflict", "conflicts"})

NEVER = datetime.min.replace(tzinfo=UTC)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def build_digest(transcripts: Iterable[Transcript], fetch: Fetch, clean: Clean, deadline: Deadline) -> Digest:
    """What the implementer's sessions show. It blocks: run it in a thread.

    Errors: DigestTimedOut, and what `fetch` raises but for LookupError.
    """
    findings = Findings(clean)
    parts = PartReader(fetch, deadline)
    for transcript in choose(transcripts):
        if session := _read_session(transcript, parts, clean, deadline):
            findings.add(session)
    return render_digest(findings)


def _read_session(transcript: Transcript, parts: PartReader, clean: Clean, deadline: Deadline) -> Session | None:
    form = FORMATS.get(transcript.format)
    if form is None:
        return None
    session = Session(transcript.id, form, clean)
    try:
        for group in form.read(parts.read(transcript.parts)):
            deadline.check()
            session.add(group)
    except PartUnreadable:
        return None
    return session


def choose(transcripts: Iterable[Transcript]) -> list[Transcript]:
    """The newest sessions of the implementer, oldest first; of a retried one the last try alone."""
    closed = [one for one in transcripts if is_implementer(one.activity_type)]
    last_tries: dict[object, Transcript] = {}
    for number, transcript in enumerate(closed):
        # Without a recording id nothing says that two transcripts are tries of one session.
        named = (transcript.activity_type, transcript.recording_id, transcript.step_attempt)
        key = named if transcript.recording_id else number
        known = last_tries.get(key, transcript)
        last_tries[key] = transcript if transcript.attempt >= known.attempt else known
    return sorted(last_tries.values(), key=_closed_at)[-TRANSCRIPTS_MAX:]


def _closed_at(transcript: Transcript) -> datetime:
    closed_at = transcript.closed_at or NEVER
    return closed_at if closed_at.tzinfo else closed_at.replace(tzinfo=UTC)


def is_implementer(activity_type: str | None) -> bool:
    """Whether an activity changes code: one that implements, fixes or resolves conflicts, or one without a name.

    `executeImplementation`, `executeCIFixImplementation`, `executeReviewFixImplementation`, `ciFixer`, `gate_fixer`,
    `resolveMergeConflict` and `implementer` do; `runReviewNetwork` and `reviewImplementation` do not.
    """
    words = {word.lower() for word in _WORD.findall(activity_type or "")}
    implements = any(word.startswith("implement") for word in words)
    reviews = any(word.startswith("review") for word in words)
    return not activity_type or bool(words & CHANGING) or (implements and not reviews)

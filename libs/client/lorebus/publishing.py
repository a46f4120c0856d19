"""Publishing a finished run, with its transcripts in whichever way fits.

A run whose transcripts fit the message carries them inside. Otherwise they are put ahead of it, part by part
(`evidence.put`), and the run names them. Whatever keeps a transcript back never keeps back the run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lorebus.carrying import Carried, carry
from lorebus.connection import Connection
from lorebus.contracts.envelope import DEFAULT_TENANT, build_message
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import RUN_FINISHED, subject_for
from lorebus.errors import InvalidMessage
from lorebus.putting import Putting
from lorebus.sending import MESSAGE_BYTES_MAX, PATIENCE_SECONDS, Parcel, Published, build_message_id, send
from lorebus.transcripts import TranscriptFiles

RUN_BYTES_MAX = MESSAGE_BYTES_MAX


async def publish_run(
    connection: Connection,
    tenant: str,
    run: RunFinished | Mapping[str, Any],
    transcripts: Sequence[TranscriptFiles] = (),
    patience_seconds: float = PATIENCE_SECONDS,
) -> Published:
    """Raises InvalidMessage before anything is sent, EventNotAcknowledged when patience ends."""
    given = run if isinstance(run, RunFinished) else build_message(RunFinished, run)
    bare = given.model_copy(update={"transcripts": []})
    _check(bare, tenant)
    luggage = [*(TranscriptFiles(one, one.parts) for one in given.transcripts), *transcripts]
    putting = Putting(connection, tenant, given.event_id, patience_seconds)
    carried = await carry(luggage, RUN_BYTES_MAX - measure_run(bare, tenant), putting.put) if luggage else Carried()
    event = bare.model_copy(update={"transcripts": carried.transcripts})
    published = await send(connection, _parcel(event, tenant), patience_seconds)
    return Published(published.event_id, published.sequence, published.duplicate, tuple(carried.left_out))


def encode_run(run: RunFinished) -> bytes:
    """The run as it travels: what is not known is left out."""
    return run.model_dump_json(by_alias=True, exclude_none=True).encode()


def measure_run(run: RunFinished, tenant: str = DEFAULT_TENANT) -> int:
    """Its size as a message, in bytes: what RUN_BYTES_MAX limits."""
    return _parcel(run, tenant).size


def _check(bare: RunFinished, tenant: str) -> None:
    if bare.tenant not in (None, tenant):
        raise InvalidMessage("tenant: the run names another tenant than this client speaks for")
    size = measure_run(bare, tenant)
    if size > RUN_BYTES_MAX:
        raise InvalidMessage(_explain_size(bare, size))


def _parcel(run: RunFinished, tenant: str) -> Parcel:
    body = encode_run(run)
    message_id = build_message_id(tenant, run.event_id, body)
    return Parcel("run", subject_for(RUN_FINISHED, tenant), run.event_id, body, message_id)


def _explain_size(run: RunFinished, size: int) -> str:
    parts = {name: len(run.model_dump_json(include={name})) // 1024 for name in type(run).model_fields}
    largest = sorted((name for name in parts if parts[name]), key=lambda name: parts[name], reverse=True)[:2]
    shown = " and ".join(f"{name} ({parts[name]} KiB)" for name in largest)
    limit = RUN_BYTES_MAX // 1024
    return f"the run is {size // 1024 + 1} KiB; at most {limit} fit. What is too large: {shown}"

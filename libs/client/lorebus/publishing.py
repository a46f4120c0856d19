"""Publishing a finished run so that it counts once, however often it is sent.

A publish that times out is neither stored nor lost: it is unknown. So it is sent again with the same
message id until the stream confirms it or patience ends; the stream drops what it already has.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from random import SystemRandom
from typing import Any

from nats.errors import Error, MaxPayloadError
from nats.js import JetStreamContext
from nats.js.errors import APIError, BadRequestError, NoStreamResponseError

from lorebus.connection import Connection
from lorebus.contracts.envelope import DEFAULT_TENANT, build_message
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import RUN_FINISHED, subject_for
from lorebus.errors import EventNotAcknowledged, InvalidMessage

RUN_BYTES_MAX = 256 * 1024
PATIENCE_SECONDS = 15.0
ATTEMPT_SECONDS = 5.0
ATTEMPT_SECONDS_MIN = 0.2
PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 2.0
MESSAGE_ID = "Nats-Msg-Id"
MESSAGE_TOO_LARGE = 10054
"""JetStream's code for a message above the stream's own limit."""

Fault = Error | OSError

chance = SystemRandom()


@dataclass(frozen=True, slots=True)
class Published:
    """The stream holds the event. `duplicate`: it held it before."""

    event_id: str
    sequence: int
    duplicate: bool


@dataclass(frozen=True, slots=True)
class _Parcel:
    """One event, ready to send as often as it takes."""

    subject: str
    event_id: str
    body: bytes
    message_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {MESSAGE_ID: self.message_id}

    @property
    def size(self) -> int:
        return len(self.body) + len(f"NATS/1.0\r\n{MESSAGE_ID}: {self.message_id}\r\n\r\n".encode())


async def publish_run(
    connection: Connection,
    tenant: str,
    run: RunFinished | Mapping[str, Any],
    patience_seconds: float = PATIENCE_SECONDS,
) -> Published:
    """Raises InvalidMessage before anything is sent, EventNotAcknowledged when patience ends."""
    event = run if isinstance(run, RunFinished) else build_message(RunFinished, run)
    return await _send(connection, _pack(event, tenant), patience_seconds)


def encode_run(run: RunFinished) -> bytes:
    """The run as it travels: what is not known is left out."""
    return run.model_dump_json(by_alias=True, exclude_none=True).encode()


def measure_run(run: RunFinished, tenant: str = DEFAULT_TENANT) -> int:
    """Its size as a message, in bytes: what RUN_BYTES_MAX limits. Streams count headers too."""
    return _parcel(run, tenant).size


def _pack(run: RunFinished, tenant: str) -> _Parcel:
    if run.tenant not in (None, tenant):
        raise InvalidMessage("tenant: the run names another tenant than this client speaks for")
    parcel = _parcel(run, tenant)
    if parcel.size > RUN_BYTES_MAX:
        raise InvalidMessage(_explain_size(run, parcel.size))
    return parcel


def _parcel(run: RunFinished, tenant: str) -> _Parcel:
    body = encode_run(run)
    digest = hashlib.sha256(body).hexdigest()[:16]
    return _Parcel(subject_for(RUN_FINISHED, tenant), run.event_id, body, f"{tenant}/{run.event_id}/{digest}")


def _explain_size(run: RunFinished, size: int) -> str:
    parts = {name: len(run.model_dump_json(include={name})) // 1024 for name in type(run).model_fields}
    largest = sorted((name for name in parts if parts[name]), key=lambda name: parts[name], reverse=True)[:2]
    shown = " and ".join(f"{name} ({parts[name]} KiB)" for name in largest)
    limit = RUN_BYTES_MAX // 1024
    return f"the run is {size // 1024 + 1} KiB; at most {limit} fit. What is too large: {shown}"


async def _send(connection: Connection, parcel: _Parcel, patience_seconds: float) -> Published:
    now = asyncio.get_running_loop().time
    ends = now() + patience_seconds
    pause_seconds = PAUSE_SECONDS_MIN
    fault: Fault | None = None
    while now() < ends:
        if not await connection.wait_up(ends - now()):
            break
        result = await _attempt(connection, parcel, min(ATTEMPT_SECONDS, max(ATTEMPT_SECONDS_MIN, ends - now())))
        if isinstance(result, Published):
            return result
        fault = result
        await asyncio.sleep(min(chance.uniform(0.5, 1.0) * pause_seconds, max(0.0, ends - now())))
        pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)
    raise EventNotAcknowledged(_explain_failure(connection, parcel, fault, patience_seconds))


async def _attempt(connection: Connection, parcel: _Parcel, timeout_seconds: float) -> Published | Fault:
    """Published, or the fault that another attempt may cure."""
    stream = JetStreamContext(connection.client, timeout=timeout_seconds)
    try:
        ack = await stream.publish(parcel.subject, parcel.body, headers=parcel.headers)
    except MaxPayloadError:
        raise InvalidMessage(f"the run is larger than {connection.client.max_payload} bytes") from None
    except BadRequestError as error:
        raise _refusal(parcel, error) from error
    except (Error, OSError) as error:
        return error
    except (ValueError, TypeError):
        return Error("something else than a stream answered")
    return Published(parcel.event_id, ack.seq, bool(ack.duplicate))


def _refusal(parcel: _Parcel, error: APIError) -> InvalidMessage | EventNotAcknowledged:
    if error.err_code == MESSAGE_TOO_LARGE:
        size = len(parcel.body) // 1024 + 1
        return InvalidMessage(f"the run is {size} KiB: more than its stream takes")
    return EventNotAcknowledged(f"the bus refused {parcel.subject}: {error.description}")


def _explain_failure(connection: Connection, parcel: _Parcel, fault: Fault | None, patience_seconds: float) -> str:
    waited = f"within {patience_seconds:g} s"
    again = f"Publishing it again is safe: event {parcel.event_id!r} counts once"
    refusal = connection.last_refusal
    if refusal and parcel.subject in refusal:
        return f"the bus refused {parcel.subject}: {refusal}. Ask for a user that may publish there"
    if not connection.is_up:
        why = f" ({connection.last_fault})" if connection.last_fault else ""
        return f"the bus at {connection.address} could not be reached {waited}{why}. {again}"
    if isinstance(fault, NoStreamResponseError):
        return f"no stream takes {parcel.subject}: create the streams with `lorebus migrate`. {again}"
    if isinstance(fault, APIError):
        return f"the bus could not store the event {waited}: {fault.description}. {again}"
    return f"the bus did not confirm the event {waited}; it may have stored it. {again}"

"""Hands a durable message to its stream so that it counts once, however often it is sent.

A message that times out is neither stored nor lost: it is unknown. So it is sent again with the same
message id until the stream confirms it or patience ends; the stream drops what it already has.
"""

import hashlib
from dataclasses import dataclass

from nats.errors import Error, MaxPayloadError
from nats.js import JetStreamContext
from nats.js.errors import APIError, BadRequestError, NoStreamResponseError

from lorebus.connection import Connection
from lorebus.contracts.envelope import Envelope
from lorebus.contracts.subjects import subject_for
from lorebus.errors import EventNotAcknowledged, InvalidMessage
from lorebus.patience import Patience

MESSAGE_BYTES_MAX = 256 * 1024
PATIENCE_SECONDS = 15.0
ATTEMPT_SECONDS = 5.0
ATTEMPT_SECONDS_MIN = 0.2
MESSAGE_ID = "Nats-Msg-Id"
MESSAGE_TOO_LARGE = 10054
"""JetStream's code for a message above the stream's own limit."""

Fault = Error | OSError


@dataclass(frozen=True, slots=True)
class Published:
    """The stream holds the event. `duplicate`: it held it before."""

    event_id: str
    sequence: int
    duplicate: bool
    left_out: tuple[str, ...] = ()
    """Transcripts that stayed behind, whole or from some part on, each with the reason."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One message, ready to send as often as it takes. `what`: the word for it in errors."""

    what: str
    subject: str
    event_id: str
    body: bytes
    message_id: str

    @property
    def headers(self) -> dict[str, str]:
        return {MESSAGE_ID: self.message_id}

    @property
    def size(self) -> int:
        """In bytes, with its headers, as streams count: what MESSAGE_BYTES_MAX limits."""
        return len(self.body) + len(f"NATS/1.0\r\n{MESSAGE_ID}: {self.message_id}\r\n\r\n".encode())


def build_message_id(tenant: str, event_id: str, body: bytes) -> str:
    """The same for the same bytes, so that another payload under a known event id is not silently dropped."""
    return f"{tenant}/{event_id}/{hashlib.sha256(body).hexdigest()[:16]}"


def pack(what: str, message: Envelope, subject: str, tenant: str) -> Parcel:
    """A contract's message, addressed to the tenant. `subject`: bare."""
    body = message.model_dump_json(by_alias=True, exclude_none=True).encode()
    message_id = build_message_id(tenant, message.event_id, body)
    return Parcel(what, subject_for(subject, tenant), message.event_id, body, message_id)


async def send(connection: Connection, parcel: Parcel, patience_seconds: float) -> Published:
    """Raises InvalidMessage when it is too large, EventNotAcknowledged when patience ends."""
    patience = Patience(patience_seconds)
    fault: Fault | None = None
    while await connection.wait_up(patience.left_seconds):
        result = await _attempt(
            connection, parcel, min(ATTEMPT_SECONDS, max(ATTEMPT_SECONDS_MIN, patience.left_seconds))
        )
        if isinstance(result, Published):
            return result
        fault = result
        if not await patience.pause():
            break
    raise EventNotAcknowledged(_explain_failure(connection, parcel, fault, patience_seconds))


async def _attempt(connection: Connection, parcel: Parcel, timeout_seconds: float) -> Published | Fault:
    """Published, or the fault that another attempt may cure."""
    stream = JetStreamContext(connection.client, timeout=timeout_seconds)
    try:
        ack = await stream.publish(parcel.subject, parcel.body, headers=parcel.headers)
    except MaxPayloadError:
        raise InvalidMessage(f"the {parcel.what} is larger than {connection.client.max_payload} bytes") from None
    except BadRequestError as error:
        raise _refusal(parcel, error) from error
    except (Error, OSError) as error:
        return error
    except (ValueError, TypeError):
        return Error("something else than a stream answered")
    return Published(parcel.event_id, ack.seq, bool(ack.duplicate))


def _refusal(parcel: Parcel, error: APIError) -> InvalidMessage | EventNotAcknowledged:
    if error.err_code == MESSAGE_TOO_LARGE:
        size = len(parcel.body) // 1024 + 1
        return InvalidMessage(f"the {parcel.what} is {size} KiB: more than its stream takes")
    return EventNotAcknowledged(f"the bus refused {parcel.subject}: {error.description}")


def explain_unreachable(connection: Connection, event_id: str, patience_seconds: float) -> str:
    why = f" ({connection.last_fault})" if connection.last_fault else ""
    waited = f"within {patience_seconds:g} s"
    return f"the bus at {connection.address} could not be reached {waited}{why}. {_again(event_id)}"


def _explain_failure(connection: Connection, parcel: Parcel, fault: Fault | None, patience_seconds: float) -> str:
    refusal = connection.last_refusal
    if refusal and parcel.subject in refusal:
        return f"the bus refused {parcel.subject}: {refusal}. Ask for a user that may publish there"
    if not connection.is_up:
        return explain_unreachable(connection, parcel.event_id, patience_seconds)
    waited, again = f"within {patience_seconds:g} s", _again(parcel.event_id)
    if isinstance(fault, NoStreamResponseError):
        return f"no stream takes {parcel.subject}: create the streams with `lorebus migrate`. {again}"
    if isinstance(fault, APIError):
        return f"the bus could not store the event {waited}: {fault.description}. {again}"
    return f"the bus did not confirm the event {waited}; it may have stored it. {again}"


def _again(event_id: str) -> str:
    return f"Publishing it again is safe: event {event_id!r} counts once"

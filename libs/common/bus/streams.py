"""What JetStream keeps and who reads it: declared here, made by `lorebus migrate`, only checked by services.

Limits retention everywhere (taps may read too), file storage, and no stream captures a request subject:
the first reply would be JetStream's acknowledgement.
"""

from dataclasses import dataclass

from faststream.nats import JStream
from lorebus.contracts import subjects
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from libs.common.errors import SetupIncomplete

_DAY_SECONDS = 86_400.0
_MIB = 1024 * 1024


def _with_tenants(subject: str) -> list[str]:
    return [subject, f"{subject}.*"]


STREAMS = (
    StreamConfig(
        name="RUNS",
        description="Finished runs with their evidence",
        subjects=_with_tenants(subjects.RUN_FINISHED),
        max_age=7 * _DAY_SECONDS,
        max_bytes=2048 * _MIB,
        max_msg_size=(256 + 4) * 1024,  # a payload of 256 KiB and its headers
        discard=DiscardPolicy.NEW,
        duplicate_window=600.0,
    ),
    StreamConfig(
        name="CTL",
        description="Commands: what a memory is told to keep, to merge, to forget and to embed anew",
        subjects=[
            *_with_tenants(subjects.MEMORY_WRITE),
            *_with_tenants(subjects.MEMORY_DELETE),
            *_with_tenants(subjects.CONSOLIDATION_REQUESTED),
            *_with_tenants(subjects.EMBEDDING_CHANGED),
            *_with_tenants(subjects.CHANNEL_AMBIENT),
        ],
        max_age=7 * _DAY_SECONDS,
        max_bytes=512 * _MIB,
        max_msg_size=(256 + 4) * 1024,
        discard=DiscardPolicy.NEW,
        duplicate_window=600.0,
    ),
    StreamConfig(
        name="EVENTS",
        description="Facts for taps and dashboards: ids, counts and reasons",
        subjects=[f"{subjects.MEMORY_EVENT}.>"],
        max_age=3 * _DAY_SECONDS,
        max_bytes=512 * _MIB,
        discard=DiscardPolicy.OLD,
        duplicate_window=120.0,
    ),
    StreamConfig(
        name="DLQ",
        description="Pointers to dead letters; the payloads are in Postgres",
        subjects=[f"{subjects.DEAD_LETTER}.>"],
        max_age=30 * _DAY_SECONDS,
        max_bytes=256 * _MIB,
        discard=DiscardPolicy.OLD,
        duplicate_window=600.0,
    ),
)


@dataclass(frozen=True)
class DurableConsumer:
    """A named place in a stream; all copies of a service share it."""

    stream: str
    name: str
    in_flight_max: int
    subject: str | None = None
    """Of all tenants; None reads the whole stream."""

    def config(self, lease_seconds: float) -> ConsumerConfig:
        # No max_deliver and no backoff: attempts are counted in Postgres, delays come with each nak.
        return ConsumerConfig(
            durable_name=self.name,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=lease_seconds,
            max_deliver=-1,
            max_ack_pending=self.in_flight_max,
            filter_subjects=_with_tenants(self.subject) if self.subject else None,
        )

    @property
    def source(self) -> JStream:
        return JStream(self.stream, declare=False)


WRITER = DurableConsumer(stream="RUNS", name="writer", in_flight_max=16)
NOTES = DurableConsumer(stream="CTL", name="notes", in_flight_max=16, subject=subjects.MEMORY_WRITE)
FORGETTER = DurableConsumer(stream="CTL", name="forgetter", in_flight_max=4, subject=subjects.MEMORY_DELETE)
CONSOLIDATOR = DurableConsumer(
    stream="CTL", name="consolidator", in_flight_max=8, subject=subjects.CONSOLIDATION_REQUESTED
)
REEMBEDDER = DurableConsumer(stream="CTL", name="reembedder", in_flight_max=4, subject=subjects.EMBEDDING_CHANGED)
AMBIENT = DurableConsumer(stream="CTL", name="ambient", in_flight_max=8, subject=subjects.CHANNEL_AMBIENT)
CONSUMERS = (WRITER, NOTES, FORGETTER, CONSOLIDATOR, REEMBEDDER, AMBIENT)


async def provision_streams(client: Client, *, replicas: int, lease_seconds: float) -> None:
    """Creates or updates every stream and consumer. Safe to repeat."""
    jetstream = client.jetstream()
    for stream in STREAMS:
        wanted = stream.evolve(
            retention=RetentionPolicy.LIMITS, storage=StorageType.FILE, num_replicas=replicas, allow_direct=True
        )
        await _put_stream(jetstream, wanted)
    for consumer in CONSUMERS:
        await jetstream.add_consumer(consumer.stream, consumer.config(lease_seconds))


async def _put_stream(jetstream: JetStreamContext, config: StreamConfig) -> None:
    try:
        await jetstream.stream_info(config.name or "")
    except NotFoundError:
        await jetstream.add_stream(config)
    else:
        await jetstream.update_stream(config)


async def check_streams(client: Client) -> None:
    """Raises SetupIncomplete when a stream or a consumer is missing."""
    jetstream = client.jetstream()
    try:
        for stream in STREAMS:
            await jetstream.stream_info(stream.name or "")
        for consumer in CONSUMERS:
            await jetstream.consumer_info(consumer.stream, consumer.name)
    except NotFoundError as error:
        raise SetupIncomplete(
            f"NATS lacks a stream or consumer of Lorebus ({error.description}). Run `lorebus migrate`."
        ) from error

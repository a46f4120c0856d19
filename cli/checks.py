"""What `lorebus doctor` says of the facts that it found: pure. `probes` finds the facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["ok", "warn", "fail"]

START = "start everything with `lorebus up`, or the one service with `lorebus serve NAME`"
MIGRATE = "run `lorebus migrate`"

POSTGRES_MAJOR_MIN = 16
PGVECTOR_MIN = (0, 8)
ANSWER_SECONDS_MAX = 0.5
CLAIM_SECONDS_MAX = 300.0
"""A message is handled in seconds, or comes again when its lease ends."""
WAITING_MAX = 1_000
OUTBOX_SECONDS_MAX = 30.0
"""The relay looks every second."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report. A remedy where there is something to do."""

    name: str
    state: State
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """An address and where it was found; empty where none was."""

    address: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Addresses:
    nats: Place
    database: Place
    http: Place
    writer_pid: int | None = None
    """Of the `lorebus up` that wrote the addresses, and whether it lives."""
    writer_lives: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """How a service answered a question on the bus."""

    service: str
    seconds: float = 0.0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """A durable consumer: what waits for it, what is being handled, and how many pulls stand open."""

    name: str
    waiting: int
    in_work: int
    readers: int


@dataclass(frozen=True, slots=True)
class BusFacts:
    version: str = ""
    fault: str = ""
    missing: Sequence[str] = ()
    consumers: Sequence[ConsumerState] = ()
    answers: Sequence[Answer] = ()


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    dimensions: int
    state: str


@dataclass(frozen=True, slots=True)
class StoreFacts:
    version: int = 0
    fault: str = ""
    pgvector: str | None = None
    schema: str = ""
    schema_fault: str = ""
    models: Sequence[Model] = ()
    oldest_claim_seconds: float | None = None
    oldest_outbox_seconds: float | None = None
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class Readiness:
    """What /readyz said: each service's parts, `ok` or what is wrong."""

    services: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, dict[str, str]])
    fault: str = ""


def judge_addresses(found: Addresses) -> Check:
    missing = [name for name, place in (("bus", found.nats), ("database", found.database)) if not place.address]
    if missing:
        remedy = "start `lorebus up`, or set LOREBUS_NATS_URL and LOREBUS_DATABASE_URL"
        return Check("addresses", "fail", f"no address of the {' and the '.join(missing)} is known", remedy)
    if not found.writer_lives:
        detail = f"{found.nats.source} was left by process {found.writer_pid}, which is gone"
        return Check("addresses", "fail", detail, "start `lorebus up` again")
    places = dict.fromkeys((found.nats.source, found.database.source))
    return Check("addresses", "ok", f"from {' and '.join(places)}")


def judge_bus(facts: BusFacts, address: str) -> list[Check]:
    if facts.fault:
        remedy = "start `lorebus up` or your nats-server, or correct LOREBUS_NATS_URL"
        return [Check("NATS", "fail", f"{address}: {facts.fault}", remedy)]
    return [
        Check("NATS", "ok", f"nats-server {facts.version} at {address}"),
        judge_streams(facts.missing),
        *(judge_consumer(consumer) for consumer in facts.consumers),
        *(judge_answer(answer) for answer in facts.answers),
    ]


def judge_streams(missing: Sequence[str]) -> Check:
    if missing:
        return Check("streams", "fail", f"missing: {', '.join(missing)}", MIGRATE)
    return Check("streams", "ok", "every stream and consumer is there")


def judge_consumer(consumer: ConsumerState) -> Check:
    name = f"queue of {consumer.name}"
    detail = f"{consumer.waiting} waiting, {consumer.in_work} in work"
    if consumer.readers == 0 and consumer.in_work == 0:
        state: State = "fail" if consumer.waiting else "warn"
        return Check(name, state, f"{detail}, nobody reads", f"no {consumer.name} runs: {START}")
    if consumer.waiting > WAITING_MAX:
        remedy = f"run more copies of the {consumer.name}, or raise LOREBUS_WRITER_CONCURRENCY"
        return Check(name, "warn", detail, remedy)
    return Check(name, "ok", detail)


def judge_answer(answer: Answer) -> Check:
    name = f"{answer.service} answers"
    if answer.fault:
        return Check(name, "fail", answer.fault, f"no {answer.service} runs: {START}")
    detail = f"in {answer.seconds * 1000:.0f} ms"
    if answer.seconds > ANSWER_SECONDS_MAX:
        return Check(name, "warn", detail, f"the machine is busy, or run more copies of {answer.service}")
    return Check(name, "ok", detail)


def judge_store(facts: StoreFacts, address: str) -> list[Check]:
    if facts.fault:
        remedy = "start `lorebus up` or your Postgres, or correct LOREBUS_DATABASE_URL"
        return [Check("Postgres", "fail", f"{address}: {facts.fault}", remedy)]
    basics = [judge_postgres(facts.version, address), judge_pgvector(facts.pgvector), judge_schema(facts)]
    if facts.schema_fault:
        return basics
    return [
        *basics,
        judge_model(facts.models),
        judge_claims(facts.oldest_claim_seconds),
        judge_outbox(facts.oldest_outbox_seconds),
        judge_dead_letters(facts.dead_letters),
    ]


def judge_postgres(version: int, address: str) -> Check:
    detail = f"{version // 10_000}.{version % 10_000} at {address}"
    if version // 10_000 < POSTGRES_MAJOR_MIN:
        return Check("Postgres", "fail", detail, f"upgrade to Postgres {POSTGRES_MAJOR_MIN} or newer")
    return Check("Postgres", "ok", detail)


def judge_pgvector(version: str | None) -> Check:
    if version is None:
        remedy = f"install pgvector 0.8 or newer on the server, then {MIGRATE}"
        return Check("pgvector", "fail", "not in this database", remedy)
    if tuple(int(part) for part in version.split(".")[:2]) < PGVECTOR_MIN:
        return Check("pgvector", "fail", version, "upgrade it, then run `ALTER EXTENSION vector UPDATE`")
    return Check("pgvector", "ok", version)


def judge_schema(facts: StoreFacts) -> Check:
    if facts.schema_fault:
        return Check("schema", "fail", facts.schema_fault, MIGRATE)
    return Check("schema", "ok", f"revision {facts.schema}")


def judge_model(models: Sequence[Model]) -> Check:
    serving = [model for model in models if model.state == "serving"]
    if not serving:
        remedy = f"the first start of the writer or recall writes it: {START}"
        return Check("embedding model", "fail", "none serves", remedy)
    building = [f", {model.name} is being built" for model in models if model.state == "building"]
    return Check("embedding model", "ok", f"{serving[0].name}, {serving[0].dimensions} dimensions{''.join(building)}")


def judge_claims(oldest_seconds: float | None) -> Check:
    if oldest_seconds is None:
        return Check("events in work", "ok", "none is open")
    detail = f"the oldest was claimed {oldest_seconds:.0f} s ago"
    if oldest_seconds > CLAIM_SECONDS_MAX:
        return Check("events in work", "warn", detail, "see `lorebus runs --status claimed` and the writer's log")
    return Check("events in work", "ok", detail)


def judge_outbox(oldest_seconds: float | None) -> Check:
    if oldest_seconds is None:
        return Check("outbox", "ok", "empty")
    detail = f"the oldest fact waits for {oldest_seconds:.0f} s"
    if oldest_seconds > OUTBOX_SECONDS_MAX:
        return Check("outbox", "fail", detail, f"no relay reaches NATS: {START}, then look into its log")
    return Check("outbox", "ok", detail)


def judge_dead_letters(count: int) -> Check:
    if count:
        return Check("dead letters", "warn", f"{count} events could not be handled", "see `lorebus runs --status dead`")
    return Check("dead letters", "ok", "none")


def judge_readiness(readiness: Readiness, address: str) -> list[Check]:
    if not address:
        detail = "no health address is known, so /readyz was not asked"
        return [Check("services", "warn", detail, "set LOREBUS_HEALTH_PORT for the services and ask them yourself")]
    if readiness.fault:
        return [Check("services", "fail", f"{address}/readyz: {readiness.fault}", START)]
    return [_judge_service(name, parts) for name, parts in readiness.services.items()]


def _judge_service(name: str, parts: Mapping[str, str]) -> Check:
    broken = [f"{part}: {state}" for part, state in parts.items() if state != "ok"]
    if broken:
        return Check(
            f"{name} is ready", "fail", ", ".join(broken), f"see the checks of that part and the log of {name}"
        )
    return Check(f"{name} is ready", "ok", "database, bus and streams work")


def is_healthy(checks: Sequence[Check]) -> bool:
    return all(check.state != "fail" for check in checks)

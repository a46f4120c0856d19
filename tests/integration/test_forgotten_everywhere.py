"""A marker that came in every way there is, and was forgotten: it is found nowhere.

Tables, recall, search, explain, facts, logs, the streams and the very bytes of the bus's files.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import nats
import pytest
import sqlalchemy as sa
from channel_talk import REPLY, change, id_of, open_channel, tell_messages, tell_turn
from conftest import LEASE_SECONDS, LOG_FILE, Installation, ci_run, dump_database, run_services
from forgettable import active_ids, forget, ids_of, save
from lorebus.contracts.subjects import MEMORY_WRITE, RUN_FINISHED
from nats.aio.client import Client

from libs.common.bus.streams import STREAMS
from libs.common.database import create_engine
from libs.common.inbox import payload_hash
from libs.common.provision import provision
from libs.common.schema import bus_erasures, dead_letters, evidence_parts, inbox, inbox_copies
from libs.common.settings import CommonSettings
from libs.embedded.stack import EmbeddedStack
from services.consolidator.app import PROGRAM as CONSOLIDATOR
from services.consolidator.forgetting.erasing import Erasing
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER

FOLDER = "forgotten"
LOG = "Error: Cannot find module '{marker}'\nnpm ERR! code ELIFECYCLE\n"


@pytest.fixture(scope="module")
async def own(open_folder: Path) -> AsyncIterator[CommonSettings]:
    """Servers of the module's own: nobody else's messages lie in these files."""
    async with EmbeddedStack(open_folder / FOLDER, durable=False) as stack:
        settings = CommonSettings(database_url=stack.database_url, nats_url=stack.nats_url, lease_seconds=LEASE_SECONDS)
        await provision(settings)
        yield settings


@pytest.fixture(scope="module")
async def memory(own: CommonSettings, servers: CommonSettings) -> AsyncIterator[Installation]:
    """All services."""
    async with run_services(own, GATE, WRITER, RECALL, CONSOLIDATOR) as installation:
        yield installation


@pytest.fixture
async def client(own: CommonSettings) -> AsyncIterator[Client]:
    client = await nats.connect(own.nats_url)
    yield client
    await client.close()


def transcript_with(marker: str) -> list[dict[str, object]]:
    """A session that failed on it, too long to travel inside its run."""
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"npm test {marker}"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": f"exit 1: {marker} " * 40_000}
    lines = [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    data = "\n".join(map(json.dumps, lines))
    return [
        {
            "id": "session",
            "activity_type": "executeImplementation",
            "format": "claude-code-jsonl",
            "closed_at": datetime.now(UTC).isoformat(),
            "parts": [{"data": base64.b64encode(data.encode()).decode(), "encoding": "identity"}],
        }
    ]


async def cleared(memory: Installation, seconds: float = 30) -> None:
    """Once nothing is left to erase on the bus."""
    async with asyncio.timeout(seconds):
        while await memory.rows(sa.select(bus_erasures)):  # noqa: ASYNC110 - rows tell nobody that they went
            await asyncio.sleep(0.05)


async def held_by_streams(client: Client) -> bytes:
    """Every byte of every message that a stream gives out."""
    jetstream = client.jetstream()
    held: list[bytes] = []
    for stream in STREAMS:
        name = stream.name or ""
        state = (await jetstream.stream_info(name)).state
        for sequence in range(max(1, state.first_seq), state.last_seq + 1):
            try:
                message = await jetstream.get_msg(name, sequence)
            except nats.js.errors.NotFoundError:
                continue
            held.append((message.data or b"") + str(message.headers).encode())
    return b"\n".join(held)


def stored_bytes(folder: Path) -> bytes:
    """What the files of the bus hold."""
    files = [path for path in (folder / FOLDER / "nats").rglob("*") if path.is_file() and "store" in path.parts]
    assert files
    return b"\n".join(path.read_bytes() for path in files)


async def test_a_marker_that_came_in_every_way_is_found_nowhere_once_it_is_forgotten(
    memory: Installation, client: Client, repository: str, open_folder: Path
) -> None:
    marker = f"zanzi{uuid4().hex[:12]}"
    run = ci_run(repository, LOG.format(marker=marker), event_id=uuid4().hex, transcripts=transcript_with(marker))
    event = await memory.publish(run)
    saved = await save(memory, repository, f"The {marker} needs a flag.", rationale=f"Seen: {marker}.")
    published = await memory.memory.note(repository=repository, writer="shellStep", summary=f"Install {marker} first.")
    noted = await memory.end_of(published.event_id)
    dead_id = await bury_a_dead_letter(memory, client, marker)
    orphan_id = await put_evidence_of_a_run_that_never_comes(memory, marker)
    everything = await dump_database(memory.engine)
    assert everything.count(marker) >= 4
    assert marker.encode().hex() in everything, "dead letters and evidence are bytes"
    assert marker.encode() in await held_by_streams(client)
    assert marker.encode() in stored_bytes(open_folder)

    memories = [*event.item_ids, saved, *noted.item_ids]
    told = await forget(memory, ids=memories)
    assert set(ids_of(told, "deleted")) == set(memories)
    await forget(memory, event_ids=[dead_id, orphan_id])
    await cleared(memory)

    await nothing_is_left(memory, client, open_folder, marker)
    await nothing_is_recalled(memory, repository, marker, memories)


async def test_what_a_person_said_in_a_channel_is_found_nowhere_once_the_person_is_forgotten(
    memory: Installation, client: Client, open_folder: Path
) -> None:
    marker, person = f"zanzi{uuid4().hex[:12]}", f"U{uuid4().hex}"
    channel = open_channel(memory)
    await change(channel, passive_ingest_enabled=True)
    turn = await tell_turn(memory, channel, user_id=person, reply=f"{REPLY} Ask {marker} about it.")
    said = {"ts": "1", "user_id": person, "text": f"We decided to freeze deploys of {marker} on Fridays."}
    page = await tell_messages(memory, channel, [said])
    await channel.edit(id_of(turn), actor="admin", summary=f"The rollback of {marker} takes about four minutes.")
    assert (await dump_database(memory.engine)).count(marker) >= 3
    told = await forget(memory, person=person)
    assert set(ids_of(told, "deleted")) == {id_of(turn), id_of(page)}
    await cleared(memory)
    await nothing_is_left(memory, client, open_folder, marker)


async def test_what_an_agent_saved_in_a_project_is_found_nowhere_once_it_is_forgotten(
    memory: Installation, client: Client, open_folder: Path
) -> None:
    marker = f"zanzi{uuid4().hex[:12]}"
    entry = {"schema": "memory.write", "kind": "entry", "event_id": uuid4().hex, "project": uuid4().hex}
    said = entry | {"content": f"The {marker} needs a flag.", "tags": [marker], "metadata": {"seen": marker}}
    await client.jetstream().publish(MEMORY_WRITE, json.dumps(said).encode())
    event = await memory.end_of(entry["event_id"])
    assert (await dump_database(memory.engine)).count(marker) >= 3
    await forget(memory, ids=list(event.item_ids))
    await cleared(memory)
    await nothing_is_left(memory, client, open_folder, marker)


async def nothing_is_left(memory: Installation, client: Client, folder: Path, marker: str) -> None:
    """In tables, the streams, their files, and the log."""
    after = await dump_database(memory.engine)
    assert marker not in after
    assert marker.encode().hex() not in after, "dead letters and evidence are bytes"
    assert marker.encode() not in await held_by_streams(client)
    assert marker.encode() not in stored_bytes(folder)
    assert marker not in (folder / LOG_FILE).read_text()


async def nothing_is_recalled(memory: Installation, repository: str, marker: str, ids: list[UUID]) -> None:
    recalled = await memory.recall(repository, f"cannot find module {marker}", similarity_min=0)
    found = await memory.memory.search(marker, repository=repository, deadline_seconds=5)
    assert (recalled.items, recalled.degraded, found.lessons, found.degraded) == ([], False, [], False)
    for id_ in ids:
        explained = await memory.memory.explain(str(id_), deadline_seconds=5)
        assert (explained.lesson, explained.degraded) == (None, False)
    assert await active_ids(memory, repository) == set()


async def bury_a_dead_letter(memory: Installation, client: Client, marker: str) -> str:
    body = json.dumps({"run_id": "r", "outcome": "CI_FAILED", "note": marker}).encode()
    await client.jetstream().publish(RUN_FINISHED, body)
    event_id = f"sha256:{payload_hash(body)}"
    assert (await memory.end_of(event_id)).status == "dead"
    assert len(await memory.rows(sa.select(dead_letters).filter_by(event_id=event_id))) == 1
    return event_id


async def put_evidence_of_a_run_that_never_comes(memory: Installation, marker: str) -> str:
    event_id = uuid4().hex
    await put_evidence(memory, event_id, marker)
    assert len(await memory.rows(sa.select(evidence_parts).filter_by(event_id=event_id))) == 1
    return event_id


async def put_evidence(memory: Installation, event_id: str, text: str) -> None:
    data = text.encode()
    question = {"event_id": event_id, "sha256": hashlib.sha256(data).hexdigest()}
    question["data"] = base64.b64encode(data).decode()
    reply = await memory.memory.connection.client.request("evidence.put", json.dumps(question).encode(), timeout=5)
    assert json.loads(reply.data)["ref"] == question["sha256"]


async def test_a_message_that_a_stream_holds_twice_is_erased_twice(
    memory: Installation, client: Client, repository: str
) -> None:
    marker = f"zanzi{uuid4().hex[:12]}"
    run = ci_run(repository, LOG.format(marker=marker), event_id=uuid4().hex)
    event = await memory.publish(run)
    await client.jetstream().publish(RUN_FINISHED, json.dumps(run).encode())
    await memory.until(sa.select(inbox_copies).filter_by(event_id=event.event_id))
    assert (await held_by_streams(client)).count(marker.encode()) == 2
    await forget(memory, ids=list(event.item_ids))
    await cleared(memory)
    assert marker.encode() not in await held_by_streams(client)


async def test_a_copy_that_turns_up_later_is_erased_as_well(
    memory: Installation, client: Client, repository: str
) -> None:
    marker = f"zanzi{uuid4().hex[:12]}"
    run = ci_run(repository, LOG.format(marker=marker), event_id=uuid4().hex)
    event = await memory.publish(run)
    await forget(memory, ids=list(event.item_ids))
    await client.jetstream().publish(RUN_FINISHED, json.dumps(run).encode())
    await memory.facts("event_conflict", event_id=event.event_id)  # it was delivered: its bytes differ a little
    await Erasing(memory.engine, client).erase()
    await cleared(memory)
    assert marker.encode() not in await held_by_streams(client)


async def test_evidence_put_for_a_forgotten_event_is_taken_and_not_kept(memory: Installation) -> None:
    marker = uuid4().hex
    event_id = await put_evidence_of_a_run_that_never_comes(memory, marker)
    await forget(memory, event_ids=[event_id])
    await put_evidence(memory, event_id, marker)
    assert await memory.rows(sa.select(evidence_parts).filter_by(event_id=event_id)) == []


async def test_a_command_that_names_a_person_leaves_its_stream_as_well(memory: Installation, client: Client) -> None:
    person = f"U{uuid4().hex}"
    await forget(memory, person=person)
    await cleared(memory)
    assert person.encode() not in await held_by_streams(client)


async def test_a_bus_that_is_away_is_asked_again(apart: CommonSettings) -> None:
    """Nobody but the test erases here."""
    engine = create_engine(apart.database_url, "tests")
    client, away = [await nats.connect(apart.nats_url) for _ in range(2)]
    await away.close()
    await client.jetstream().publish(RUN_FINISHED, b"{}")
    row = await row_of(client, 1)
    async with engine.begin() as connection:
        await connection.execute(sa.insert(bus_erasures).values(row))
    with pytest.raises(nats.errors.Error):
        await Erasing(engine, away).erase()
    counts = [await Erasing(engine, client).erase() for _ in range(2)]
    left = (await client.jetstream().stream_info("RUNS")).state.messages
    await client.close()
    await engine.dispose()
    assert (counts, left) == ([1, 0], 0)


async def test_a_message_that_has_the_number_in_a_stream_made_anew_is_left_alone(
    memory: Installation, client: Client, repository: str
) -> None:
    event = await memory.publish(ci_run(repository, LOG.format(marker=f"innocent{uuid4().hex}")))
    [place] = await memory.rows(sa.select(inbox.c.stream, inbox.c.stream_sequence).filter_by(event_id=event.event_id))
    async with memory.engine.begin() as connection:
        row = place | {"published_at": datetime(2026, 1, 1, tzinfo=UTC)}
        await connection.execute(sa.insert(bus_erasures).values(row))
    await Erasing(memory.engine, client).erase()
    await cleared(memory)
    assert (await row_of(client, place["stream_sequence"]))["stream"] == "RUNS"


async def row_of(client: Client, sequence: int) -> dict[str, object]:
    """The message as the list of erasures names it. Raises NotFoundError where the stream does not hold it."""
    message = await client.jetstream().get_msg("RUNS", sequence)
    return {"stream": "RUNS", "stream_sequence": sequence, "published_at": message.time}

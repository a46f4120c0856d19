"""Transcripts that are too large for their run's message: put ahead by the client, kept by a real writer."""

import base64
import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats
import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, run_services
from lorebus import EventNotAcknowledged, Lorebus, Published, TranscriptFiles
from lorebus.contracts.evidence import PART_BYTES_MAX, PutEvidence, PutEvidenceReply
from lorebus.contracts.runs import Transcript

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import create_engine
from libs.common.domain.setting_keys import TRANSCRIPT_CAPTURE_ENABLED, TRANSCRIPT_MAX_BYTES
from libs.common.schema import evidence_parts, inbox
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.writer.app import PROGRAM as WRITER

MIB = 1024 * 1024
LOG = "Error: Cannot find module 'left-pad'\n    at Function.Module._resolveFilename (module.js:336:15)\n"


def session(size: int, seed: int = 1) -> bytes:
    """Lines of JSON that pack to about half."""
    chance = random.Random(seed)
    return b"".join(b'{"said": "%s"}\n' % chance.randbytes(500).hex().encode() for _ in range(size // 1_014 + 1))[:size]


def transcript(content: bytes, name: str = "t1", **fields: Any) -> dict[str, Any]:
    part = {"sha256": hashlib.sha256(content).hexdigest(), "data": base64.b64encode(content).decode()}
    return {"id": name, "format": "claude-code-jsonl", "closed_at": "2026-11-30T12:00:00Z", "parts": [part], **fields}


def large_run(repository: str, *transcripts: dict[str, Any]) -> dict[str, Any]:
    return ci_run(repository, LOG, event_id=str(uuid4()), transcripts=list(transcripts))


async def stored_run(settings: CommonSettings, published: Published) -> dict[str, Any]:
    client = await nats.connect(settings.nats_url)
    message = await client.jetstream().get_msg("RUNS", published.sequence)
    await client.close()
    return json.loads(message.data or b"")


async def parts_of(installation: Installation, event_id: str) -> dict[str, bytes]:
    query = sa.select(evidence_parts.c.sha256, evidence_parts.c.data).filter_by(event_id=event_id)
    return {row["sha256"]: bytes(row["data"]) for row in await installation.rows(query)}


async def set_up(settings: CommonSettings, name: str, value: object) -> None:
    engine = create_engine(settings.database_url, "tests")
    await AdministeredSettings(engine).set(name, value, tenant="default", actor="tests")
    await engine.dispose()


async def test_a_large_transcript_is_named_by_its_run_and_kept_until_the_event_ends(
    other_bus: CommonSettings, repository: str
) -> None:
    content = session(3 * MIB)
    run = large_run(repository, transcript(content))
    async with run_services(other_bus, WRITER) as installation:  # without a gate the event stays open
        published = await installation.memory.publish_run(run)
        assert published.left_out == ()
        [carried] = (await stored_run(other_bus, published))["transcripts"]
        refs = [part["ref"] for part in carried["parts"]]
        parts = await parts_of(installation, published.event_id)
    assert refs == [part["sha256"] for part in carried["parts"]]
    assert len(refs) >= 4
    assert parts.keys() == set(refs)
    assert all(len(data) <= PART_BYTES_MAX for data in parts.values())
    assert b"".join(gzip.decompress(parts[ref]) for ref in refs) == content
    async with run_services(other_bus, GATE, WRITER) as installation:
        assert (await installation.end_of(published.event_id)).status == "written"
        assert await parts_of(installation, published.event_id) == {}


async def test_publishing_a_large_run_again_changes_nothing(other_bus: CommonSettings, repository: str) -> None:
    run = large_run(repository, transcript(session(MIB)))
    async with run_services(other_bus, WRITER) as installation:
        first = await installation.memory.publish_run(run)
        before = await parts_of(installation, first.event_id)
        second = await installation.memory.publish_run(run)
        after = await parts_of(installation, first.event_id)
    assert second == Published(first.event_id, first.sequence, duplicate=True)
    assert before == after
    assert before


async def test_a_transcript_in_a_file_is_carried_in_the_way_that_fits(
    other_bus: CommonSettings, repository: str, tmp_path: Path
) -> None:
    (tmp_path / "small.jsonl").write_bytes(session(20_000))
    (tmp_path / "large.jsonl").write_bytes(session(3 * MIB))
    ways: list[set[str]] = []
    async with run_services(other_bus, WRITER) as installation:
        for name in ("small.jsonl", "large.jsonl"):
            files = TranscriptFiles(Transcript(id=name, format="claude-code-jsonl"), [tmp_path / name])
            published = await installation.memory.publish_run(large_run(repository), transcripts=[files])
            [carried] = (await stored_run(other_bus, published))["transcripts"]
            ways.append({key for part in carried["parts"] for key in part} & {"data", "ref"})
    assert ways == [{"data"}, {"ref"}]


async def test_without_a_writer_the_run_is_published_and_says_what_stayed_behind(
    other_bus: CommonSettings, repository: str
) -> None:
    small = transcript(session(20_000), "small", closed_at="2026-11-29T12:00:00Z")
    run = large_run(repository, transcript(session(MIB), "large"), small)
    async with Lorebus(other_bus.nats_url) as memory:
        published = await memory.publish_run(run, patience_seconds=0.5)
    carried = (await stored_run(other_bus, published))["transcripts"]
    assert published.left_out == ("transcript large: no service answers evidence.put",)
    assert [(one["id"], "data" in one["parts"][0]) for one in carried] == [("small", True)]


async def test_where_capture_is_off_the_run_is_published_without_transcripts(
    apart: CommonSettings, repository: str
) -> None:
    await set_up(apart, TRANSCRIPT_CAPTURE_ENABLED.name, False)
    async with run_services(apart, GATE, WRITER) as installation:
        published = await installation.memory.publish_run(large_run(repository, transcript(session(MIB))))
        assert (await installation.end_of(published.event_id)).status == "written"
        assert await installation.rows(sa.select(evidence_parts)) == []
    [left_out] = published.left_out
    assert "transcript t1: workflow.transcriptCaptureEnabled is off" in left_out
    assert (await stored_run(apart, published))["transcripts"] == []


async def test_a_transcript_above_what_an_event_may_hold_is_kept_up_to_there(
    apart: CommonSettings, repository: str
) -> None:
    await set_up(apart, TRANSCRIPT_MAX_BYTES.name, 700_000)
    async with run_services(apart, WRITER) as installation:
        published = await installation.memory.publish_run(large_run(repository, transcript(session(3 * MIB))))
        parts = await parts_of(installation, published.event_id)
    [carried] = (await stored_run(apart, published))["transcripts"]
    assert parts.keys() == {part["ref"] for part in carried["parts"]}
    assert sum(map(len, parts.values())) <= 700_000
    [left_out] = published.left_out
    assert left_out.startswith(f"transcript t1, after part {len(parts)}: the event holds 700000 bytes")


async def test_a_transcript_that_is_not_what_it_says_is_not_sent(other_bus: CommonSettings, repository: str) -> None:
    bad, good = transcript(session(MIB), "bad"), transcript(session(MIB, 2), "good")
    bad["parts"][0]["sha256"] = "0" * 64
    async with run_services(other_bus, WRITER) as installation:
        published = await installation.memory.publish_run(large_run(repository, bad, good))
        parts = await parts_of(installation, published.event_id)
    assert published.left_out == ("transcript bad: part 1 is not what its sha256 says",)
    [carried] = (await stored_run(other_bus, published))["transcripts"]
    assert carried["id"] == "good"
    assert parts.keys() == {part["ref"] for part in carried["parts"]}


async def test_a_tenants_parts_are_its_own(other_bus: CommonSettings, repository: str) -> None:
    async with run_services(other_bus, WRITER) as installation, Lorebus(other_bus.nats_url, "acme") as acme:
        published = await acme.publish_run(large_run(repository, transcript(session(MIB))))
        query = sa.select(evidence_parts.c.tenant).filter_by(event_id=published.event_id).distinct()
        assert await installation.rows(query) == [{"tenant": "acme"}]
        row = sa.select(inbox.c.tenant).filter_by(event_id=published.event_id)
        assert await installation.until(row) == [{"tenant": "acme"}]


async def test_a_writer_that_is_on_its_way_is_waited_for(other_bus: CommonSettings, repository: str) -> None:
    """The first puts meet a database that is down, as the writer says."""
    client = await nats.connect(other_bus.nats_url)
    asked: list[PutEvidence] = []

    async def respond(message: nats.aio.msg.Msg) -> None:
        asked.append(PutEvidence.model_validate_json(message.data))
        is_up = len(asked) > 2
        reply = PutEvidenceReply(ref=asked[-1].sha256) if is_up else PutEvidenceReply(error="store", reason="down")
        await message.respond(reply.model_dump_json().encode())

    await client.subscribe("evidence.put", cb=respond)
    await client.flush()
    async with Lorebus(other_bus.nats_url) as memory:
        published = await memory.publish_run(large_run(repository, transcript(session(MIB))))
    await client.close()
    assert published.left_out == ()
    assert [one.sha256 for one in asked[:3]] == [asked[0].sha256] * 3


async def test_without_a_bus_a_large_run_fails_as_soon_as_a_small_one(repository: str) -> None:
    async with Lorebus("nats://127.0.0.1:1") as memory:
        with pytest.raises(EventNotAcknowledged, match=r"could not be reached within 0\.3 s.*counts once"):
            await memory.publish_run(large_run(repository, transcript(session(MIB))), patience_seconds=0.3)

"""The command line against a real nats-server, with services that the test plays."""

import asyncio
import json
import re
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig
from typer.testing import CliRunner, Result

from cli.main import app
from libs.embedded.nats_server import EmbeddedNats

ROOT = Path(__file__).parents[2]
RUN = {"run_id": "r1", "repository": "acme/shop", "outcome": "CI_FAILED", "provenance": {"source": "x"}}
ITEM = {
    "id": "l1",
    "summary": "install [red]opencv\x1b[31m-headless",
    "failure_type": "IMPORT_ERROR",
    "low_confidence": True,
    "similarity": 0.91,
    "created_at": "2026-11-30T12:00:00Z",
    "run_id": "r1",
}
LESSON = {
    "id": "l1",
    "repository": "acme/shop",
    "status": "active",
    "summary": "install opencv",
    "rationale": "cv2 was missing",
    "created_at": "2026-11-30T12:00:00Z",
    "evidence": {"failed_command": "pytest"},
    "replaced": [{"id": "l0", "summary": "pin numpy"}],
}


@dataclass
class Bus:
    url: str
    client: Client
    folder: Path

    def write(self, name: str, **fields: Any) -> str:
        path = self.folder / name
        path.write_text(json.dumps(RUN | fields))
        return str(path)

    async def lorebus(self, *arguments: str, stdin: str | None = None) -> Result:
        env = {"LOREBUS_NATS_URL": self.url, "COLUMNS": "160"}
        return await asyncio.to_thread(CliRunner(env=env).invoke, app, list(arguments), input=stdin)

    @asynccontextmanager
    async def answering(self, subject: str, reply: object) -> AsyncIterator[list[dict[str, Any]]]:
        asked: list[dict[str, Any]] = []

        async def respond(message: Msg) -> None:
            asked.append(json.loads(message.data))
            await message.respond(json.dumps(reply).encode())

        subscription = await self.client.subscribe(subject, cb=respond)
        await self.client.flush()
        yield asked
        await subscription.unsubscribe()

    @asynccontextmanager
    async def writing(self, **facts: dict[str, Any]) -> AsyncIterator[None]:
        """A writer: tells this fact of each run, by run id."""

        async def write(message: Msg) -> None:
            run = json.loads(message.data)
            fact = dict(facts[run["run_id"]])
            named = {name: run[name] for name in ("event_id", "run_id", "repository")}
            await self.tell(fact.pop("kind"), named | fact)

        subscription = await self.client.subscribe("run.finished", cb=write)
        await self.client.flush()
        yield
        await subscription.unsubscribe()

    async def tell(self, kind: str, fact: dict[str, Any]) -> None:
        await self.client.jetstream().publish(f"memory.event.{kind}", json.dumps(fact).encode())


@pytest.fixture(scope="module")
async def cli_server() -> AsyncIterator[str]:
    top = Path(tempfile.mkdtemp(prefix="lorebus-cli-"))
    await asyncio.to_thread(top.chmod, 0o711)
    server = EmbeddedNats(top / "data", durable=False)
    yield await server.start()
    await server.stop()
    shutil.rmtree(top)


@pytest.fixture
async def bus(cli_server: str, tmp_path: Path) -> AsyncIterator[Bus]:
    client = await nats.connect(cli_server)
    stream = client.jetstream()
    streams = {"RUNS": ["run.finished", "run.finished.*"], "EVENTS": ["memory.event.>"]}
    for name, subjects in streams.items():
        await stream.add_stream(StreamConfig(name=name, subjects=subjects))
    yield Bus(cli_server, client, tmp_path)
    for name in streams:
        await stream.delete_stream(name)
    await client.close()


class TestPublish:
    async def test_runs_are_published_and_counted(self, bus: Bus):
        files = [bus.write(f"{name}.json", run_id=name) for name in ("a", "b")]

        first = await bus.lorebus("publish", *files)
        again = await bus.lorebus("publish", *files)

        assert (first.exit_code, first.stdout) == (0, "2 published, 0 failed\n")
        assert (again.exit_code, again.stdout) == (0, "2 published (2 of them known before), 0 failed\n")
        stored = json.loads((await bus.client.jetstream().get_msg("RUNS", 1)).data or b"")
        assert "provenance" not in stored

    async def test_a_bad_file_is_named_and_stops_no_other(self, bus: Bus):
        bad = bus.write("bad.json", repository="a b")
        result = await bus.lorebus("publish", bad, bus.write("good.json"), str(bus.folder / "none.json"))

        assert (result.exit_code, result.stdout) == (1, "1 published, 2 failed\n")
        assert re.search(r"bad\.json: not published: repository", result.stderr)
        assert re.search(r"none\.json: not published: .*No such file", result.stderr)

    async def test_json_tells_all_of_it(self, bus: Bus):
        given = [{"id": "t1", "format": "swe-agent-traj", "parts": [{"path": "nowhere"}]}]
        good, bad = bus.write("good.json", transcripts=given), bus.write("bad.json", outcome=7)

        result = await bus.lorebus("publish", "--json", good, bad)

        told = json.loads(result.stdout)
        assert result.exit_code == 1
        assert told["published"] == [
            {
                "file": good,
                "event_id": "r1:commitToMemory:CI_FAILED",
                "sequence": 1,
                "duplicate": False,
                "left_out": ["transcript 1: no file nowhere beside the run file or in its parent folder"],
                "outcome": None,
            }
        ]
        assert [failed["file"] for failed in told["failed"]] == [bad]

    async def test_waiting_shows_what_became_of_each_run(self, bus: Bus):
        files = [bus.write(f"{name}.json", run_id=name) for name in ("a", "b", "c")]
        facts = {
            "a": {"kind": "lesson_written", "id": "lesson-7"},
            "b": {"kind": "lesson_skipped", "reason": "nothing was rejected"},
            "c": {"kind": "lesson_refused", "patterns": ["override"]},
        }
        async with bus.writing(**facts):
            result = await bus.lorebus("publish", "--wait", *files)

        assert result.exit_code == 0
        for line in (r"a\.json +lesson written +lesson-7", r"b\.json .*nothing was rejected", r"c\.json .*override"):
            assert re.search(line, result.stdout)

    async def test_waiting_for_a_run_that_ended_long_ago_ends_at_once(self, bus: Bus):
        file = bus.write("a.json", run_id="a")
        async with bus.writing(a={"kind": "lesson_written", "id": "lesson-7"}):
            await bus.lorebus("publish", "--wait", file)

        result = await bus.lorebus("publish", "--wait", "--json", file)

        assert result.exit_code == 0
        [told] = json.loads(result.stdout)["published"]
        assert (told["duplicate"], told["outcome"]) == (True, {"kind": "lesson_written", "detail": "lesson-7"})

    @pytest.mark.parametrize("fact", [{"kind": "superseded"}, {"kind": "dead", "reason": "poison"}])
    async def test_a_run_that_comes_to_no_good_end_is_a_failure(self, bus: Bus, fact: dict[str, Any]):
        async with bus.writing(a=fact):
            result = await bus.lorebus("publish", "--wait", "--wait-seconds", "1", bus.write("a.json", run_id="a"))
        assert result.exit_code == 1
        assert re.search("still open|dead letter", result.stdout)

    async def test_a_bus_without_streams_is_named(self, bus: Bus):
        await bus.client.jetstream().delete_stream("EVENTS")
        result = await bus.lorebus("publish", "--wait", bus.write("a.json"))
        await bus.client.jetstream().add_stream(StreamConfig(name="EVENTS", subjects=["memory.event.>"]))
        assert result.exit_code == 1
        assert "lorebus migrate" in result.stderr


class TestRecall:
    async def test_items_are_shown_without_their_control_sequences(self, bus: Bus):
        async with bus.answering("recall.request", {"items": [ITEM], "block": "# lessons"}) as asked:
            result = await bus.lorebus("recall", "-r", "acme/shop", "--agent", "ci_fixer", "no cv2")

        assert result.exit_code == 0
        assert "0.91 IMPORT_ERROR low confidence" in result.stdout
        assert "[red]opencv\N{REPLACEMENT CHARACTER}[31m" in result.stdout
        assert (asked[0]["query"], asked[0]["agent"]) == ("no cv2", "ci_fixer")

    async def test_the_block_alone_for_a_query_from_stdin(self, bus: Bus):
        async with bus.answering("recall.request", {"items": [ITEM], "block": "# lessons"}) as asked:
            result = await bus.lorebus("recall", "-r", "acme/shop", "--block", "-", stdin="log of the build")
        assert (result.exit_code, result.stdout) == (0, "# lessons\n")
        assert asked[0]["query"] == "log of the build"

    async def test_what_a_rank_is_made_of_is_said_when_asked_for(self, bus: Bus):
        scores = {"similarity": 0.91, "coverage": 0.42, "fingerprint": True, "fused": 14.25}
        items = [ITEM | {"scores": scores}, ITEM | {"id": "l2", "variant_of": "l1", "scores": {"fused": 3.0}}]
        async with bus.answering("recall.request", {"items": items, "omitted": 2}) as asked:
            asking = ("recall", "-r", "acme/shop", "--mode", "lexical", "--tokens-max", "900", "q")
            plainly, fully = [await bus.lorebus(*asking, *more) for more in ((), ("--verbose",))]
        assert [(one["mode"], one["tokens_max"]) for one in asked] == [("lexical", 900)] * 2
        assert "similarity 0.91 · words 42% · same failure · rank 14.2" in fully.stdout
        assert "no vector · words 0% · rank 3.0" in fully.stdout
        assert "rank" not in plainly.stdout
        assert "variant of l1" in plainly.stdout
        assert "2 more would not fit" in plainly.stderr

    async def test_nothing_that_fits_is_said_plainly(self, bus: Bus):
        async with bus.answering("recall.request", {"items": []}):
            result = await bus.lorebus("recall", "-r", "acme/shop", "q")
        assert result.exit_code == 0
        assert "Nothing that acme/shop has learned fits" in result.stdout

    async def test_a_degraded_answer_says_what_is_down(self, bus: Bus):
        async with bus.answering("recall.request", {"degraded": True, "reason": "gate"}):
            result = await bus.lorebus("recall", "-r", "acme/shop", "q")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "the gate is down" in result.stderr

    async def test_items_of_a_degraded_answer_still_count(self, bus: Bus):
        async with bus.answering("recall.request", {"items": [ITEM], "degraded": True, "reason": "embedder"}):
            result = await bus.lorebus("recall", "-r", "acme/shop", "--json", "q")
        assert (result.exit_code, json.loads(result.stdout)["items"][0]["id"]) == (0, "l1")
        assert "embedder" in result.stderr


class TestExplain:
    async def test_a_lesson_with_its_past(self, bus: Bus):
        async with bus.answering("recall.explain", {"lesson": LESSON}) as asked:
            result = await bus.lorebus("explain", "l1")
        assert result.exit_code == 0
        assert asked == [{"lesson_id": "l1"}]
        for text in ("acme/shop", "cv2 was missing", "failed_command", "l0 pin numpy"):
            assert text in result.stdout

    async def test_no_such_lesson_is_a_failure(self, bus: Bus):
        async with bus.answering("recall.explain", {"lesson": None}):
            result = await bus.lorebus("explain", "l2", "-r", "acme/shop")
        assert result.exit_code == 1
        assert "no lesson l2 in acme/shop" in result.stderr


class TestTap:
    @pytest.mark.parametrize("style", ["--json", "--all"])
    async def test_facts_come_live_and_ctrl_c_ends_it_cleanly(self, bus: Bus, style: str):
        await bus.tell("lesson_written", {"id": "l1", "repository": "acme/shop"})
        arguments = ("-m", "cli", "tap", "--all", "lesson_written", "--nats-url", bus.url, style)
        tap = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE, stderr=PIPE, cwd=ROOT)
        assert tap.stdout

        async with asyncio.timeout(30):
            first = (await tap.stdout.readline()).decode()
            await bus.tell("lesson_skipped", {})
            await bus.tell("lesson_written", {"id": "l2", "repository": "acme/shop"})
            second = (await tap.stdout.readline()).decode()
        tap.send_signal(signal.SIGINT)
        _, errors = await tap.communicate()

        assert "l1" in first
        assert "l2" in second
        assert "Traceback" not in errors.decode()
        assert tap.returncode == 0
        if style == "--json":
            assert json.loads(second)["payload"] == {"id": "l2", "repository": "acme/shop"}

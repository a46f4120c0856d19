"""`lorebus demo` as a person runs it: in a process of its own, twice, the second time after kill -9."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 180.0
QUESTIONS = json.loads((ROOT / "examples" / "questions.json").read_text())


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lorebus-demo-"))
    folder.chmod(0o711)
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)


async def start_demo(data: Path, *options: str) -> Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOREBUS_")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", "demo", "--data", str(data), *options,
        stdout=PIPE, stderr=STDOUT, cwd=ROOT, env=environment | {"COLUMNS": "80", "TERM": "dumb"},
    )  # fmt: skip


async def finish(process: Process) -> tuple[int | None, str]:
    async with asyncio.timeout(SECONDS_MAX):
        output, _ = await process.communicate()
    return process.returncode, output.decode()


def assert_whole(output: str) -> None:
    """Eight runs with their ends, what each question gets, the hostile run refused."""
    rows = {line.split()[0]: line for line in output.splitlines() if line.split()}
    assert "nothing to learn" in rows["pydicom-not-merged"]
    assert "replaced by a newer" in rows["shiny-stale-build-1"]
    for run in ("freecad-review", "langflow-merged", "openface-no-opencv", "patterns-java-11", "shiny-stale-build-2"):
        assert "lesson written" in rows[run]
    answers = output.split(" asks:")[1:]
    assert len(answers) == len(QUESTIONS) == 5
    for answer, words in zip(
        answers,
        ("rebuild the JavaScript", "import error", "the review asks for", "runtime", "Nothing fits"),
        strict=True,
    ):
        assert words in answer
    assert "<recalled_memory>" in output
    assert "refused by the gate: override.earlier-instructions" in output
    assert "gets no lessons" in " ".join(output.split())
    assert all(len(line) <= 80 for line in output.splitlines())


async def test_shows_the_product_and_stops(data: Path) -> None:
    code, output = await finish(await start_demo(data))
    assert code == 0, output
    assert_whole(output)
    assert "were known from an earlier demo" not in output
    assert not (data / "endpoints.json").exists()


async def test_works_again_after_kill_9_and_knows_the_runs(data: Path) -> None:
    killed = await start_demo(data)
    assert killed.stdout is not None
    async with asyncio.timeout(SECONDS_MAX):
        async for line in killed.stdout:
            if b"are published" in line:
                break
    killed.send_signal(signal.SIGKILL)
    await killed.wait()
    code, output = await finish(await start_demo(data))
    assert code == 0, output
    assert_whole(output)
    assert "8 of 8 were known from an earlier demo" in output


async def test_stops_at_a_signal(data: Path) -> None:
    process = await start_demo(data)
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS_MAX):
        async for line in process.stdout:
            if b"data in" in line:
                break
    process.send_signal(signal.SIGTERM)
    code, _ = await finish(process)
    assert code in (0, 130)
    assert not (data / "endpoints.json").exists()


async def test_names_the_option_where_there_are_no_runs(data: Path, tmp_path: Path) -> None:
    code, output = await finish(await start_demo(data, "--runs", str(tmp_path)))
    assert code == 1
    assert "--runs" in output
    assert "Traceback" not in output

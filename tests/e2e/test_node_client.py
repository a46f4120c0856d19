"""A client in another language, which speaks HTTP alone, goes through its whole loop against `lorebus up`."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CLIENT = Path(__file__).with_name("agentmemory_client.mjs")
SECRET = "the secret of the drop-in surface"
NODE = shutil.which("node")


@pytest.fixture
def data() -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="lorebus-node-"))
    top.chmod(0o711)
    yield top / "data"
    shutil.rmtree(top)


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
async def test_a_node_client_opens_saves_searches_forgets_closes_and_lists(data: Path) -> None:
    environment = os.environ | {"LOREBUS_API_SECRET": SECRET}
    command = [sys.executable, "-m", "cli", "up", "--data", str(data)]
    quiet = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.PIPE}
    machine = await asyncio.create_subprocess_exec(*command, **quiet, env=environment)
    try:
        async with asyncio.timeout(90):
            ready = (await machine.stdout.readline()).decode()
        address = json.loads((data / "endpoints.json").read_text())["api"]
        client = await asyncio.create_subprocess_exec(
            str(NODE), str(CLIENT), f"{address}/", SECRET, **quiet, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(120):
            told, fault = await client.communicate()
    finally:
        machine.send_signal(signal.SIGTERM)
        ended = await machine.wait()
    assert f"api={address}" in ready
    assert told.decode().strip() == "health open save search context forget close list", fault.decode()
    assert ended == 0

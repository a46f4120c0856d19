"""Transcripts made for tests, and the digest of them."""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from lorebus.contracts.runs import Transcript

from services.writer.transcripts.deadline import Deadline
from services.writer.transcripts.digest import Digest
from services.writer.transcripts.formats import FORMATS
from services.writer.transcripts.reading import build_digest
from services.writer.transcripts.records import Group

ENDLESS = Deadline(lambda: 0.0, 1.0)


def nothing_put(ref: str) -> bytes:
    raise KeyError(ref)


def unchanged(text: str) -> str:
    return text


def part(content: bytes, encoding: str = "identity", **fields: Any) -> dict[str, Any]:
    carried = gzip.compress(content) if encoding == "gzip" else content
    made = {"sha256": hashlib.sha256(carried).hexdigest(), "data": base64.b64encode(carried).decode()}
    return {"encoding": encoding, **made, **fields}


def transcript(*contents: bytes, **fields: Any) -> Transcript:
    made = {
        "id": "t1",
        "activity_type": "executeImplementation",
        "closed_at": "2026-01-02T03:04:05Z",
        "format": "claude-code-jsonl",
        "parts": [part(content) for content in contents],
    }
    return Transcript.model_validate({**made, **fields})


def digest_of(*transcripts: Transcript, clean: Callable[[str], str] = unchanged) -> Digest:
    return build_digest(transcripts, nothing_put, clean, ENDLESS)


def lines(*records: Any) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode() + b"\n"


def groups(name: str, content: bytes, chunk_bytes: int = 1 << 20) -> list[Group]:
    return list(FORMATS[name].read(chunked(content, chunk_bytes)))


def chunked(content: bytes, chunk_bytes: int) -> Iterator[bytes]:
    return (content[start : start + chunk_bytes] for start in range(0, len(content), chunk_bytes))


class Claude:
    """Lines of a Claude Code session."""

    def __init__(self) -> None:
        self._calls = 0

    def use(self, tool: str, result: str, *, is_error: bool = False, **arguments: Any) -> bytes:
        self._calls += 1
        call_id = f"toolu_{self._calls}"
        call = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": call_id, "content": result, "is_error": is_error}
        return lines(
            {"type": "assistant", "message": {"role": "assistant", "content": [call]}},
            {"type": "user", "message": {"role": "user", "content": [answer]}},
        )

    def run(self, command: str, result: str, *, is_error: bool = False) -> bytes:
        return self.use("Bash", result, is_error=is_error, command=command)

    def say(self, text: str, **fields: Any) -> bytes:
        content = [{"type": "text", "text": text}]
        return lines({"type": "assistant", "message": {"role": "assistant", "content": content}, **fields})

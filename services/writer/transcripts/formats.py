"""The formats that can be read. A further one is a file like its neighbours, and a line here."""

from collections.abc import Mapping

from services.writer.transcripts import aider, claude_code, codex, mastra, openhands, swe_agent
from services.writer.transcripts.records import Format

FORMATS: Mapping[str, Format] = {
    "claude-code-jsonl": claude_code.FORMAT,
    "mastra-jsonl": mastra.FORMAT,
    "swe-agent-traj": swe_agent.FORMAT,
    "openhands-events": openhands.FORMAT,
    "codex-rollout-jsonl": codex.FORMAT,
    "aider-chat-history-md": aider.FORMAT,
}

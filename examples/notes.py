"""Leaves notes: one in your own words, and one of a step that ran a command, whose credential stays here.

    lorebus up --nats-port 4222
    python examples/notes.py

Where the bus is elsewhere, LOREBUS_NATS_URL names it. Running it again is safe: each note counts once.
"""

import asyncio

from lorebus import Lorebus
from lorebus.writers import record_shell_step

REPOSITORY = "acme/shop"
RUN_ID = "example-notes-1"


async def main() -> None:
    async with Lorebus() as memory:
        reply = await memory.save_note(
            repository=REPOSITORY,
            writer="release-bot",
            run_id=RUN_ID,
            event_id=f"{RUN_ID}:tags",
            summary="Release tags are made by CI alone; a tag pushed by hand breaks the release job.",
            rationale="Two tags of one name broke release 1.4.",
        )
        print("the memory's id:", reply.id or f"none ({reply.error}: {reply.reason})")

        await record_shell_step(
            memory,
            repository=REPOSITORY,
            run_id=RUN_ID,
            command="GITHUB_TOKEN=opensesame scripts/update_licences.sh --all",
            exit_code=0,
            pushed=True,
            branch="chore/licences",
            committed_sha="9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c",
            files_changed=["LICENSES.md", "web/licences.json"],
            secrets=["opensesame"],
        )

        recalled = await memory.recall("update the licences of our dependencies", repository=REPOSITORY)
        print(recalled.block or recalled.reason or "nothing fits yet: notes become memories in a moment")


if __name__ == "__main__":
    asyncio.run(main())

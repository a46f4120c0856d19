"""A chat channel's assistant with a memory: it asks before it answers, and tells afterwards what it answered.

    lorebus up --nats-port 4222
    python examples/channel_bot.py

The second question is answered from what the first one left. Where the bus is elsewhere, LOREBUS_NATS_URL names it.
"""

import asyncio

from lorebus import ChatChannel, Lorebus, Tap

WAIT_SECONDS = 10.0

TALK = (
    ("U1", "How do I roll back payments?", "Run `shipit rollback payments` on the bastion, then restart the ledger."),
    ("U2", "payments is broken after the rollback, what now?", ""),
)


def answer(block: str, text: str) -> str:
    """Your model goes here. This one repeats what it was reminded of."""
    return f"As I remember:{block}" if block else f"Nobody has told me yet: {text}"


async def take_turn(channel: ChatChannel, user_id: str, text: str, known_reply: str = "") -> tuple[str, str]:
    """The reply, and the id under which it is told to the memory."""
    recalled = await channel.recall(text)
    reply = known_reply or answer(recalled.block, text)
    told = await channel.tell_turn(user_id=user_id, text=text, reply=reply)
    return reply, told.event_id


async def main(channel_id: str = "C024BE7LH", org_id: str = "acme") -> list[str]:
    replies: list[str] = []
    async with Lorebus() as memory, memory.events({"channel_written"}, since="start") as facts:
        channel = memory.channel(channel_id, org_id=org_id, team_id="payments")
        # What the chat says of its privacy counts now, and is the administrators' afterwards.
        await channel.register(is_private=False)
        for user_id, text, known_reply in TALK:
            reply, event_id = await take_turn(channel, user_id, text, known_reply)
            print(f"{user_id}: {text}\nbot: {reply}\n")
            replies.append(reply)
            if known_reply:
                await wait_written(facts, event_id)
    return replies


async def wait_written(facts: Tap, event_id: str) -> None:
    """Only this talk needs it, whose questions follow each other at once."""
    async with asyncio.timeout(WAIT_SECONDS):
        async for fact in facts:
            if fact.payload["event_id"] == event_id:
                return


if __name__ == "__main__":
    asyncio.run(main())

"""Hands one finished run to Lorebus and waits for what becomes of it.

    lorebus up --nats-port 4222
    python examples/publisher.py

Where the bus is elsewhere, LOREBUS_NATS_URL names it. Publishing the same run again is safe: it counts once.
"""

import asyncio

from lorebus import Lorebus

RUN = {
    "run_id": "example-1",
    "repository": "acme/shop",
    "outcome": "CI_FAILED",
    "ticket": {"title": "Show the price in the customer's currency"},
    "attempts": [
        {
            "kind": "ci",
            "log_tail": "tests/test_price.py:3: in <module>\n    import babel\n"
            "ModuleNotFoundError: No module named 'babel'\nERROR tests/test_price.py\n1 error in 0.41s",
        }
    ],
}


async def main() -> None:
    # The tap is entered first, and from the start: it also tells the end of a run that was published before.
    async with Lorebus() as memory, memory.events(since="start") as facts:
        published = await memory.publish_run(RUN)
        print("the bus has it:", published.event_id, "(known before)" if published.duplicate else "")
        async for fact in facts:
            if fact.payload.get("event_id") == published.event_id:
                print("what became of it:", fact.kind, fact.payload.get("id", ""))
                break


if __name__ == "__main__":
    asyncio.run(main())

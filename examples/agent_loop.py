"""An agent that asks before it works and tells afterwards: the second run knows what the first one ran into.

lorebus up --nats-port 4222
python examples/agent_loop.py
"""

import asyncio

from lorebus import Lorebus

REPOSITORY = "acme/invoices"
TICKETS = ("Show prices in the customer's currency with babel", "Format the dates of invoices with babel, too")
LOG = "tests/test_price.py:3: in <module>\n    import babel\nModuleNotFoundError: No module named 'babel'\n1 error"


def work(prompt: str) -> str:
    """Your agent goes here. This one fails unless its prompt says that the module is missing in CI."""
    return "COMPLETED" if "No module named 'babel'" in prompt else "CI_FAILED"


async def main() -> None:
    async with Lorebus() as memory, memory.events(since="start") as facts:
        for number, ticket in enumerate(TICKETS, start=1):
            # Answers within the deadline whatever is down, so an agent never waits for its memory.
            recalled = await memory.recall(ticket, repository=REPOSITORY, agent="implementer")
            prompt = f"{recalled.block}\n\nTask: {ticket}".strip()
            print(f"--- prompt of run {number} ---\n{prompt}\n")
            outcome = work(prompt)
            attempts = [{"kind": "ci", "log_tail": LOG}] if outcome == "CI_FAILED" else []
            run = {"run_id": f"invoices-{number}", "repository": REPOSITORY, "outcome": outcome, "attempts": attempts}
            published = await memory.publish_run({**run, "ticket": {"title": ticket}})
            async for fact in facts:
                if fact.payload.get("event_id") == published.event_id:
                    print(f"--- run {number}: {outcome}, {fact.kind} ---\n")
                    break


if __name__ == "__main__":
    asyncio.run(main())

"""Work behind the caller's back: bounded for the caller, finished where there is time, never a failure."""

import asyncio

import pytest
from lorebus.background import Background
from lorebus.errors import EventNotAcknowledged


async def test_the_caller_waits_for_what_is_quick():
    done: list[str] = []

    async def work() -> None:
        done.append("written")

    await Background().run(work(), "a note", 5)
    assert done == ["written"]


async def test_the_caller_goes_on_at_its_bound_and_the_work_too():
    released, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await released.wait()
        done.set()

    background = Background()
    await background.run(work(), "a note", 0.01)
    assert not done.is_set()
    released.set()
    await background.close(5)
    assert done.is_set()


async def test_leaving_waits_a_moment_only(caplog: pytest.LogCaptureFixture):
    background = Background()
    await background.run(asyncio.Event().wait(), "a note", 0.01)
    async with asyncio.timeout(5):
        await background.close(0.01)
    assert "a note: given up" in caplog.text


async def test_what_goes_wrong_is_logged_without_texts(caplog: pytest.LogCaptureFixture):
    async def work(error: Exception) -> None:
        raise error

    background = Background()
    await background.run(work(EventNotAcknowledged("the bus could not be reached")), "a note", 5)
    await background.run(work(ValueError("the secret text")), "a note", 5)
    assert caplog.messages == ["a note: the bus could not be reached", "a note: ValueError"]
    assert "the secret text" not in caplog.text


async def test_a_caller_that_is_cancelled_does_not_cancel_the_work():
    released, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await released.wait()
        done.set()

    background = Background()
    caller = asyncio.create_task(background.run(work(), "a note", 5))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait({caller})
    released.set()
    await background.close(5)
    assert done.is_set()

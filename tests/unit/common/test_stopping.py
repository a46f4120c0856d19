"""A stop comes to its end, whatever hangs."""

import asyncio

from libs.common.stopping import cancel, finish


async def stubborn(swallowed: int) -> None:
    """Swallows so many cancellations, as `wait_for` can."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if swallowed == 0:
                raise
            swallowed -= 1


async def test_a_task_that_swallows_cancellations_ends_all_the_same() -> None:
    task = asyncio.create_task(stubborn(swallowed=2))
    await asyncio.sleep(0)
    await cancel([task])
    assert task.cancelled()


async def test_a_task_that_fails_on_its_way_out_disturbs_nobody() -> None:
    async def fails() -> None:
        raise ValueError

    task = asyncio.create_task(fails())
    await cancel([task])
    assert task.done()


async def test_a_step_that_hangs_is_left_after_its_time() -> None:
    await finish(asyncio.Event().wait, 0.01, part="hangs")


async def test_a_step_that_fails_does_not_keep_the_others_from_their_turn() -> None:
    async def fails() -> None:
        raise ConnectionResetError

    await finish(fails, 1, part="fails")

"""When a process asks to be restarted, and when it may be given work."""

import pytest

from libs.common.health import DISCONNECTED_SECONDS_MAX, Health


class Link:
    is_up = True

    def __call__(self) -> bool:
        return self.is_up


async def fine() -> dict[str, str]:
    return {"database": "ok"}


async def broken() -> dict[str, str]:
    return {"database": "StoreUnavailable"}


def test_a_short_absence_from_the_bus_is_no_reason_to_restart() -> None:
    health, link = Health(started=0), Link()
    health.add("writer", fine, link)
    link.is_up = False
    assert health.is_alive(now=100)
    assert health.is_alive(now=100 + DISCONNECTED_SECONDS_MAX - 1)


def test_a_minute_off_the_bus_is_a_reason_to_restart() -> None:
    health, link = Health(started=0), Link()
    health.add("writer", fine, link)
    link.is_up = False
    assert health.is_alive(now=100)
    assert not health.is_alive(now=100 + DISCONNECTED_SECONDS_MAX)


def test_coming_back_starts_the_clock_again() -> None:
    health, link = Health(started=0), Link()
    health.add("writer", fine, link)
    for now, is_up in ((0, False), (50, True), (70, False)):
        link.is_up = is_up
        assert health.is_alive(now)
    assert health.is_alive(now=129)


@pytest.mark.parametrize(("check", "is_ready"), [(fine, True), (broken, False)])
async def test_ready_means_that_every_part_works(check: object, is_ready: bool) -> None:
    health = Health(started=0)
    health.add("writer", check, Link())
    health.mark_ready()
    assert (await health.report())[0] is is_ready


async def test_nothing_is_ready_before_all_services_have_started_and_once_they_stop() -> None:
    health = Health(started=0)
    health.add("writer", fine, Link())
    assert not (await health.report())[0]
    health.mark_ready()
    health.mark_stopping()
    assert not (await health.report())[0]

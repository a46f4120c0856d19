from datetime import UTC, datetime

import pytest

from libs.common.domain.cron import CHARS_MAX, find_last_slot, is_cron


@pytest.mark.parametrize(
    "text",
    ["0 3 * * 0", "*/15 * * * *", "0 0 1,15 * *", "30 4-6 * jan-mar MON", "0 9-17/2 * * 1-5", "5 0 31 12 7"],
)
def test_five_fields_within_their_bounds_are_a_schedule(text: str) -> None:
    assert is_cron(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0 3 * *",
        "0 3 * * 0 2026",
        "60 3 * * 0",
        "0 24 * * 0",
        "0 3 0 * *",
        "0 3 * 13 *",
        "0 3 * * 8",
        "0 3 * * mon-sun-tue",
        "5-1 3 * * *",
        "*/0 * * * *",
        "*/61 * * * *",
        "0 3 * * feb",
        "0 3 , * *",
        "0 3 * * -1",
        "@weekly",
        "٣ 3 * * 0",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert not is_cron(text)


def test_a_schedule_is_bounded() -> None:
    assert is_cron("0 3 * * " + ",".join(["1"] * 46))
    assert not is_cron("0 3 * * " + ",".join(["1"] * (CHARS_MAX // 2)))


@pytest.mark.parametrize(
    ("line", "slot"),
    [
        ("0 3 * * 0", "2026-11-29 03:00"),
        ("0 3 * * 7", "2026-11-29 03:00"),
        ("*/15 * * * *", "2026-11-30 02:00"),
        ("7 2 * * *", "2026-11-30 02:07"),
        ("8 2 * * *", "2026-11-29 02:08"),
        ("5/10 1-3 * * mon", "2026-11-30 02:05"),
        ("0 0 29 2 *", "2024-02-29 00:00"),
        ("30 4-6 * jan-mar MON", "2026-03-30 06:30"),
        ("0 0 1 * mon", "2026-11-30 00:00"),
        ("0 0 28 * fri", "2026-11-28 00:00"),
        ("0 0 */10 * fri", "2026-09-11 00:00"),
    ],
)
def test_the_last_slot_is_the_latest_minute_that_the_line_names(line: str, slot: str) -> None:
    now = datetime(2026, 11, 30, 2, 7, 30, tzinfo=UTC)
    assert find_last_slot(line, now) == datetime.fromisoformat(f"{slot}+00:00")


def test_a_day_that_never_comes_has_no_slot() -> None:
    assert find_last_slot("0 0 31 2 *", datetime(2026, 11, 30, tzinfo=UTC)) is None

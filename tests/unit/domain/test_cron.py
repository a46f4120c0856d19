import pytest

from libs.common.domain.cron import CHARS_MAX, is_cron


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

"""A dropped item is reported once an hour, whatever asks for it."""

from services.recall.drops import REMEMBERED_MAX, REPORT_EVERY_SECONDS, DropReports


def test_an_item_is_reported_once_within_the_hour() -> None:
    reports = DropReports()
    assert reports.due(["a"], now=0) == ["a"]
    assert reports.due(["a"], now=REPORT_EVERY_SECONDS - 1) == []


def test_other_items_are_still_reported() -> None:
    reports = DropReports()
    reports.due(["a"], now=0)
    assert reports.due(["a", "b"], now=1) == ["b"]


def test_after_an_hour_it_is_reported_again() -> None:
    reports = DropReports()
    reports.due(["a"], now=0)
    assert reports.due(["a"], now=REPORT_EVERY_SECONDS) == ["a"]


def test_only_so_many_are_remembered_the_oldest_is_forgotten_first() -> None:
    reports = DropReports()
    reports.due(["first"], now=0)
    reports.due([str(number) for number in range(REMEMBERED_MAX)], now=1)
    assert reports.due(["first", str(REMEMBERED_MAX - 1)], now=2) == ["first"]

"""Rates: a burst, then steadily so many; nobody pays for another."""

from services.api.rates import CALLERS_MAX, Rates


def test_a_burst_of_half_a_minute_passes_and_the_next_one_waits() -> None:
    rates = Rates(per_minute=60)
    assert [rates.wait_seconds("ann", 0.0) for _ in range(31)] == [0.0] * 30 + [1.0]


def test_waiting_as_told_is_enough() -> None:
    rates = Rates(per_minute=2)
    assert rates.wait_seconds("ann", 0.0) == 0
    wait = rates.wait_seconds("ann", 0.0)
    assert rates.wait_seconds("ann", wait) == 0


def test_a_refused_request_is_not_counted() -> None:
    rates = Rates(per_minute=2)
    waits = [rates.wait_seconds("ann", 0.0) for _ in range(5)]
    assert waits == [0, 30, 30, 30, 30]


def test_callers_do_not_pay_for_each_other() -> None:
    rates = Rates(per_minute=2)
    assert [rates.wait_seconds(name, 0.0) for name in ("ann", "bob", "ann")] == [0, 0, 30]


def test_who_has_not_asked_for_longest_is_forgotten_first() -> None:
    rates = Rates(per_minute=2)
    for number in range(CALLERS_MAX + 1):
        rates.wait_seconds(f"caller {number}", 0.0)
    assert rates.wait_seconds("caller 0", 0.0) == 0
    assert rates.wait_seconds(f"caller {CALLERS_MAX}", 0.0) == 30

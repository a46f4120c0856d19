"""How long a slow pattern is left out. Time is passed in, nothing sleeps."""

from services.gate.quarantine import Quarantine


def held_at(quarantine: Quarantine, now: float) -> bool:
    return "key" in quarantine.find_held(now)


def test_the_first_term_is_short() -> None:
    quarantine = Quarantine()
    assert quarantine.add("key", now=0.0)
    assert held_at(quarantine, 29.9)
    assert not held_at(quarantine, 30.0)


def test_a_quarantine_is_reported_once() -> None:
    quarantine = Quarantine()
    assert quarantine.add("key", now=0.0)
    assert not quarantine.add("key", now=1.0)
    assert quarantine.add("key", now=30.0)


def test_each_new_offence_doubles_the_term_up_to_the_longest() -> None:
    quarantine, now, terms = Quarantine(duration_seconds=100.0), 0.0, list[float]()
    for _ in range(4):
        quarantine.add("key", now)
        term = next(seconds for seconds in range(1_000) if not held_at(quarantine, now + seconds))
        terms.append(term)
        now += term
    assert terms == [30, 60, 100, 100]


def test_no_term_is_longer_than_configured() -> None:
    quarantine = Quarantine(duration_seconds=5.0)
    quarantine.add("key", now=0.0)
    assert not held_at(quarantine, 5.0)


def test_an_offence_is_forgotten_after_a_quiet_while() -> None:
    quarantine = Quarantine(duration_seconds=100.0)
    quarantine.add("key", now=0.0)
    assert not held_at(quarantine, 130.0)
    quarantine.add("key", now=130.0)
    assert not held_at(quarantine, 160.0)


def test_patterns_are_held_apart() -> None:
    quarantine = Quarantine()
    quarantine.add("key", now=0.0)
    quarantine.add("other", now=20.0)
    assert quarantine.find_held(now=40.0) == {"other"}

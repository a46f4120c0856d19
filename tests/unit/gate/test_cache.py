"""What the gate remembers of texts that it has judged."""

from services.gate.cache import VerdictCache, cache_key
from services.gate.scan import Scan


def test_a_whole_scan_is_found_again() -> None:
    cache, scan = VerdictCache(), Scan(("override.x",))
    cache.keep(b"key", scan)
    assert cache.find(b"key") is scan


def test_a_scan_that_was_not_whole_is_not_kept() -> None:
    cache = VerdictCache()
    cache.keep(b"key", Scan((), complete=False))
    assert cache.find(b"key") is None


def test_the_longest_unused_is_forgotten_first() -> None:
    cache = VerdictCache(verdicts_max=2)
    cache.keep(b"a", Scan())
    cache.keep(b"b", Scan())
    cache.find(b"a")
    cache.keep(b"c", Scan())
    assert (cache.find(b"a"), cache.find(b"b")) == (Scan(), None)


def test_two_tenants_never_share_a_verdict() -> None:
    assert cache_key("acme", "text") != cache_key("default", "text")


def test_tenant_and_text_cannot_run_into_each_other() -> None:
    assert cache_key("a", "bc") != cache_key("ab", "c")

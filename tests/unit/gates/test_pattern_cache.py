"""What is kept of what was compiled."""

from __future__ import annotations

from brainq.gates.patterns import PatternCache


def test_it_keeps_what_was_asked_for_last_within_its_bytes() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key

    cache = PatternCache[str](10, len)
    for key in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa"):
        assert cache.get(key, make) == key
    assert made == ["aaaa", "bbbb", "cccc"]
    assert cache.held_bytes == 8
    cache.get("bbbb", make)
    assert made[3:] == ["bbbb"], "it was forgotten, as nobody had asked for it for longest"
    cache.get("d" * 11, make)
    assert cache.get("bbbb", make) == "bbbb"
    assert made[4:] == ["d" * 11], "what is too large for it pushes nothing out"
    assert cache.held_bytes == 8

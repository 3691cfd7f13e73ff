"""A process keeps nothing of a turn that is over, beside caches that have a bound."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from functools import partial
from weakref import ReferenceType

import pytest

from brainq.adapters.redis import turns
from brainq.adapters.redis.conversations import Conversations
from brainq.engine.finalize import finalizer
from brainq.engine.finalize.recall import EndedTurnCache
from brainq.runtime.processes import timers
from lab.bench import brain as bench
from tests.support.pump import Pump

SMALL = 30_000  # bytes: full after the first turns
WARM_UP, WINDOW, WINDOWS = 20, 25, 6


def test_nothing_is_kept_of_a_turn_that_is_over(pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn is in a session of its own. One kept object of each would be `WINDOW` more in every window; what other
    threads of this process begin or end is not."""
    monkeypatch.setattr(turns, "Conversations", partial(Conversations, max_bytes=SMALL))
    # Ended turns leave with their chains: not even a large cache keeps one.
    monkeypatch.setattr(finalizer, "EndedTurnCache", partial(EndedTurnCache, max_bytes=100 * SMALL))
    monkeypatch.setattr(timers, "_TIDY_EVERY", 8)
    pump = pumps(bench.brain)
    numbers = iter(range(1_000))

    def work(count: int) -> Counter[str]:
        for _ in range(count):
            pump.submit(f"s{next(numbers)}", "Make one note of the first three days.")
            pump.drain()
            pump.bells.clear()
        gc.collect()
        return Counter(type(each).__qualname__ for each in gc.get_objects() if not _is_dead_reference(each))

    work(WARM_UP)
    counts = [work(WINDOW), work(WINDOW)]
    while max((counts[-1] - counts[-2]).values()) >= WINDOW and len(counts) <= WINDOWS:
        counts.append(work(WINDOW))
    grown = counts[-1] - counts[-2]
    assert max(grown.values()) < WINDOW, grown.most_common(5)


def _is_dead_reference(thing: object) -> bool:
    """sqlite3 keeps some of its cursors, up to 200 a connection."""
    return isinstance(thing, ReferenceType) and thing() is None  # pyright: ignore[reportUnknownVariableType]

"""A finalizer keeps ended turns until their chain ends, and no more of them than its bound in bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.view import EndedTurn
from brainq.engine.finalize.recall import EndedTurnCache
from tests.support.stand_in import stand_in
from tests.unit.engine.finalize.support import ended

LONG = "plain " * 3_000 + "😀"


class Chain:
    """Makes a turn of its own for each look."""

    def __init__(self, make: Callable[[], EndedTurn] = ended) -> None:
        self._make = make
        self.looks = 0

    def look(self, claim: FinalStepClaim) -> EndedTurn:
        self.looks += 1
        return self._make()

    def finish(self, claim: FinalStepClaim) -> str:
        return "FINISHED"


def claim_of(number: int) -> FinalStepClaim:
    return FinalStepClaim("s1", f"t{number}", "log", "me", 1, 1)


def fresh() -> str:
    return LONG.encode().decode()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ended(text=fresh()), id="text"),
        pytest.param(lambda: ended(user=fresh()), id="message"),
        pytest.param(lambda: ended(request={"history": [{"role": "user", "content": fresh()}]}), id="history"),
        pytest.param(lambda: ended(diff=fresh()), id="diff"),
        pytest.param(lambda: ended(context_pack_json=fresh()), id="pack"),
        pytest.param(lambda: ended(sources=({"source": "web", "quote": fresh()},)), id="sources"),
        pytest.param(ended, id="short"),
    ],
)
def test_ended_turns_take_no_more_than_their_bound(make: Callable[[], EndedTurn]) -> None:
    bound = 200_000
    kept = EndedTurnCache(stand_in(Chain(make)), max_bytes=bound)
    kept.turn(claim_of(-1))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(75):
            kept.turn(claim_of(number))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bound / 8 < held < bound * 1.2


def test_a_turn_is_read_once_until_its_chain_is_finished() -> None:
    chain = Chain()
    kept = EndedTurnCache(stand_in(chain))
    assert kept.turn(claim_of(1)) is kept.turn(claim_of(1))
    assert (kept.finish(claim_of(1)), chain.looks) == ("FINISHED", 1)
    kept.turn(claim_of(1))
    assert chain.looks == 2


def test_what_left_makes_room() -> None:
    """Else a cache that was full once would keep nothing for the rest of its process."""
    chain = Chain()
    kept = EndedTurnCache(stand_in(chain), max_bytes=20_000)
    for number in range(100):
        kept.turn(claim_of(number))
        kept.finish(claim_of(number))
    kept.turn(claim_of(1))
    kept.turn(claim_of(1))
    assert chain.looks == 101

"""Fronts that know nothing of moves submit all the time: each request key is one turn, and runs once."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from brainq.errors import TenantMoved
from tests.contrib.cells.two import TENANT, TwoCells

MOVES = 2
MOST = 30


class StaleFront(threading.Thread):
    """Asks the cell first that it last heard of, each request twice; believes anew only what a cell says."""

    def __init__(self, two: TwoCells, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._two = two
        self.over = threading.Event()
        self.accepted: dict[str, set[str]] = {}
        self.failures: list[Exception] = []

    def run(self) -> None:
        number = 0
        while not self.over.is_set() and number < MOST:
            number += 1
            key = f"{self.name}-{number}"
            for again in range(2):
                try:
                    self._submit("a", key, again)
                except Exception as failure:
                    self.failures.append(failure)
            self.over.wait(0.02)

    def _submit(self, cell: str, key: str, again: int) -> None:
        for _ in range(5):
            try:
                # An id of its own: what tells a repeated request is its key alone.
                made = self._two.submit(cell, f"acme:{key}", key, request_key=key, turn_id=f"{key}-{again}-{cell}")
            except TenantMoved as moved:
                cell = moved.cell
            else:
                self.accepted.setdefault(key, set()).add(made.turn_id)
                return
        raise AssertionError(f"{key} was sent on for ever")


@pytest.mark.full
def test_each_request_is_one_turn_that_runs_once(two: TwoCells) -> None:
    front = StaleFront(two, "front")
    front.start()
    mover = two.mover(wait_s=30.0)
    mover.watch = lambda _: two.drain()
    for at in range(MOVES):
        mover.move(TENANT, "ba"[at % 2])
    front.over.set()
    front.join()
    assert front.failures == []
    rows = two.a.wiring.store.turns
    two.assert_here("a", 1 + MOVES)
    turns = {key: rows.by_key(key) for key in front.accepted}
    assert all(turns.values())
    results = two.finish("a", *(turn for turn in turns.values() if turn))
    assert Counter(result.text for result in results) == Counter(f"done {key}" for key in front.accepted)
    assert two.rows("a")["turns"] == len(front.accepted)
    two.assert_gone_from("b", "a", 1 + MOVES)

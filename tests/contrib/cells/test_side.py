"""The order of what a move writes in a cell, and that each write is one that a mover may stop before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.cell import Placement
from brainq.contrib.cells.side import PAUSED_WHY, Acts, MoveSide


class Recorded:
    """A part of a side, which only notes what is done; what it is asked it answers from `answers`."""

    def __init__(self, name: str, log: list[str], **answers: Any) -> None:
        self._name, self._log, self._answers = name, log, answers

    def __getattr__(self, verb: str) -> Any:
        def act(*given: object) -> Any:
            if verb in self._answers:
                return self._answers[verb]
            self._log.append(f"{self._name}.{verb}")
            return 0

        return act


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def side(log: list[str]) -> MoveSide:
    parts: dict[str, Any] = {
        "rows": Recorded("sql", log, first_turns=[]),
        "keys": Recorded("keys", log, sessions=["acme:1"]),
        "words": Recorded("redis", log),
        "tombstones": Recorded("tombstones", log),
        "sessions": Recorded("sessions", log, why_paused=PAUSED_WHY),
        "budgets": Recorded("budgets", log),
    }
    database: Any = None
    return MoveSide(name="a", database=database, **parts)


ACTS: dict[str, tuple[Callable[[MoveSide], Acts[Any]], list[str]]] = {
    "SQL knows first that the tenant is about to move": (
        lambda side: side.say_moving("acme:", 2),
        ["tombstones.put", "redis.put"],
    ),
    "SQL knows first that it has moved": (
        lambda side: side.say_moved("acme:", Placement("b", 2)),
        ["tombstones.put", "redis.put"],
    ),
    "SQL knows first that it does not come": (
        lambda side: side.say_not_here("acme:", Placement("b", 1)),
        ["tombstones.restore", "redis.put_back"],
    ),
    "its keys are there before a script may begin a turn": (
        lambda side: side.open_for("acme:"),
        ["keys.show", "tombstones.arrive", "redis.put", "sessions.resume+"],
    ),
    "what SQL has goes before what would tell a sweeper that Redis lost it": (
        lambda side: side.clear(side, "acme:"),
        ["sql.remove_rest", "keys.remove_outside", "keys.remove+"],
    ),
}


@pytest.mark.parametrize("name", ACTS)
def test_each_act_is_done_in_its_order_and_a_mover_may_stop_before_it(
    side: MoveSide, log: list[str], name: str
) -> None:
    acts, wanted = ACTS[name]
    done, before = list[str](), 0
    for _ in acts(side):
        done.append("+".join(log[before:]))
        before = len(log)
    done.append(log[before] + "+" if len(log) - before > 1 else log[before])
    assert [each for each in done if each] == wanted

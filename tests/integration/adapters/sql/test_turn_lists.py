"""Lists of turns and sessions: what every filter finds is what looking at each turn finds, page by page."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from brainq.adapters.sql.repositories.turn_lists import ListRow
from brainq.adapters.sql.store import Store
from brainq.contracts.history import TurnFilter
from brainq.contracts.status import Ending, StopReason
from tests.integration.adapters.sql.examples import request, result

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
REASONS = {
    Ending.COMPLETED: (StopReason.ANSWERED, StopReason.ANSWERED, StopReason.MAX_STEPS),
    Ending.FAILED: (StopReason.MODEL_ERROR, StopReason.LOST),
    Ending.TIMED_OUT: (StopReason.DEADLINE,),
    Ending.CANCELLED: (StopReason.CANCELLED,),
}


@dataclass(frozen=True)
class Kept:
    """A turn as it was made."""

    turn_id: str
    session: str
    state: str
    at: datetime
    brain: str | None = None
    stop_reason: StopReason | None = None
    failed: int = 0
    dead: int = 0
    cost: float | None = None

    def is_asked(self, asked: TurnFilter) -> bool:
        """By a filter, of a turn that has ended or was refused; of others by what SQL knows of them."""
        holds = [
            asked.session in (None, self.session),
            asked.brain in (None, self.brain),
            asked.sessions is None or self.session.startswith(asked.sessions),
            asked.since is None or self.at >= asked.since,
            asked.until is None or self.at < asked.until,
            asked.text in self.turn_id or asked.text in self.session or asked.text == f"key-{self.turn_id}",
        ]
        if self.state != "accepted":
            holds += [
                asked.state in (None, "ended" if self.state != "rejected" else "rejected"),
                asked.ending is None or self.state == asked.ending.value,
                asked.stop_reason in (None, self.stop_reason),
                not asked.failing or self.failed + self.dead > 0 or self.state in ("failed", "timed_out"),
                asked.min_cost_usd is None or (self.cost is not None and self.cost >= asked.min_cost_usd),
            ]
        return all(holds)


def many(store: Store, number: int = 60) -> list[Kept]:
    """Turns of every kind, the oldest first."""
    draw = random.Random(7)
    kept: list[Kept] = []
    for count in range(number):
        one = Kept(
            turn_id=f"turn-{draw.randrange(16**6):06x}-{count}",
            session=draw.choice(["acme:1", "acme:2", "acme:eu:1", "acme2:1", "b_x:1", "solo"]),
            state="accepted",
            at=BEGAN + timedelta(minutes=count),
        )
        fate = draw.random()
        if fate < 0.1:
            store.turns.reject(one.turn_id, f"key-{one.turn_id}", one.session, "no", "raw")
            one = replace(one, state="rejected")
        else:
            one = replace(one, brain=draw.choice([None, "shop", "desk"]))
            store.turns.accept(request(one.turn_id, one.session, request_key=f"key-{one.turn_id}", brain=one.brain))
        if 0.1 <= fate < 0.85:
            one = ended(store, draw, one)
        kept.append(one)
    with store.database.transaction() as connection:
        for one in kept:
            at = one.at.strftime("%Y-%m-%d %H:%M:%S.000") if store.database.dialect == "sqlite" else one.at
            connection.write(
                text("UPDATE turns SET accepted_at = :at WHERE turn_id = :turn"), {"at": at, "turn": one.turn_id}
            )
    return kept


def ended(store: Store, draw: random.Random, one: Kept) -> Kept:
    ending = draw.choice(list(Ending))
    one = replace(
        one,
        state=ending.value,
        stop_reason=draw.choice(REASONS[ending]),
        failed=draw.choice([0, 0, 2]),
        cost=draw.choice([None, 0.0, 0.25, 1.5]),
        dead=draw.choice([0, 0, 0, 1, 2]),
    )
    said = result(one.turn_id, one.session, ending=ending, stop_reason=one.stop_reason, cost_usd=one.cost)
    with store.database.transaction() as connection:
        assert store.turns.write_result(connection, said, one.failed)
    for step in ("memory", "learner")[: one.dead]:
        store.steps.note_failure(one.turn_id, step, "broken", 3, dead=True)
    store.steps.note_failure(one.turn_id, "judges", "again", 1, dead=False)
    return one


def read_all(read: Callable[[int | None], list[ListRow]], limit: int) -> list[str]:
    """Every page, one behind the other."""
    found: list[str] = []
    place: int | None = None
    while page := read(place):
        assert len(page) <= limit
        found += [row.turn.turn_id for row in page]
        place = page[-1].row
    return found


FILTERS: list[dict[str, Any]] = [
    {},
    {"session": "acme:1"},
    {"sessions": ("acme:",)},
    {"sessions": ("acme:eu:", "solo:", "acme2:")},
    {"sessions": ("nobody:",)},
    {"state": "ended"},
    {"state": "rejected"},
    {"state": "rejected", "failing": True},
    *({"ending": ending} for ending in Ending),
    {"stop_reason": StopReason.ANSWERED},
    {"stop_reason": StopReason.LOST},
    {"failing": True},
    {"min_cost_usd": 0.0},
    {"min_cost_usd": 1.0},
    {"since": BEGAN + timedelta(minutes=50)},
    {"until": BEGAN + timedelta(minutes=20)},
    {"since": BEGAN + timedelta(minutes=10), "until": BEGAN + timedelta(minutes=11)},
    {"since": BEGAN + timedelta(days=9)},
    {"brain": "shop"},
    {"brain": "nobody"},
    {"brain": "desk", "session": "acme:1"},
    {"brain": "desk", "ending": Ending.COMPLETED, "sessions": ("acme:",)},
    {"brain": "shop", "failing": True},
    {"text": "turn-"},
    {"text": "%"},
    {"text": "_"},
    {"text": "eu:"},
    {"session": "acme:2", "failing": True, "ending": Ending.COMPLETED},
    {"sessions": ("acme:",), "ending": Ending.FAILED, "since": BEGAN + timedelta(minutes=15)},
    {"sessions": ("acme:",), "failing": True, "min_cost_usd": 0.25},
    {"stop_reason": StopReason.MAX_STEPS, "min_cost_usd": 0.1, "text": "acme"},
    {"session": "solo", "stop_reason": StopReason.ANSWERED, "state": "ended"},
]


def test_every_filter_finds_what_looking_at_each_turn_finds(store: Store) -> None:
    kept = many(store)[::-1]
    one = kept[11]
    ids: list[dict[str, Any]] = [{"text": one.turn_id[5:11]}, {"text": f"key-{one.turn_id}"}]
    for given in FILTERS + ids:
        asked, limit = TurnFilter(**given), 4
        over = read_all(partial(store.turn_lists.ended, asked, limit=limit), limit)
        assert over == [each.turn_id for each in kept if each.state != "accepted" and each.is_asked(asked)], given
        open_ = read_all(partial(store.turn_lists.unended, asked, limit=limit), limit)
        assert open_ == [each.turn_id for each in kept if each.state == "accepted" and each.is_asked(asked)], given
        by_age = replace(asked, sort="oldest")
        in_order = read_all(partial(store.turn_lists.ordered, by_age, limit=limit), limit)
        assert set(in_order) == {*over, *(open_ if asked.has_live else ())}, given
        assert in_order == [each.turn_id for each in reversed(kept) if each.turn_id in in_order], given


def test_a_row_has_what_the_turn_came_to(store: Store) -> None:
    store.turns.accept(request("turn-1", text="What is on\n\n  my list? " + "x" * 500))
    said = result("turn-1", steps=3, tool_calls=7, input_tokens=100, output_tokens=20, cost_usd=0.5)
    with store.database.transaction() as connection:
        store.turns.write_result(connection, said, 2)
    (row,) = store.turn_lists.ended(TurnFilter(), None, 10)
    turn = row.turn
    assert (turn.steps, turn.calls, turn.failed_calls, turn.tokens, turn.cost_usd) == (3, 7, 2, 120, 0.5)
    assert (turn.kind, turn.dead_steps) == ("chat", 0)
    assert turn.message.startswith("What is on my list? xxx")
    assert len(turn.message) == 120


def test_sessions_come_by_their_newest_turn_with_the_number_of_their_turns(store: Store) -> None:
    kept = many(store)[::-1]
    wanted: dict[str, tuple[str, int]] = {}
    for one in kept:
        counted = sum(each.session == one.session and each.state != "rejected" for each in kept)
        wanted.setdefault(one.session, (one.turn_id, counted))

    def read(prefixes: tuple[str, ...] | None = None, prefix: str = "") -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        place: int | None = None
        while page := store.turn_lists.sessions(prefixes, prefix, place, 2):
            found |= {row.turn.session_id: (row.turn.turn_id, turns) for row, turns in page}
            place = page[-1][0].row
        return found

    assert list(read().items()) == list(wanted.items())
    assert set(read(("acme:",))) == {"acme:1", "acme:2", "acme:eu:1"}
    assert set(read(prefix="acme")) == {"acme:1", "acme:2", "acme:eu:1", "acme2:1"}
    assert set(read(("acme:",), "acme:e")) == {"acme:eu:1"}


@pytest.mark.parametrize(("sessions", "is_seen"), [(None, True), (("acme:",), True), (("evil:",), False)])
def test_a_place_is_told_of_ones_own_turns_only(store: Store, sessions: tuple[str, ...] | None, is_seen: bool) -> None:
    store.turns.accept(request("turn-1", "acme:1"))
    assert (store.turn_lists.row_number("turn-1", sessions) is not None) == is_seen
    assert store.turn_lists.row_number("nobody", sessions) is None


def test_metadata_and_tags_are_found_by_sql_and_then_exactly(store: Store) -> None:
    """SQL finds all that has them, and what only looks so; `said` reads which has."""
    has: dict[str, Any] = {"metadata": {"order": {"id": "50%"}, "n": 7}, "prompt_tags": ["a_b"]}
    seems: dict[str, Any] = {"metadata": {"id": "order", "note": "50% of 7 n"}, "prompt_tags": ["a_b c"]}
    other: dict[str, Any] = {"prompt_tags": ["axb"]}
    for turn_id, given in (("has", has), ("seems", seems), ("other", other)):
        store.turns.accept(request(turn_id, request_key=turn_id, **given))
    asked = TurnFilter(metadata=("order.id=50%", "n=7"), prompt_tags=("a_b",))
    rows = store.turn_lists.ordered(asked, None, 10)
    assert [row.turn.turn_id for row in rows] == ["seems", "has"]
    found = store.turn_lists.rows_with_text([row.row for row in rows], asked)
    assert [row.turn.turn_id for row in rows if row.row in found] == ["has"]

"""Brakes: what stands on turns and sessions."""

from __future__ import annotations

import pytest

from brainq.adapters.sql.store import Store
from brainq.contracts.call import Intent
from brainq.contracts.people import HoldPolicy, HoldSpec, cancel_brake_id
from brainq.contracts.status import Effect
from tests.integration.adapters.sql.examples import end_turn, request


def standing(store: Store, turn_id: str = "turn-1") -> list[tuple[str, str | None]]:
    return [(brake.id, brake.turn_id) for brake in store.brakes.of_turn("s1", turn_id)]


def intent(attempt: int = 1, turn_id: str = "turn-1") -> Intent:
    return Intent(
        turn_id=turn_id,
        call_id="c1-0",
        attempt=attempt,
        session_id="s1",
        tool="write",
        effect=Effect.LOCAL_WRITE,
        args_hash="h",
        args_json=None,
        idempotency_key="k",
        owner="w",
    )


def test_a_turn_has_its_own_and_its_sessions_untaken_flags(store: Store) -> None:
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1", timeout_s=60.0))
    store.brakes.hold("s1", "turn-2", HoldSpec(id="h2"))
    store.brakes.flag("s1", HoldSpec(id="f1"))
    store.brakes.flag("s2", HoldSpec(id="f2"))
    assert standing(store) == [("h1", "turn-1"), ("f1", None)]
    assert store.brakes.assign_flag("s1", "f1", "turn-2")
    assert not store.brakes.assign_flag("s1", "f1", "turn-1")
    assert standing(store) == [("h1", "turn-1")]
    assert standing(store, "turn-2") == [("h2", "turn-2"), ("f1", "turn-2")]


def test_that_a_response_was_deleted_is_kept_once_and_brakes_nothing(store: Store) -> None:
    assert store.brakes.delete_response("s1", "turn-1")
    assert not store.brakes.delete_response("s1", "turn-1")
    assert [store.brakes.is_response_deleted(turn_id) for turn_id in ("turn-1", "turn-2")] == [True, False]
    assert (standing(store), store.brakes.of_turns(0, 10)) == ([], [])
    assert store.calls.start(unless_braked=True, **intent())


def test_what_is_over_stays_over(store: Store) -> None:
    for _ in range(2):
        store.brakes.hold("s1", "turn-1", HoldSpec(id="h1"))
    assert store.brakes.end("s1", "h1")
    assert not store.brakes.end("s1", "h1")
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1"))
    assert standing(store) == []


def test_a_release_is_kept_of_holds_that_had_no_row(store: Store) -> None:
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1"))
    for _ in range(2):
        store.brakes.released("s1", "turn-1", "ready:m1")
    store.brakes.released("s1", "turn-1", "h1")
    assert standing(store) == [("h1", "turn-1")]
    assert store.brakes.those_released("s1", ["ready:m1", "ready:m2", "h1"]) == {"ready:m1"}
    assert store.brakes.those_released("s2", ["ready:m1"]) == set()


def test_what_was_placed_on_nothing_leaves_no_row(store: Store) -> None:
    store.brakes.cancel("s1", "turn-1", "too early")
    store.brakes.withdraw("s1", cancel_brake_id("turn-1"))
    store.brakes.cancel("s1", "turn-1", "now")
    assert [brake.reason for brake in store.brakes.of_turn("s1", "turn-1")] == ["now"]


def test_time_is_counted_by_the_database(store: Store) -> None:
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1", timeout_s=60.0))
    store.brakes.flag("s1", HoldSpec(id="f1", timeout_s=30.0))
    hold, flag = store.brakes.of_turn("s1", "turn-1")
    assert 50.0 < hold.remaining_s <= 60.0
    assert flag.remaining_s == 30.0
    store.brakes.assign_flag("s1", "f1", "turn-1")
    assert 20.0 < store.brakes.of_turn("s1", "turn-1")[1].remaining_s <= 30.0


def test_a_word_on_readiness_lifts_flags_and_no_hold(store: Store) -> None:
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1"))
    store.brakes.flag("s1", HoldSpec(id="f1"))
    store.brakes.assign_flag("s1", "f1", "turn-1")
    assert store.brakes.lift("s1", "turn-1") == 1
    assert standing(store) == [("h1", "turn-1")]


def test_those_of_ended_turns_are_closed(store: Store) -> None:
    store.turns.accept(request("turn-1"))
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1"))
    store.brakes.cancel("s1", "turn-1", "enough")
    assert store.brakes.close(0, 2) == 0
    assert [brake.id for _, brake in store.brakes.of_turns(0, 10)] == ["h1", "cancel:turn-1"]
    end_turn(store, "turn-1")
    assert store.brakes.close(0, 2) == 2
    assert store.brakes.of_turns(0, 10) == []


@pytest.mark.parametrize(
    ("on_timeout", "timeout_s", "starts"),
    [("deny", 60.0, False), ("deny", 0.0, False), ("release", 60.0, False), ("release", 0.0, True)],
)
def test_an_intent_is_not_written_while_a_brake_stands(
    store: Store, on_timeout: HoldPolicy, timeout_s: float, starts: bool
) -> None:
    store.brakes.hold("s1", "turn-1", HoldSpec(id="h1", timeout_s=timeout_s, on_timeout=on_timeout))
    store.brakes.flag("s1", HoldSpec(id="f1"))
    assert store.calls.start(unless_braked=True, **intent()) is starts
    assert store.calls.start(unless_braked=True, **intent(turn_id="turn-2")), "another turn's"
    store.brakes.end("s1", "h1")
    assert store.calls.start(unless_braked=True, **intent()) is not starts, "once at most"
    assert not store.calls.start(**intent())

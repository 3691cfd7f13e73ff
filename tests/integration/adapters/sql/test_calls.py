"""Intents, voids and outcomes of calls."""

from __future__ import annotations

import pytest

from brainq.adapters.sql.store import Store
from brainq.contracts.call import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.contracts.rows import VoidResult
from brainq.contracts.status import Effect
from brainq.engine.calls.report import NEVER_STARTED
from tests.integration.adapters.sql.examples import at_once, call, start

DONE = ToolSuccess(value={"said": "caf\u00e9"}, latency_ms=3)


def test_an_attempt_starts_once(store: Store) -> None:
    assert start(store) is True
    assert start(store) is False
    assert start(store, attempt=2) is True
    assert start(store, call_id="c1-1") is True
    assert start(store, turn_id="turn-2") is True


def test_an_intent_says_what_was_started(store: Store) -> None:
    start(store)

    (row,) = store.calls.of_turn("turn-1")
    assert (row.turn_id, row.call_id, row.attempt, row.session_id) == ("turn-1", "c1-0", 1, "s1")
    assert (row.tool, row.effect, row.owner) == ("write_note", Effect.LOCAL_WRITE, "worker-1")
    assert (row.state, row.args_json, row.idempotency_key) == ("intent", '{"a":1}', "turn-1:c1-0")
    assert (row.outcome, row.late, row.ended_at) == (None, False, None)


def test_voiding_tells_what_is_known(store: Store) -> None:
    start(store, call_id="c1-0")
    start(store, call_id="c1-1")
    store.calls.record_outcome("turn-1", "c1-1", 1, DONE, late=False)

    assert store.calls.void(**call("c1-0")) == VoidResult("started", owner="worker-1")
    assert store.calls.void(**call("c1-1")).outcome == DONE
    assert store.calls.void(**call("c1-2")) == VoidResult("void")
    assert store.calls.void(**call("c1-2")) == VoidResult("void")


def test_a_void_attempt_never_starts(store: Store) -> None:
    store.calls.void(**call())

    assert start(store) is False
    assert store.calls.record_outcome("turn-1", "c1-0", 1, DONE, late=True) is False
    assert start(store, attempt=2) is True


def test_of_start_and_void_exactly_one_wins(store: Store) -> None:
    for number in range(10):
        call_id = f"c1-{number}"
        starts = [lambda call_id=call_id: start(store, call_id=call_id) for _ in range(3)]
        voids = [lambda call_id=call_id: store.calls.void(**call(call_id)).state for _ in range(3)]

        answers = at_once([*starts, *voids])

        assert set(answers[3:]) == ({"started"} if any(answers[:3]) else {"void"})
        assert answers[:3].count(True) == (1 if answers[3] == "started" else 0)


def test_intents_count_as_started_until_their_worker_says_otherwise(store: Store) -> None:
    store.calls.void(**call())
    assert store.calls.started("turn-1") == "no"

    start(store, attempt=2)
    assert store.calls.started("turn-1") == "unsaid"
    assert store.calls.started("turn-2") == "no"

    store.calls.record_outcome("turn-1", "c1-0", 2, NEVER_STARTED, late=False)
    assert store.calls.started("turn-1") == "no"

    start(store, attempt=3)
    store.calls.record_outcome("turn-1", "c1-0", 3, ToolFailure(error="the disk is full"), late=False)
    start(store, attempt=4)
    assert store.calls.started("turn-1") == "yes"


def test_the_first_outcome_stays(store: Store) -> None:
    start(store)

    assert store.calls.record_outcome("turn-1", "c1-0", 1, DONE, late=False) is True
    assert store.calls.record_outcome("turn-1", "c1-0", 1, ToolFailure(error="x"), late=True) is False
    assert store.calls.record_outcome("turn-1", "c1-0", 2, DONE, late=False) is False
    (row,) = store.calls.of_turn("turn-1")
    assert (row.state, row.outcome, row.late) == ("done", DONE, False)
    assert row.ended_at is not None


@pytest.mark.parametrize("given_up", [ToolUnknown(message="lost"), ToolTimeout(after_ms=9)])
def test_a_late_end_is_kept_as_evidence(store: Store, given_up: ToolOutcome) -> None:
    start(store)
    store.calls.record_outcome("turn-1", "c1-0", 1, given_up, late=False)

    assert store.calls.record_outcome("turn-1", "c1-0", 1, ToolUnknown(), late=True) is False
    assert store.calls.record_outcome("turn-1", "c1-0", 1, DONE, late=True) is True
    assert store.calls.record_outcome("turn-1", "c1-0", 1, ToolFailure(error="x"), late=True) is False
    (row,) = store.calls.of_turn("turn-1")
    assert (row.outcome, row.outcome_kind, row.late) == (DONE, "success", True)


def test_an_outcome_may_hold_any_text(store: Store) -> None:
    start(store)
    store.calls.record_outcome(
        "turn-1", "c1-0", 1, ToolSuccess(value=["\ud83d\ude00", {"\ud800": "a\x00"}]), late=False
    )

    (row,) = store.calls.of_turn("turn-1")
    assert row.outcome == ToolSuccess(value=["\U0001f600", {"\ufffd": "a\ufffd"}])


def test_an_end_that_turns_out_to_be_late_is_marked_so(store: Store) -> None:
    start(store)
    store.calls.record_outcome("turn-1", "c1-0", 1, DONE, late=False)
    assert store.calls.record_outcome("turn-1", "c1-0", 1, DONE, late=True) is True
    assert store.calls.record_outcome("turn-1", "c1-0", 1, DONE, late=True) is False
    (row,) = store.calls.of_turn("turn-1")
    assert (row.state, row.outcome, row.late) == ("done", DONE, True)


def test_what_somebody_outside_completed_is_settled_once(store: Store) -> None:
    for call_id in ("c1-0", "c1-1"):
        start(store, call_id=call_id)
    store.calls.record_outcome("turn-1", "c1-1", 1, DONE, late=False)
    for _ in range(2):
        with store.database.transaction() as connection:
            store.calls.settle(connection, "turn-1", {"c1-0": "failure", "c1-1": "failure"})
    open_one, known = store.calls.of_turn("turn-1")
    assert (open_one.state, open_one.outcome_kind, open_one.outcome) == ("done", "failure", None)
    assert (known.state, known.outcome_kind) == ("done", "success")

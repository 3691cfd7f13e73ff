"""Accepting, refusing, ending and finding turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from brainq.adapters.sql.store import Store
from brainq.contracts.rows import UnendedTurn
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import LimitsOverride
from brainq.errors import SubmitConflict, TurnRejected
from tests.integration.adapters.sql.examples import at_once, end_turn, request, result


def test_an_accepted_turn_can_be_read_back(store: Store) -> None:
    sent = request(
        text="caf\u00e9 \U0001f600",
        request_key="key:1",
        limits=LimitsOverride(max_steps=3),
        metadata={"z": 1, "a": [1.5, None]},
    )

    accepted = store.turns.accept(sent)

    assert (accepted.turn_id, accepted.session_id, accepted.created) == ("turn-1", "s1", True)
    assert store.turns.request("turn-1") == sent
    row = store.turns.get("turn-1")
    assert row is not None
    assert (row.state, row.request_key, row.ending, row.ended_at) == ("accepted", "key:1", None, None)
    assert abs(row.accepted_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_unknown_turns_are_none(store: Store) -> None:
    assert store.turns.get("nobody") is None
    assert store.turns.request("nobody") is None
    assert store.turns.result("nobody") is None
    assert store.turns.number("nobody") == 0


def test_the_same_key_and_content_is_the_first_turn(store: Store) -> None:
    store.turns.accept(request("turn-1", request_key="k"))

    again = store.turns.accept(request("turn-2", request_key="k"))

    assert (again.turn_id, again.created) == ("turn-1", False)
    assert store.turns.get("turn-2") is None


def test_the_turn_id_stands_for_a_missing_key(store: Store) -> None:
    store.turns.accept(request("turn-1"))

    assert store.turns.accept(request("turn-1")).created is False
    assert store.turns.accept(request("turn-9", request_key="turn-1")).turn_id == "turn-1"


def test_the_order_of_metadata_is_not_content(store: Store) -> None:
    store.turns.accept(request(metadata={"a": 1, "b": 2}))

    assert store.turns.accept(request(metadata={"b": 2, "a": 1})).created is False


@pytest.mark.parametrize(
    "other",
    [{"text": "another"}, {"session_id": "s2"}, {"model": "m"}, {"metadata": {"a": 1}}],
    ids=lambda changed: next(iter(changed)),
)
def test_other_content_under_a_used_key_is_a_conflict(store: Store, other: dict[str, Any]) -> None:
    store.turns.accept(request("turn-1", request_key="k"))

    with pytest.raises(SubmitConflict, match="request_key 'k' was used before, by turn 'turn-1'"):
        store.turns.accept(request("turn-2", request_key="k", **other))


def test_a_used_turn_id_under_another_key_is_a_conflict(store: Store) -> None:
    store.turns.accept(request("turn-1", request_key="k"))

    with pytest.raises(SubmitConflict, match="turn_id 'turn-1' was used before, with request_key 'k'"):
        store.turns.accept(request("turn-1", request_key="k2"))


def test_one_key_from_eight_threads_is_created_once(store: Store) -> None:
    for key in ("a", "b", "c"):
        jobs = [
            lambda number=number, key=key: store.turns.accept(request(f"{key}-turn-{number}", request_key=key))
            for number in range(8)
        ]

        answers = at_once(jobs)

        assert sum(answer.created for answer in answers) == 1
        assert len({answer.turn_id for answer in answers}) == 1


def test_a_rejected_key_stays_rejected(store: Store) -> None:
    kept = store.turns.reject("turn-1", "k", "s1", "user_message: missing", {"user_message": None})
    store.turns.reject("turn-1", "k", "s1", "user_message: missing", {"user_message": None})

    with pytest.raises(TurnRejected, match="user_message: missing"):
        store.turns.accept(request("turn-2", request_key="k"))
    assert kept == "turn-1"
    assert [row.state for row in store.turns.list()] == ["rejected"]
    assert store.turns.request("turn-1") is None
    assert store.turns.unended(0, 10) == []


def test_a_rejected_submit_may_hold_anything(store: Store) -> None:
    anything: list[object] = [None, 7, "", "{x}", "a\x00b", "\ud800", "x" * 1000, b"\xff", object]
    for bad in anything:
        first = store.turns.reject(bad, bad, bad, "bad \ud800\x00", bad)

        assert store.turns.reject(bad, bad, bad, "bad \ud800\x00", bad) == first
        assert store.turns.list(limit=1)[0].turn_id == first

    assert len(store.turns.list()) == len(anything)


def test_a_rejected_submit_keeps_ten_kilobytes(store: Store) -> None:
    store.turns.reject("turn-1", None, "s1", "too big", "\U0001f600" * 100_000)

    with store.engine.connect() as connection:
        raw = connection.execute(text("SELECT request_json FROM turns")).scalar_one()
    assert len(raw.encode()) == 10_240


def test_a_rejection_does_not_touch_an_accepted_turn(store: Store) -> None:
    store.turns.accept(request("turn-1"))
    store.turns.reject("turn-1", "turn-1", "s1", "bad", "raw")

    row = store.turns.get("turn-1")
    assert row is not None
    assert row.state == "accepted"


def test_a_turn_ends_once(store: Store) -> None:
    store.turns.accept(request())
    first = result(error="no \x00 model", ending=Ending.FAILED, stop_reason=StopReason.MODEL_ERROR)
    written: list[bool] = []

    store.steps.run_once("turn-1", "a", "k", lambda c: written.append(store.turns.write_result(c, first)))
    store.steps.run_once("turn-1", "b", "k", lambda c: written.append(store.turns.write_result(c, result())))

    row = store.turns.get("turn-1")
    assert row is not None
    assert written == [True, False]
    assert (row.state, row.ending, row.stop_reason) == ("failed", Ending.FAILED, StopReason.MODEL_ERROR)
    assert (row.error, row.turn_number) == ("no \ufffd model", 1)
    assert row.ended_at is not None
    assert row.ended_at >= row.accepted_at
    assert store.turns.result("turn-1") == first


def test_unended_pages_in_row_order(store: Store) -> None:
    for number in range(5):
        store.turns.accept(request(f"turn-{number}", f"s{number}"))
    end_turn(store, "turn-2")

    first = store.turns.unended(0, 2)
    rest = store.turns.unended(first[-1].row, 10)

    assert [turn.turn_id for turn in [*first, *rest]] == ["turn-0", "turn-1", "turn-3", "turn-4"]
    assert first[0] == UnendedTurn(first[0].row, "turn-0", "s0")
    assert [turn.row for turn in [*first, *rest]] == sorted(turn.row for turn in [*first, *rest])


def test_the_sweepers_read_uses_its_index(store: Store) -> None:
    query = "SELECT row, turn_id, session_id FROM turns WHERE ended_at IS NULL AND row > 0 ORDER BY row LIMIT 9"
    sqlite = store.engine.dialect.name == "sqlite"
    with store.engine.begin() as connection:
        connection.execute(text("SELECT 1" if sqlite else "SET enable_seqscan = off"))
        plan = connection.execute(text(f"EXPLAIN {'QUERY PLAN' if sqlite else ''} {query}")).all()

    assert "ix_turns_unended" in str(plan)


def test_numbers_count_the_accepted_turns_of_the_session(store: Store) -> None:
    store.turns.accept(request("turn-a", "s1"))
    store.turns.accept(request("turn-x", "s2"))
    store.turns.reject("turn-r", "turn-r", "s1", "bad", "")
    store.turns.accept(request("turn-b", "s1"))
    end_turn(store, "turn-b")
    store.turns.accept(request("turn-c", "s1"))

    assert [store.turns.number(f"turn-{name}") for name in "axrbc"] == [1, 1, 0, 2, 3]


def test_list_gives_the_newest_first(store: Store) -> None:
    for number in range(4):
        store.turns.accept(request(f"turn-{number}", f"s{number % 2}"))
    end_turn(store, "turn-1", "s1")

    def ids(**by: Any) -> list[str]:
        return [row.turn_id for row in store.turns.list(**by)]

    assert ids() == ["turn-3", "turn-2", "turn-1", "turn-0"]
    assert ids(session_id="s1") == ["turn-3", "turn-1"]
    assert ids(state="completed") == ["turn-1"]
    assert ids(session_id="s0", state="accepted", limit=1) == ["turn-2"]
    assert ids(limit=2, before_row=store.turns.list()[1].row) == ["turn-1", "turn-0"]


def test_a_list_of_tenants_has_full_pages_and_nobody_elses_turns(store: Store) -> None:
    sessions = ("acme:1", "acme2:1", "acme", "acme:eu:1", "ACME:1", "acme=1", "beta:1", "acme:")
    for number, session in enumerate(sessions):
        store.turns.accept(request(f"turn-{number}", session))

    def seen(*prefixes: str, **by: Any) -> list[str]:
        return [row.session_id for row in store.turns.list(sessions=prefixes, **by)]

    assert seen("acme:") == ["acme:", "acme:eu:1", "acme:1"]
    assert seen("acme:", limit=2) == ["acme:", "acme:eu:1"]
    assert seen("acme:", limit=2, before_row=store.turns.list(limit=1)[0].row) == ["acme:eu:1", "acme:1"]
    assert seen("acme:eu:", "beta:") == ["beta:1", "acme:eu:1"]
    assert seen("acme:", session_id="beta:1") == []
    assert seen("*") == list(reversed(sessions))
    assert seen() == []


def test_find_by_prefix_or_key(store: Store) -> None:
    store.turns.accept(request("01abc", request_key="order:7"))
    store.turns.accept(request("01abd"))
    store.turns.accept(request("01Abe"))

    def ids(sought: str) -> list[str]:
        return [row.turn_id for row in store.turns.find(sought)]

    assert ids("01ab") == ["01abd", "01abc"]
    assert ids("order:7") == ["01abc"]
    assert ids("order") == []
    assert ids("01%") == []
    assert ids("\ud800") == []

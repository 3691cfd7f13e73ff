"""Approvals: asked for, decided once, settled with their turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from brainq.adapters.sql.store import Store
from brainq.contracts.people import Approval, ApprovalRequest, ApprovalState, ApprovalStatus
from brainq.contracts.status import Effect
from tests.integration.adapters.sql.examples import at_once, end_turn, request
from tests.integration.adapters.sql.test_engine import sent_by


def asked(state: ApprovalState, by: str = "", why: str = "", **more: Any) -> ApprovalStatus:
    """How Redis says an approval stands."""
    values: dict[str, Any] = {
        "args_hash": "h",
        "edited": False,
        "arguments": None,
        "expires_in_ms": 0,
        "decided_at_ms": None,
    }
    return ApprovalStatus(state=state, by=by, why=why, **values | more)


def new(call_id: str = "c1-0", turn_id: str = "turn-1", **more: Any) -> ApprovalRequest:
    values: dict[str, Any] = {
        "session_id": "s1",
        "tool": "drop_table",
        "effect": Effect.DESTRUCTIVE,
        "args_hash": "h",
        "args_json": '{"table": "users"}',
        "reason": "it deletes",
        "timeout_s": 3600.0,
    }
    return ApprovalRequest(turn_id=turn_id, call_id=call_id, **values | more)


def ask(store: Store, *call_ids: str, **more: Any) -> None:
    store.approvals.request([new(call_id, **more) for call_id in call_ids])


def known(store: Store, call_id: str = "c1-0", turn_id: str = "turn-1") -> Approval:
    found = store.approvals.get(turn_id, call_id)
    assert found is not None
    return found


def settle(store: Store, turn_id: str = "turn-1", **states: ApprovalStatus) -> None:
    """Call ids with _ for -."""
    named: Mapping[str, ApprovalStatus] = {name.replace("_", "-"): state for name, state in states.items()}
    with store.database.transaction() as connection:
        store.approvals.settle(connection, turn_id, named)


def forget(store: Store, turn_id: str = "turn-1") -> None:
    with store.database.transaction() as connection:
        store.approvals.forget(connection, turn_id)


def test_an_approval_that_was_asked_for_is_pending(store: Store) -> None:
    ask(store, "c1-0")

    found = known(store)

    assert (found.id, found.session_id, found.tool, found.effect) == (
        "turn-1-c1-0",
        "s1",
        "drop_table",
        Effect.DESTRUCTIVE,
    )
    assert (found.arguments, found.args_hash, found.reason) == ({"table": "users"}, "h", "it deletes")
    assert (found.state, found.edited, found.decided_at, found.decided_by, found.comment) == (
        "pending",
        False,
        None,
        "",
        "",
    )
    assert abs(found.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert abs(found.expires_at - found.created_at - timedelta(hours=1)) < timedelta(seconds=5)
    assert store.approvals.of_turn("turn-1") == [found]


def test_what_is_unknown_is_none(store: Store) -> None:
    ask(store)
    ask(store, "c1-0")

    assert store.approvals.get("turn-1", "c1-1") is store.approvals.get("turn-2", "c1-0") is None
    assert store.approvals.decided("turn-2", "c1-0", asked("approved")) is False
    assert store.approvals.decided("turn-1", "c1-1", asked("approved")) is False
    assert known(store).state == "pending"


def test_an_approval_may_hold_any_text(store: Store) -> None:
    hostile = new(args_json='{"a":"\\ud800 \\u0000"}', reason="a\x00b \ud800", tool="say_\ud800")
    store.approvals.request([hostile])
    store.approvals.decided("turn-1", "c1-0", asked("denied", by="\ud83d", why="no \x00"))

    found = known(store)
    assert found.arguments == {"a": "\ud800 \x00"}
    assert (found.reason, found.tool) == ("a\ufffdb \ufffd", "say_\ufffd")
    assert (found.decided_by, found.comment) == ("\ufffd", "no \ufffd")


def test_asking_again_replaces_what_is_pending(store: Store) -> None:
    ask(store, "c1-0", "c1-1")
    first = known(store)

    store.approvals.request([new(args_hash="h2", args_json='{"table": "cats"}', reason="cats", timeout_s=60)])

    again = known(store)
    assert (again.args_hash, again.arguments, again.reason) == ("h2", {"table": "cats"}, "cats")
    assert again.expires_at < first.expires_at
    assert again.created_at == first.created_at
    assert [row.approval.call_id for row in store.approvals.list()] == ["c1-1", "c1-0"]


@pytest.mark.parametrize("state", ["approved", "denied", "void"])
def test_asking_again_leaves_what_is_decided(store: Store, state: ApprovalState) -> None:
    ask(store, "c1-0")
    settle(store, "turn-1", c1_0=asked(state, by="ann"))
    before = known(store)

    store.approvals.request([new(), new("c1-1")])

    assert known(store) == before
    assert known(store, "c1-1").state == "pending"


@pytest.mark.parametrize("state", ["approved", "denied", "expired"])
def test_a_step_that_redis_lost_asks_anew_about_other_arguments(store: Store, state: ApprovalState) -> None:
    ask(store, "c1-0")
    store.approvals.decided("turn-1", "c1-0", asked(state, by="ann", why="as before"))

    store.approvals.request([new(args_hash="h2")])

    again = known(store)
    assert (again.state, again.args_hash, again.decided_by, again.comment) == ("pending", "h2", "", "")
    assert again.decided_at is None


def test_decisions_of_turns_that_live_are_found(store: Store) -> None:
    store.turns.accept(request("turn-1"))
    ask(store, "c1-0", "c1-1", "c1-2")
    store.approvals.decided("turn-1", "c1-0", asked("approved"))
    store.approvals.decided("turn-1", "c1-1", asked("expired"))
    store.approvals.decided("turn-1", "c1-2", asked("denied"))
    found = store.approvals.decided_of_open_turns(0, 10)
    assert [placed.approval.call_id for placed in found] == ["c1-0", "c1-2"]
    assert store.approvals.decided_of_open_turns(0, 1) == found[:1]
    assert store.approvals.decided_of_open_turns(found[0].row, 10) == found[1:]
    end_turn(store, "turn-1")
    assert store.approvals.decided_of_open_turns(0, 10) == []


def test_asking_is_all_or_nothing(store: Store) -> None:
    broken = new("c1-1", tool=None)
    with pytest.raises(Exception, match="tool"):
        store.approvals.request([new("c1-0"), broken])

    assert store.approvals.of_turn("turn-1") == []


def test_a_decision_says_who_and_why(store: Store) -> None:
    ask(store, "c1-0", "c1-1")

    assert store.approvals.decided("turn-1", "c1-0", asked("denied", by="ann", why="not today")) is True

    found = known(store)
    assert (found.state, found.decided_by, found.comment, found.edited) == ("denied", "ann", "not today", False)
    assert (found.args_hash, found.arguments) == ("h", {"table": "users"})
    assert found.decided_at is not None
    assert found.decided_at >= found.created_at
    assert known(store, "c1-1").state == "pending"


def test_the_first_decision_stays(store: Store) -> None:
    ask(store, "c1-0")
    store.approvals.decided("turn-1", "c1-0", asked("approved", by="ann"))
    before = known(store)

    assert store.approvals.decided("turn-1", "c1-0", asked("denied", by="bob")) is False
    assert store.approvals.decided("turn-1", "c1-0", asked("approved", by="ann")) is False
    settle(store, c1_0=asked("denied", "bob"))

    assert known(store) == before


@pytest.mark.parametrize("kept", [{"table": "cats"}, None])
def test_edited_arguments_take_the_place_of_the_first(store: Store, kept: dict[str, str] | None) -> None:
    ask(store, "c1-0")

    edited = asked("approved", by="ann", edited=True, args_hash="h2", arguments=kept)
    assert store.approvals.decided("turn-1", "c1-0", edited)

    found = known(store)
    assert (found.edited, found.args_hash) == (True, "h2")
    assert found.arguments == kept


def test_arguments_are_kept_unless_they_were_edited(store: Store) -> None:
    ask(store, "c1-0")
    store.approvals.decided("turn-1", "c1-0", asked("approved", args_hash="h2", arguments={}))

    assert (known(store).args_hash, known(store).arguments) == ("h", {"table": "users"})


def test_of_many_one_decides(store: Store) -> None:
    for number in range(25):
        call_id = f"c{number}-0"
        ask(store, call_id)
        words: list[ApprovalState] = ["approved", "denied", "expired", "approved", "denied"]

        def job(nth: int, word: ApprovalState, call_id: str = call_id) -> Callable[[], bool]:
            return lambda: store.approvals.decided("turn-1", call_id, asked(word, by=str(nth)))

        jobs = [job(nth, word) for nth, word in enumerate(words)]

        answers = at_once(jobs)

        assert sum(answers) == 1
        winner = answers.index(True)
        found = known(store, call_id)
        assert (found.state, found.decided_by) == (words[winner], str(winner))


def test_a_list_of_tenants_has_full_pages_and_nobody_elses_approvals(store: Store) -> None:
    for number, session in enumerate(("acme:1", "acme2:1", "acme", "acme:eu:1", "beta:1")):
        ask(store, "c1-0", turn_id=f"turn-{number}", session_id=session)

    def seen(*prefixes: str, **by: Any) -> list[str]:
        return [row.approval.session_id for row in store.approvals.list(sessions=prefixes, **by)]

    assert seen("acme:", state="pending") == ["acme:eu:1", "acme:1"]
    assert seen("acme:", limit=1) == ["acme:eu:1"]
    assert seen("acme:", "beta:", limit=2) == ["beta:1", "acme:eu:1"]
    assert seen("acme:", session_id="beta:1") == []
    assert seen() == []


def test_a_list_is_newest_first_in_pages(store: Store) -> None:
    for number in range(6):
        ask(store, "c1-0", turn_id=f"turn-{number}", session_id=f"s{number % 2}")
    store.approvals.decided("turn-1", "c1-0", asked("approved"))
    store.approvals.decided("turn-2", "c1-0", asked("denied"))

    def turns(**by: Any) -> list[str]:
        return [row.approval.turn_id[-1] for row in store.approvals.list(**by)]

    assert turns() == ["5", "4", "3", "2", "1", "0"]
    assert turns(state="pending") == ["5", "4", "3", "0"]
    assert turns(session_id="s0") == ["4", "2", "0"]
    assert turns(session_id="s1", state="pending") == ["5", "3"]
    assert turns(state="approved") == ["1"]
    first = store.approvals.list(state="pending", limit=2)
    assert [row.approval.turn_id[-1] for row in first] == ["5", "4"]
    assert turns(state="pending", limit=2, before_row=first[-1].row) == ["3", "0"]
    assert turns(before_row=store.approvals.list()[-1].row) == []


def test_with_its_turn_an_approval_becomes_what_redis_says(store: Store) -> None:
    ask(store, *(f"c1-{n}" for n in range(6)))
    ask(store, "c1-0", turn_id="turn-2")
    store.approvals.decided("turn-1", "c1-5", asked("approved", by="eve"))

    settle(
        store,
        c1_0=asked("approved", "ann", "fine", edited=True, args_hash="h2", arguments={"table": "cats"}),
        c1_1=asked("denied", "bob", "no", arguments={"table": "users"}),
        c1_2=asked("expired", decided_at_ms=1_700_000_000_250),
        c1_3=asked("pending"),
        c1_9=asked("approved", "nobody"),
    )

    found = store.approvals.of_turn("turn-1")
    assert [(a.state, a.decided_by, a.comment, a.args_hash) for a in found] == [
        ("approved", "ann", "fine", "h2"),
        ("denied", "bob", "no", "h"),
        ("expired", "", "", "h"),
        ("void", "", "", "h"),
        ("void", "", "", "h"),
        ("approved", "eve", "", "h"),
    ]
    assert (found[0].edited, found[0].arguments) == (True, {"table": "cats"})
    assert all(a.decided_at is not None for a in found)
    assert found[2].decided_at == datetime(2023, 11, 14, 22, 13, 20, 250_000, UTC)
    assert known(store, turn_id="turn-2").state == "pending"
    settle(store, c1_3=asked("approved", "late"))
    assert store.approvals.of_turn("turn-1") == found


def test_a_turn_without_approvals_settles_in_one_statement(store: Store) -> None:
    sent = sent_by(store.engine)
    settle(store)

    assert [statement.split()[0] for statement in sent] == ["BEGIN", "UPDATE"]


def test_a_forgotten_approval_keeps_who_decided_what(store: Store) -> None:
    ask(store, "c1-0")
    ask(store, "c1-0", turn_id="turn-2")
    store.approvals.decided("turn-1", "c1-0", asked("approved", by="ann", why="my secret"))

    forget(store)

    found = known(store)
    assert (found.arguments, found.comment, found.reason) == (None, "", "")
    assert (found.state, found.decided_by, found.args_hash) == ("approved", "ann", "h")
    assert known(store, turn_id="turn-2").arguments == {"table": "users"}


def test_where_no_content_is_kept_nothing_shows_the_arguments(store: Store) -> None:
    ask(store, "c1-0", args_json=None)

    assert known(store).arguments is None


@pytest.mark.parametrize("state", ["pending", "void"])
def test_what_people_are_shown_is_read_by_its_index(store: Store, state: str) -> None:
    sqlite = store.engine.dialect.name == "sqlite"
    query = f"SELECT tool FROM approvals WHERE state = '{state}' ORDER BY row DESC LIMIT 9"
    with store.engine.begin() as connection:
        connection.execute(text("SELECT 1" if sqlite else "SET enable_seqscan = off"))
        plan = connection.execute(text(f"EXPLAIN {'QUERY PLAN' if sqlite else ''} {query}")).all()

    assert ("ix_approvals_pending" in str(plan)) is (state == "pending")


MOVES = st.lists(
    st.tuples(
        st.sampled_from(("ask", "decided", "edited", "settle", "forget")),
        st.sampled_from(("c1-0", "c1-1")),
        st.sampled_from(("approved", "denied", "expired")),
    ),
    max_size=12,
)
_numbers = itertools.count()


def move(store: Store, turn_id: str, made: tuple[str, str, ApprovalState]) -> None:
    kind, call_id, state = made
    match kind:
        case "ask":
            ask(store, call_id, turn_id=turn_id, reason=state)
        case "decided":
            store.approvals.decided(turn_id, call_id, asked(state, by=state))
        case "edited":
            store.approvals.decided(turn_id, call_id, asked(state, edited=True, args_hash=state, arguments={}))
        case "settle":
            settle(store, turn_id, **{call_id.replace("-", "_"): asked(state)})
        case _:
            forget(store, turn_id)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_run_twice_is_run_once_and_what_a_person_decided_of_these_arguments_stands(
    store: Store, moves: list[tuple[str, str, ApprovalState]]
) -> None:
    number = next(_numbers)
    seen: list[list[dict[str, Any]]] = []
    for times, turn_id in ((1, f"once-{number}"), (2, f"twice-{number}")):
        ended: dict[tuple[str, str], str] = {}
        for made in moves:
            for _ in range(times):
                move(store, turn_id, made)
            for found in store.approvals.of_turn(turn_id):
                if found.state in ("approved", "denied"):
                    assert ended.setdefault((found.call_id, found.args_hash), found.state) == found.state
        own = {"id", "turn_id", "created_at", "expires_at", "decided_at"}
        seen.append([found.model_dump(exclude=own) for found in store.approvals.of_turn(turn_id)])
    assert seen[0] == seen[1]

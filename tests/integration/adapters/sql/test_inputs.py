"""Mid-turn input: accepted once a client_message_id, then consumed, bounced or refused."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from brainq.adapters.sql.store import Store
from brainq.contracts.people import Receipt, TurnInput
from brainq.contracts.rows import InputRow
from brainq.errors import SubmitConflict
from tests.integration.adapters.sql.examples import at_once
from tests.integration.adapters.sql.test_engine import sent_by

Move = tuple[str, str, int]


def item(message: str = "m1", said: str = "faster", **more: Any) -> TurnInput:
    return TurnInput(client_message_id=message, text=said, **more)


def accept(store: Store, *messages: str, turn_id: str = "turn-1", session_id: str = "s1") -> None:
    for message in messages:
        store.inputs.accept(session_id, turn_id, item(message))


def settle(store: Store, receipts: Mapping[str, str], turn_id: str = "turn-1") -> None:
    with store.database.transaction() as connection:
        store.inputs.settle(connection, turn_id, receipts)


def forget(store: Store, turn_id: str = "turn-1") -> None:
    with store.database.transaction() as connection:
        store.inputs.forget(connection, turn_id)


def states(store: Store, turn_id: str = "turn-1") -> list[tuple[str, str, int | None]]:
    return [(row.client_message_id, row.state, row.step) for row in store.inputs.of_turn(turn_id)]


def known(store: Store, message: str = "m1", session_id: str = "s1") -> InputRow:
    row = store.inputs.get(session_id, message)
    assert row is not None
    return row


def test_an_accepted_input_can_be_read_back(store: Store) -> None:
    sent = item("m:1", "caf\u00e9 \U0001f600", readiness=False, merged=True)

    row = store.inputs.accept("s1", "turn-1", sent)

    assert (row.session_id, row.turn_id, row.state, row.step) == ("s1", "turn-1", "accepted", None)
    assert row.item == sent
    assert row.receipt == Receipt(client_message_id="m:1", session_id="s1", turn_id="turn-1", state="accepted")
    assert abs(row.accepted_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert (row.settled_at, row.bounced_turn_id) == (None, None)
    assert store.inputs.get("s1", "m:1") == row
    assert store.inputs.of_turn("turn-1") == [row]


def test_what_is_unknown_is_none(store: Store) -> None:
    accept(store, "m1")

    assert store.inputs.get("s1", "m2") is None
    assert store.inputs.get("s2", "m1") is None
    assert store.inputs.of_turn("turn-2") == []
    assert store.inputs.consumed("s2", {"m1": 1}) == store.inputs.consumed("s1", {"m2": 1}) == 0
    assert store.inputs.bounced("s2", "m1", "in-1") is store.inputs.refused("s1", "m2") is False
    assert known(store).state == "accepted"


@pytest.mark.parametrize("readiness", [None, True, False])
def test_the_same_id_twice_is_one_input(store: Store, readiness: bool | None) -> None:
    first = store.inputs.accept("s1", "turn-1", item("m1", "a \ud800\x00", readiness=readiness))
    again = store.inputs.accept("s1", "turn-2", item("m1", "a \ud800\x00", readiness=readiness, merged=True))

    assert again == first
    assert (first.turn_id, first.text) == ("turn-1", "a \ufffd\ufffd")
    assert store.inputs.of_turn("turn-2") == []


def test_the_same_id_finds_what_became_of_it(store: Store) -> None:
    accept(store, "m1", "m2", "m3")
    store.inputs.consumed("s1", {"m1": 4})
    store.inputs.bounced("s1", "m2", "in-2")
    store.inputs.refused("s1", "m3")

    found = [store.inputs.accept("s1", "turn-9", item(f"m{n}")) for n in (1, 2, 3)]

    assert [(row.state, row.step, row.bounced_turn_id) for row in found] == [
        ("consumed", 4, None),
        ("bounced", None, "in-2"),
        ("refused", None, None),
    ]


@pytest.mark.parametrize("other", [item("m1", "slower"), item("m1", readiness=True)], ids=["text", "readiness"])
def test_other_content_under_a_used_id_is_a_conflict(store: Store, other: TurnInput) -> None:
    accept(store, "m1")
    store.inputs.consumed("s1", {"m1": 1})
    forget(store)

    with pytest.raises(SubmitConflict, match="client_message_id 'm1' was used before in session 's1'"):
        store.inputs.accept("s1", "turn-1", other)
    assert store.inputs.accept("s2", "turn-2", other).state == "accepted"


def test_one_id_from_eight_threads_is_one_row(store: Store) -> None:
    for number in range(5):
        jobs = [lambda n=n, number=number: store.inputs.accept("s1", f"turn-{n}", item(f"m{number}")) for n in range(8)]

        answers = at_once(jobs)

        assert len(set(answers)) == 1


def test_of_a_turn_is_in_the_order_of_acceptance(store: Store) -> None:
    accept(store, "m3", "m1")
    accept(store, "mx", turn_id="turn-2", session_id="s2")
    accept(store, "m2")

    assert [name for name, *_ in states(store)] == ["m3", "m1", "m2"]


def test_open_pages_in_row_order_and_leaves_out_the_young(store: Store) -> None:
    accept(store, *(f"m{n}" for n in range(6)))
    store.inputs.consumed("s1", {"m1": 1})
    store.inputs.bounced("s1", "m3", "in-3")
    store.inputs.refused("s1", "m4")

    first = store.inputs.open(0, 2, 0)
    rest = store.inputs.open(first[-1].row, 9, 0)

    assert [row.client_message_id for row in (*first, *rest)] == ["m0", "m2", "m5"]
    assert store.inputs.open(0, 9, 60) == []
    shift = "'-61 seconds'" if store.engine.dialect.name == "sqlite" else "interval '61 seconds'"
    moved = (
        f"strftime('%Y-%m-%d %H:%M:%f', accepted_at, {shift})"
        if store.engine.dialect.name == "sqlite"
        else f"accepted_at - {shift}"
    )
    with store.engine.connect() as connection:
        connection.execute(text(f"UPDATE inputs SET accepted_at = {moved} WHERE client_message_id = 'm2'"))
    assert [row.client_message_id for row in store.inputs.open(0, 9, 60)] == ["m2"]
    assert store.inputs.open(0, 9, 120) == []


def test_consumed_says_by_which_step(store: Store) -> None:
    accept(store, "m1", "m2", "m3", "m4")

    assert store.inputs.consumed("s1", {}) == 0
    assert store.inputs.consumed("s1", {"m1": 2, "m2": 2}) == 2
    assert store.inputs.consumed("s1", {"m1": 2, "m2": 2, "m3": 5}) == 1
    assert states(store) == [
        ("m1", "consumed", 2),
        ("m2", "consumed", 2),
        ("m3", "consumed", 5),
        ("m4", "accepted", None),
    ]
    assert known(store, "m3").receipt.step == 5
    assert known(store).settled_at is not None


def test_the_step_that_read_an_input_again_counts(store: Store) -> None:
    accept(store, "m1")
    store.inputs.consumed("s1", {"m1": 3})
    settled = known(store).settled_at

    assert store.inputs.consumed("s1", {"m1": 4}) == 1
    assert (known(store).step, known(store).settled_at) == (4, settled)


def test_what_is_settled_stays(store: Store) -> None:
    accept(store, "m1", "m2", "m3")
    store.inputs.consumed("s1", {"m1": 1})
    assert store.inputs.bounced("s1", "m2", "in-2") is True
    assert store.inputs.refused("s1", "m3") is True
    before = store.inputs.of_turn("turn-1")

    for message in ("m1", "m2", "m3"):
        assert store.inputs.bounced("s1", message, "in-9") is False
        assert store.inputs.refused("s1", message, redact=True) is False
    assert store.inputs.consumed("s1", {"m2": 7, "m3": 7}) == 0
    settle(store, {"m2": "consumed 7", "m3": "consumed 7"})

    assert store.inputs.of_turn("turn-1") == before
    assert known(store, "m2").receipt == Receipt(
        client_message_id="m2", session_id="s1", turn_id="turn-1", state="bounced", bounced_turn_id="in-2"
    )


def test_of_consumed_and_bounced_one_wins(store: Store) -> None:
    for number in range(25):
        message = f"m{number}"
        accept(store, message)
        jobs = [
            lambda message=message: store.inputs.consumed("s1", {message: 2}) == 1,
            lambda message=message: store.inputs.bounced("s1", message, "in-1"),
            lambda message=message: store.inputs.refused("s1", message),
        ]

        answers = at_once(jobs)

        assert sum(answers) == 1
        assert known(store, message).state == ("consumed", "bounced", "refused")[answers.index(True)]


def test_settling_writes_what_redis_says_was_consumed(store: Store) -> None:
    accept(store, "m1", "m2", "m3", "m4", "m5")
    accept(store, "m6", turn_id="turn-2")
    store.inputs.consumed("s1", {"m1": 1, "m2": 9})
    receipts = {
        "m1": "consumed 1",
        "m2": "consumed 2",
        "m3": "consumed 3",
        "m4": "bounced",
        "m5": "accepted",
        "m6": "consumed 1",
        "lost": "consumed 1",
    }

    settle(store, receipts)

    expected = [
        ("m1", "consumed", 1),
        ("m2", "consumed", 2),
        ("m3", "consumed", 3),
        ("m4", "accepted", None),
        ("m5", "accepted", None),
    ]
    assert states(store) == expected
    assert states(store, "turn-2") == [("m6", "accepted", None)]
    settle(store, receipts)
    assert states(store) == expected


def test_settling_what_is_written_costs_a_read(store: Store) -> None:
    accept(store, "m1", "m2")
    store.inputs.consumed("s1", {"m1": 1, "m2": 2})
    sent = sent_by(store.engine)

    settle(store, {"m1": "bounced"})
    settle(store, {"m1": "consumed 1", "m2": "consumed 2"})

    assert [statement.split()[0] for statement in sent] == ["BEGIN", "BEGIN", "SELECT"]


def test_a_forgotten_input_keeps_what_became_of_it(store: Store) -> None:
    accept(store, "m1", "m2", "m3")
    accept(store, "mx", turn_id="turn-2")
    store.inputs.consumed("s1", {"m1": 1, "mx": 1})
    store.inputs.bounced("s1", "m2", "in-2")

    forget(store)

    assert [(row.text, row.state) for row in store.inputs.of_turn("turn-1")] == [
        ("", "consumed"),
        ("", "bounced"),
        ("faster", "accepted"),
    ]
    assert known(store, "mx").text == "faster"
    assert store.inputs.accept("s1", "turn-1", item("m1")).state == "consumed"


def test_what_is_moved_after_its_turn_was_forgotten_loses_its_text(store: Store) -> None:
    accept(store, "m1", "m2")
    forget(store)

    store.inputs.bounced("s1", "m1", "in-1", redact=True)
    store.inputs.refused("s1", "m2", redact=True)

    assert [(row.text, row.state) for row in store.inputs.of_turn("turn-1")] == [("", "bounced"), ("", "refused")]


@pytest.mark.parametrize("state", ["accepted", "consumed"])
def test_the_sweepers_read_uses_its_index(store: Store, state: str) -> None:
    sqlite = store.engine.dialect.name == "sqlite"
    query = f"SELECT text FROM inputs WHERE state = '{state}' AND row > 0 ORDER BY row LIMIT 9"
    with store.engine.begin() as connection:
        connection.execute(text("SELECT 1" if sqlite else "SET enable_seqscan = off"))
        plan = connection.execute(text(f"EXPLAIN {'QUERY PLAN' if sqlite else ''} {query}")).all()

    assert ("ix_inputs_accepted" in str(plan)) is (state == "accepted")


MOVES = st.lists(
    st.tuples(
        st.sampled_from(("accept", "consumed", "bounced", "refused", "settle", "forget")),
        st.sampled_from(("m1", "m2")),
        st.integers(1, 3),
    ),
    max_size=12,
)
_numbers = itertools.count()


def move(store: Store, session: str, made: Move) -> None:
    kind, message, step = made
    match kind:
        case "accept":
            store.inputs.accept(session, f"{session}-turn", item(message))
        case "consumed":
            store.inputs.consumed(session, {message: step})
        case "bounced":
            store.inputs.bounced(session, message, f"in-{step}")
        case "refused":
            store.inputs.refused(session, message)
        case "settle":
            settle(store, {message: f"consumed {step}"}, f"{session}-turn")
        case _:
            forget(store, f"{session}-turn")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_run_twice_is_run_once_and_nothing_settled_opens(store: Store, moves: list[Move]) -> None:
    number = next(_numbers)
    seen: list[list[tuple[object, ...]]] = []
    for times, session in ((1, f"once-{number}"), (2, f"twice-{number}")):
        ended: dict[str, str] = {}
        for made in moves:
            for _ in range(times):
                move(store, session, made)
            for row in store.inputs.of_turn(f"{session}-turn"):
                if row.state != "accepted":
                    assert ended.setdefault(row.client_message_id, row.state) == row.state
        seen.append(
            [
                (row.client_message_id, row.state, row.step, row.bounced_turn_id, row.text)
                for row in store.inputs.of_turn(f"{session}-turn")
            ]
        )
    assert seen[0] == seen[1]

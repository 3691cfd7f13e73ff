"""What the finalizer's log step leaves of a turn: spends, traces, and the whole conversation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from sqlalchemy import text

from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.store import Store
from brainq.contracts.call import ToolFailure, ToolSuccess, ToolTimeout, ToolTraceEntry
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.view import TurnDetails
from tests.integration.adapters.sql.examples import at_once, call, end_turn, request, result, start

SPENDS = (
    Spend(step=1, model="m", input_tokens=100, output_tokens=20, cache_read_tokens=5, cost_usd=0.00123),
    Spend(kind="lost", step=2, input_tokens=2**40),
    Spend(kind="reflection", step=2, model="n\ud800", input_tokens=7, output_tokens=1, cost_usd=0.0),
)


NOTES_AT = 14


def claim(turn_id: str = "turn-1") -> FinalStepClaim:
    return FinalStepClaim("s1", turn_id, "log", "me", 1, 1)


def entry(index: int, **more: object) -> ToolTraceEntry:
    values: dict[str, object] = {
        "call_id": f"c1-{index}",
        "tool": "read_note",
        "effect": Effect.READ_ONLY,
        "status": TraceStatus.COMPLETED,
        "step": 1,
        "wave": 1,
        "args_hash": "h",
        "dispatched_at_ms": 1_700_000_000_000,
        "started_at_ms": 1_700_000_000_001,
        "ended_at_ms": 1_700_000_000_009,
        "latency_ms": 8,
    }
    return ToolTraceEntry.model_validate(values | more)


def conversation(turn_id: str = "turn-1", calls: int = 12) -> tuple[Message, ...]:
    asked = tuple(ToolCall(id=f"c1-{n}", name="read_note", arguments={"path": f"{n}.md"}) for n in range(calls))
    return (
        Message(role="user", content="go \ud83d\ude00", turn=turn_id),
        Message(role="assistant", calls=asked, turn=turn_id, step=1),
        *(
            Message(role="tool", call_id=call.id, name=call.name, content="same", turn=turn_id, step=1)
            for call in asked
        ),
        Message(role="user", content="think again", turn=turn_id, step=1, extra={"note": "reflection"}),
        Message(role="user", content="think again", turn=turn_id, step=1, extra={"note": "reflection"}),
        Message(role="user", content="and hurry\x00", turn=turn_id, step=1),
        Message(role="assistant", content="Done.", turn=turn_id, step=2),
    )


def clean(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """As they are read back: two halves that met are their character. A NUL survives as an escape."""
    first = messages[0].model_copy(update={"content": "go \U0001f600"})
    return (first, *messages[1:])


def test_everything_of_a_turn_is_recorded_once(store: Store) -> None:
    store.turns.accept(request())
    records = SqlRecords(store)
    trace = tuple(entry(n) for n in range(12))
    details = TurnDetails(conversation(), trace)

    assert records.record_answer(claim(), result(spends=SPENDS), False, details) is True
    assert records.record_answer(claim(), result(text="other"), False, TurnDetails()) is False

    assert store.spends.of_turn("turn-1") == [*SPENDS[:2], SPENDS[2].model_copy(update={"model": "n\ufffd"})]
    assert store.traces.of_turn("turn-1") == list(trace)
    assert records.transcript("turn-1") == clean(conversation())
    assert records.transcript("turn-2") == ()
    assert (row := store.turns.get("turn-1")) is not None
    assert row.state == "completed"


def test_what_comes_after_the_result_is_added_to_the_turn(store: Store) -> None:
    records = SqlRecords(store)
    store.turns.accept(request())
    done = result(input_tokens=100, output_tokens=20, cost_usd=0.25, spends=SPENDS)
    records.record_answer(claim(), done, False)
    more = [Spend(kind="judge", step=0, model=f"j{n}", input_tokens=10, cost_usd=0.5) for n in range(6)]

    def add(spend: Spend) -> None:
        with store.database.transaction() as connection:
            store.spends.add(connection, "turn-1", [spend])

    at_once([lambda spend=spend: add(spend) for spend in more])
    kept = store.spends.of_turn("turn-1")
    assert len(kept) == len(SPENDS) + 6
    assert sorted(kept[len(SPENDS) :], key=lambda spend: spend.model) == more
    assert figures(store) == (180, pytest.approx(3.25))
    memory = FinalStepClaim("s1", "turn-1", "memory", "me", 1, 1)
    unpriced = Spend(kind="memory", step=0, model="m", input_tokens=5)
    assert [records.record_memories(memory, "ann", (), [unpriced]) for _ in range(2)] == [True, False]
    assert store.spends.of_turn("turn-1")[-1] == unpriced
    assert figures(store) == (185, pytest.approx(3.25))


def figures(store: Store) -> tuple[int, float]:
    with store.engine.connect() as connection:
        return tuple(connection.execute(text("SELECT tokens, cost_usd FROM turns")).one())


def test_a_trace_may_hold_any_text(store: Store) -> None:
    details = TurnDetails(
        (), (entry(0, tool="say_\ud800", detail="a\x00b \ud800", status=TraceStatus.FAILED, attempt=3, repairs=2),)
    )
    SqlRecords(store).record_answer(claim(), result(), False, details)

    (kept,) = store.traces.of_turn("turn-1")
    assert (kept.tool, kept.detail, kept.attempt, kept.repairs) == ("say_\ufffd", "a\ufffdb \ufffd", 3, 2)


def test_redacted_is_that_there_was_something(store: Store) -> None:
    store.turns.accept(request(text="hidden"))
    secret = Message(role="user", content="my secret", turn="turn-1")
    details = TurnDetails((secret, *conversation()[1:]), (entry(0, detail="secret argument"),))
    SqlRecords(store).record_answer(claim(), result(text="secret answer"), True, details)

    assert store.transcripts.of_turn("turn-1") == ()
    assert [kept.detail for kept in store.traces.of_turn("turn-1")] == [""]
    with store.engine.connect() as connection:
        rows = connection.execute(text("SELECT role, message_json FROM transcripts")).all()
        said = connection.execute(text("SELECT content FROM messages")).all()
    assert len(rows) == len(details.messages)
    assert "secret" not in str(rows) + str(said)
    assert "same" not in str(rows)


def test_redacted_calls_keep_how_they_ended_and_not_what(store: Store) -> None:
    store.turns.accept(request())
    for call_id in ("c1-0", "c1-1", "c1-2"):
        store.calls.start(**call(call_id), args_hash="h", args_json=None, idempotency_key="k", owner="w")
    store.calls.start(**call("c1-3"), args_hash="h", args_json='{"a": "secret"}', idempotency_key="k", owner="w")
    store.calls.record_outcome("turn-1", "c1-0", 1, ToolSuccess(value="secret"), late=False)
    store.calls.record_outcome("turn-1", "c1-1", 1, ToolTimeout(after_ms=1), late=False)
    assert "secret" in (store.calls.of_turn("turn-1")[0].outcome_json or "")  # a rescue may need it: the turn lives

    SqlRecords(store).record_answer(claim(), result(), True, TurnDetails())
    store.calls.record_outcome("turn-1", "c1-1", 1, ToolSuccess(value="secret"), late=True)
    store.calls.record_outcome("turn-1", "c1-2", 1, ToolFailure(error="secret"), late=False)

    rows = store.calls.of_turn("turn-1")
    assert [(row.state, row.outcome_kind, row.late) for row in rows] == [
        ("done", "success", False),
        ("done", "success", True),
        ("done", "failure", False),
        ("intent", None, False),
    ]
    assert "secret" not in str(rows)


def test_calls_that_are_not_redacted_keep_a_late_outcome(store: Store) -> None:
    store.turns.accept(request())
    start(store)
    SqlRecords(store).record_answer(claim(), result(), False, TurnDetails())
    store.calls.record_outcome("turn-1", "c1-0", 1, ToolSuccess(value="kept"), late=True)
    assert "kept" in (store.calls.of_turn("turn-1")[0].outcome_json or "")


def test_of_a_redacted_error_stays_why_the_turn_stopped(store: Store) -> None:
    store.turns.accept(request())
    failed = result(text="", ending=Ending.FAILED, stop_reason=StopReason.MODEL_ERROR, error="my secret")
    SqlRecords(store).record_answer(claim(), failed, True, TurnDetails())
    row, kept = store.turns.get("turn-1"), store.turns.result("turn-1")
    assert row is not None
    assert kept is not None
    assert row.error == kept.error == StopReason.MODEL_ERROR.value


@pytest.mark.parametrize("redact", [False, True])
def test_a_turn_that_never_began_has_its_users_message(store: Store, redact: bool) -> None:
    store.turns.accept(request(text="hello there"))
    records = SqlRecords(store)
    records.record_answer(claim(), result(), redact, TurnDetails(), "hello there")
    with store.engine.connect() as connection:
        rows = connection.execute(text("SELECT role, content, redacted FROM messages ORDER BY row")).all()
    said = ("", "") if redact else ("hello there", "answer")
    assert [tuple(row) for row in rows] == [("user", said[0], redact), ("assistant", said[1], redact)]
    assert records.source_event_id("turn-1").startswith("chat_message:")


def test_a_turn_that_began_keeps_the_message_it_logged_then(store: Store) -> None:
    sent = request(text="as it was")
    store.turns.accept(sent)
    row = store.messages.log_user(sent, redact=False)
    SqlRecords(store).record_answer(claim(), result(), False, TurnDetails(), "another")
    assert store.messages.user_row("turn-1") == row
    with store.engine.connect() as connection:
        said = connection.execute(text("SELECT content FROM messages WHERE role = 'user'")).scalars().all()
    assert said == ["as it was"]


def test_the_source_event_is_the_row_of_the_users_message(store: Store) -> None:
    records = SqlRecords(store)

    assert records.source_event_id("turn-1") == ""
    row = store.messages.log_user(request(), redact=True)
    assert records.source_event_id("turn-1") == f"chat_message:{row}"


@pytest.mark.parametrize("cut", range(len(conversation()) + 1))
def test_a_conversation_archived_in_two_parts_is_whole(store: Store, cut: int) -> None:
    """Compaction drops the older part, but keeps the user's message in the history."""
    store.turns.accept(request())
    said = conversation()
    store.transcripts.archive("s1", "turn-1", said[:cut], redact=False)
    store.transcripts.archive("s1", "turn-1", said[:cut], redact=False)
    SqlRecords(store).record_answer(claim(), result(), False, TurnDetails((said[0], *said[max(1, cut) :])))

    kept, whole = store.transcripts.of_turn("turn-1"), clean(said)
    if cut == NOTES_AT + 1:  # of two notes in the same words, the second is taken for the first
        whole = (*whole[:NOTES_AT], *whole[NOTES_AT + 1 :])
    if NOTES_AT < cut < len(said) - 1:  # two parts that both hold notes of this step
        assert sorted(kept, key=repr) == sorted(whole, key=repr)
    else:
        assert kept == whole


def test_pages_are_the_whole_in_order(store: Store) -> None:
    store.turns.accept(request())
    trace = tuple(entry(n, call_id=f"c{step}-{n}", step=step) for step in (1, 2, 10) for n in range(12))
    SqlRecords(store).record_answer(claim(), result(), False, TurnDetails(conversation(), trace))

    whole = store.transcripts.of_turn("turn-1")
    for limit in (1, 5, len(whole)):
        pages = [store.transcripts.page("turn-1", limit, at)[0] or () for at in range(0, len(whole), limit)]
        assert tuple(message for page in pages for message in page) == whole
    assert store.transcripts.page("turn-1", 5, len(whole)) == ((), None)
    assert store.transcripts.count("turn-1") == len(whole)
    called = store.transcripts.of_calls("turn-1", 1, 1)
    assert called == tuple(message for message in whole if message.role != "user" and message.step == 1)
    assert store.traces.of_turn("turn-1") == list(trace)
    for at in range(len(trace)):
        after = trace[at - 1].call_id if at else None
        assert store.traces.page("turn-1", 3, after) == list(trace[at : at + 3])


def test_pages_are_read_by_an_index(store: Store) -> None:
    statements: Any = import_module("brainq.adapters.sql.repositories")
    traces, transcripts, turns = statements.turn_records, statements.session_log, statements.turns

    paged: dict[str, tuple[Any, dict[str, object]]] = {
        "transcripts": (transcripts._PAGE, {"turn": "t", "limit": 5, "after": 9}),
        "transcripts of steps": (transcripts._OF_STEPS, {"turn": "t", "first": 1, "last": 2}),
        "transcripts counted": (transcripts._COUNT, {"turn": "t"}),
        "traces": (traces._PAGE_AFTER, {"turn": "t", "limit": 5, "step": 1, "call": "c1-0"}),
        "turns": (turns._PAGE_BEFORE, {"session": "s", "limit": 5, "before": "t"}),
    }
    sqlite = store.database.dialect == "sqlite"
    connection = store.engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("SELECT 1" if sqlite else "SET enable_seqscan = off")
        for name, (statement, given) in paged.items():
            query, values = store.database.prepared(statement, tuple(given)).for_driver(given)
            cursor.execute(f"EXPLAIN {'QUERY PLAN' if sqlite else ''} {query}", values)
            plan = str(cursor.fetchall())
            assert name.split()[0] in plan
            assert "SCAN" not in plan.replace("Index Scan", "").replace("Index Only Scan", ""), (name, plan)
            assert "Seq Scan" not in plan, (name, plan)
    finally:
        connection.close()


def test_threads_may_archive_and_record_at_once(store: Store) -> None:
    store.turns.accept(request())
    said = conversation()
    jobs = [lambda: store.transcripts.archive("s1", "turn-1", said, redact=False)] * 5

    at_once([*jobs, lambda: store.transcripts.archive("s1", "turn-1", said[:4], redact=False)])

    assert store.transcripts.of_turn("turn-1") == clean(said)


def test_messages_of_an_earlier_turn_are_kept_with_it_until_it_is_recorded(store: Store) -> None:
    for turn_id in ("turn-0", "turn-1", "turn-2"):
        store.turns.accept(request(turn_id))
    end_turn(store, "turn-0")
    of_all = (*conversation("turn-0"), *conversation("turn-1"), *conversation("turn-2"))
    read_back = Message(role="user", content="long ago", turn="earlier-3")

    store.transcripts.archive("s1", "turn-2", (read_back, *of_all), redact=False)

    assert store.transcripts.of_turn("turn-0") == ()  # its own record is there: pruned, or written without details
    assert store.transcripts.of_turn("turn-1") == clean(conversation("turn-1"))
    assert store.transcripts.of_turn("turn-2") == clean(conversation("turn-2"))
    assert store.transcripts.of_turn("earlier-3") == ()


def test_the_record_of_a_turn_is_few_statements(store: Store) -> None:
    """One transaction, and as many statements for twelve calls as for one."""
    from tests.integration.adapters.sql.test_engine import sent_by

    sent = sent_by(store.engine)
    for number, calls in enumerate((1, 12)):
        turn_id = f"turn-{number}"
        store.turns.accept(request(turn_id))
        details = TurnDetails(conversation(turn_id, calls), tuple(entry(n) for n in range(calls)))
        sent.clear()
        SqlRecords(store).record_answer(claim(turn_id), result(turn_id, spends=SPENDS), False, details)

        assert [statement.split()[0] for statement in sent] == ["BEGIN", *["INSERT"] * 5, "UPDATE"]

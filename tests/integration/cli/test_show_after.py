"""What `brainq show` reads back of a turn that is over."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from brainq.adapters.sql.records import SqlRecords
from brainq.cli.pages.turn_record import CostSum, dollars
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.evaluation import Judgement
from brainq.contracts.memory import MemoryItem, Observation
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import TurnDetails
from brainq.engine.jobs import job_key
from tests.support.commands import Brainq

SPENDS = (
    Spend(step=1, model="gpt-x", input_tokens=1200, output_tokens=80, cost_usd=0.0123),
    Spend(kind="lost", step=2, model="gpt-x", input_tokens=1300),
    Spend(step=2, model="gpt-x", input_tokens=1300, output_tokens=9, cache_read_tokens=1200, cost_usd=0.000034),
)


@pytest.fixture
def turn_id(client: Client) -> str:
    """A turn of which every section has something to show."""
    store, session_id = wiring_of(client).store, "s1"
    turn_id = client.submit(session_id, "What do the notes say about tea?").turn_id
    records = SqlRecords(store)

    def claim(step: str) -> FinalStepClaim:
        return FinalStepClaim(session_id, turn_id, step, "me", 1, 1)

    result = TurnResult(
        turn_id=turn_id,
        session_id=session_id,
        text="Green tea, at four.",
        ending=Ending.COMPLETED,
        stop_reason=StopReason.ANSWERED,
        spends=SPENDS,
    )
    entry = ToolTraceEntry(
        call_id="c1-0",
        tool="read_note",
        effect=Effect.READ_ONLY,
        status=TraceStatus.COMPLETED,
        step=1,
        wave=1,
        started_at_ms=1,
        latency_ms=12,
    )
    records.record_answer(claim("log"), result, False, TurnDetails((), (entry,)))
    for step in ("memory", "memory"):
        items = [MemoryItem(kind="preference", text="Prefers green tea.")]
        records.record_memories(FinalStepClaim("s1", turn_id, step, "me", 1, 1), "ann", items)
    records.record_observations(
        claim("learner"), "ann", "e", [Observation(kind="open_question", text="Which \x1b[31m tea?")]
    )
    store.steps.note_failure(turn_id, "decision", "OSError: no room", 8, dead=True)
    records.record_judges(claim("judges"), session_id, turn_id, ["faithfulness", "relevance", "style", "tone", "wit"])
    store.judgements.take(job_key(turn_id, "style"), 75)
    good = Judgement(score=0.83, reason="Every claim stands in the notes.", model="gpt-x")
    judged = Spend(kind="judge", step=0, model="gpt-j", input_tokens=5, cost_usd=0.001)
    store.judgements.settle(turn_id, "faithfulness", good, [judged])
    store.judgements.fail(job_key(turn_id, "tone"), 0, "ProviderError: refused", None)
    store.judgements.fail(job_key(turn_id, "wit"), 0, "ProviderError: busy", 3600)
    return turn_id


def test_the_page_says_what_it_cost_how_it_was_judged_and_what_was_learned(brainq: Brainq, turn_id: str) -> None:
    page = brainq("show", turn_id).out
    lines = [line.rstrip() for line in page.splitlines()]
    rows = [line.split() for line in lines]

    assert ["1", "step", "gpt-x", "1,200", "80", "0", "$0.0123"] in rows
    assert ["2", "lost", "gpt-x", "1,300", "0", "0", "no", "price"] in rows
    assert ["2", "step", "gpt-x", "1,300", "9", "1,200", "$0.000034"] in rows
    assert ["0", "judge", "gpt-j", "5", "0", "0", "$0.0010"] in rows
    assert ["total", "3,805", "89", "1,200", "more", "than", "$0.0133"] in rows
    assert any("0.83" in line and "Every claim stands" in line and "gpt-x" in line for line in lines)
    assert any(line.startswith("faithfulness") and "5 in, 0 out" in line for line in lines)
    assert any(line.startswith("relevance") and "pending" in line and "due" in line for line in lines)
    assert any(line.startswith("style") and "running, for at most 1 min" in line for line in lines)
    assert any(line.startswith("wit") and "next try in" in line and "busy" in line for line in lines)
    assert any(line.startswith("preference") and "Prefers green tea." in line and "once" in line for line in lines)
    assert "\x1b" not in page
    assert f"decision is dead; to retry it: brainq finalize retry {turn_id} decision" in lines
    assert f"judge:tone is dead; to retry it: brainq finalize retry {turn_id} judge:tone" in lines
    sections = [line for line in lines if line in ("cost", "judgements", "remembered", "finalizer, from SQL")]
    assert sections == ["cost", "finalizer, from SQL", "judgements", "remembered"]


def test_json_has_all_of_it(brainq: Brainq, turn_id: str) -> None:
    facts = json.loads(brainq("show", turn_id, "--json").out)

    assert [spend["cost_usd"] for spend in facts["spends"]] == [0.0123, None, 0.000034, 0.001]
    assert facts["used"] == {"tokens": 3894, "cost_usd": None}
    assert {row["judge"]: row["state"] for row in facts["judgements"]} == {
        "faithfulness": "done",
        "relevance": "pending",
        "style": "pending",
        "tone": "dead",
        "wit": "pending",
    }
    assert [row["text"] for row in facts["memories"]] == ["Prefers green tea."]
    assert [row["kind"] for row in facts["observations"]] == ["open_question"]
    assert [row["tool"] for row in facts["calls"]] == ["read_note"]
    assert {row["step"]: row["state"] for row in facts["finalizer_steps"]}["decision"] == "dead"


def test_the_calls_are_shown_when_redis_has_let_the_turn_go(brainq: Brainq, client: Client, turn_id: str) -> None:
    wiring_of(client).state.redis.flushall()

    page = brainq("show", turn_id).out
    assert "calls, from SQL" in page
    assert "read_note" in page
    assert "12 ms" in page


def test_a_turn_that_left_nothing_has_none_of_these_sections(brainq: Brainq, client: Client) -> None:
    page = brainq("show", client.submit("s1", "hello").turn_id).out

    for section in ("cost\n", "judgements", "remembered", "finalizer"):
        assert f"\n{section}" not in page


def test_much_that_was_learned_is_cut(brainq: Brainq, client: Client) -> None:
    turn_id = client.submit("s1", "hello").turn_id
    items = [MemoryItem(kind="fact", text=f"Fact {number}") for number in range(25)]
    SqlRecords(wiring_of(client).store).record_memories(
        FinalStepClaim("s1", turn_id, "memory", "me", 1, 1), "ann", items
    )

    assert "... 5 more; --json has them all" in brainq("show", turn_id).out
    with wiring_of(client).store.engine.connect() as connection:
        connection.execute(text("UPDATE memories SET times_seen = 3"))
    assert "3 times" in brainq("show", turn_id).out


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (0, "$0"),
        (0.000034, "$0.000034"),
        (0.00123, "$0.0012"),
        (0.0123, "$0.0123"),
        (0.5, "$0.5000"),
        (12.5, "$12.50"),
        (1234.5, "$1,234.50"),
        (1e-12, "under $0.0000001"),
    ],
)
def test_dollars(cost: float, shown: str) -> None:
    assert dollars(cost) == shown


def test_costs_add_up_and_say_what_is_not_known() -> None:
    assert str(CostSum.total([0.1, 0.2])) == "$0.3000"
    assert str(CostSum.total([None, None])) == "no price"
    assert str(CostSum.total([0.1, None])) == "more than $0.1000"
    assert str(CostSum.total([])) == "$0"

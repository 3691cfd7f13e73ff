"""The spend report: what SQL sums is what each call has cost, by whatever it is grouped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from brainq.adapters.sql.store import Store
from brainq.contracts.budgets import Budget
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.model import Spend
from brainq.contracts.spending import SpendBy, SpendLine, check_spend_by, spend_csv
from brainq.contracts.status import Effect, TraceStatus
from brainq.errors import InvalidInput
from tests.integration.adapters.sql.examples import request

AT = datetime(2026, 11, 26, 23, 59, 59, tzinfo=UTC)


def spend(usd: float | None, model: str = "m", **more: object) -> Spend:
    return Spend.model_validate({"step": 1, "model": model, "input_tokens": 10, "cost_usd": usd, **more})


def keep(store: Store, session: str, at: datetime, used: Sequence[Spend], tools: Sequence[str] = ()) -> None:
    turn_id = f"t-{session.replace(':', '-')}-{at:%d%H%M%S}"
    store.turns.accept(request(turn_id, session))
    entries = [
        ToolTraceEntry(
            call_id=f"c1-{number}",
            tool=tool.rstrip("!"),
            effect=Effect.READ_ONLY,
            status=TraceStatus.FAILED if tool.endswith("!") else TraceStatus.COMPLETED,
            step=1,
            wave=1,
        )
        for number, tool in enumerate(tools)
    ]
    with store.database.transaction() as connection:
        store.spends.write(connection, turn_id, used)
        store.traces.write(connection, session_id=session, turn_id=turn_id, entries=entries, redact=False)
    with store.engine.begin() as sql:
        when = at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if sql.dialect.name == "sqlite" else at
        sql.execute(
            text("UPDATE turns SET accepted_at = :at, brain = 'b' WHERE turn_id = :id"), {"at": when, "id": turn_id}
        )


@pytest.fixture
def spent(store: Store) -> Store:
    keep(store, "acme:1", AT, [spend(1.0), spend(0.5, kind="lost", estimated=True)], ["look", "look!"])
    keep(store, "acme:2", AT + timedelta(seconds=2), [spend(2.0, "n"), spend(None, "free"), spend(9.0, kind="child")])
    keep(store, "alone", AT, [spend(0.25, kind="judge")], ["look"])
    return store


def report(store: Store, *by: SpendBy, sessions: Sequence[str] | None = None) -> list[SpendLine]:
    return store.spending.report(by, AT - timedelta(days=1), None, sessions)


def test_each_call_counts_once_by_whatever_it_is_grouped(spent: Store) -> None:
    days = report(spent, "day")
    assert [(line.day, line.cost_usd) for line in days] == [("2026-11-26", 1.75), ("2026-11-27", 2.0)]
    (acme, alone) = sorted(report(spent, "tenant"), key=lambda line: line.tenant or "", reverse=True)
    assert (acme.tenant, acme.calls, acme.cost_usd, acme.estimated_usd) == ("acme:", 4, 3.5, 0.5)
    assert acme.unpriced_calls == 1, "a model without a price is told of"
    assert (alone.tenant, alone.cost_usd) == (":", 0.25)
    models = {line.model: line.cost_usd for line in report(spent, "model")}
    assert models == {"m": 1.75, "n": 2.0, "free": 0.0}, "what a child has cost is the child's own"
    kinds = {(line.brain, line.kind): line.calls for line in report(spent, "brain", "kind")}
    assert kinds == {("b", "step"): 3, ("b", "lost"): 1, ("b", "judge"): 1}


def test_tools_are_counted(spent: Store) -> None:
    lines = [(line.tenant, line.tool, line.calls, line.failed_calls) for line in report(spent, "tenant", "tool")]
    assert sorted(lines, key=str) == [(":", "look", 1, 0), ("acme:", "look", 2, 1)]


def test_a_report_is_of_its_time_and_its_sessions(spent: Store) -> None:
    begin = AT + timedelta(seconds=1)
    assert [line.cost_usd for line in spent.spending.report(("day",), begin, None, None)] == [2.0]
    assert [
        line.cost_usd for line in spent.spending.report(("day",), AT - timedelta(seconds=1), begin, ("acme:",))
    ] == [1.5]
    assert report(spent, sessions=()) == []
    (whole,) = report(spent)
    assert whole.cost_usd == 3.75


def test_a_report_begins_with_its_first_instant_and_ends_before_its_last(spent: Store) -> None:
    later = AT + timedelta(seconds=2)
    assert [line.cost_usd for line in spent.spending.report(("day",), AT, later, ("acme:",))] == [1.5]
    assert [line.cost_usd for line in spent.spending.report(("day",), later, None, ("acme:",))] == [2.0]


@pytest.mark.parametrize(
    ("scope", "usd"), [("all", 3.75), ("tenant acme:", 3.5), ("tenant :", 0.25), ("brain b", 3.75), ("brain c", 0.0)]
)
def test_a_window_begins_with_what_its_turns_have_cost_and_a_childs_call_counts_once(
    spent: Store, scope: str, usd: float
) -> None:
    start_ms = int(AT.timestamp() * 1000)
    spent.budgets.raise_by(scope, Budget(scope=scope, per="day", usd=9.0), start_ms, 1.0, "ann")
    (window,) = spent.budgets.windows(start_ms)
    assert (window.granted_usd, window.raised_usd) == (usd, 1.0)
    later = Budget(scope=scope, per="hour", usd=9.0)
    spent.budgets.raise_by(scope, later, start_ms + 1000, 1.0, "ann")
    assert [row.granted_usd for row in spent.budgets.windows(start_ms + 1000)] == [
        0.0 if scope in ("tenant :", "brain c") else 2.0
    ]


def test_what_cannot_be_grouped_is_refused_by_name() -> None:
    for by in (["week"], ["tool", "model"], "tool,day"):
        with pytest.raises(InvalidInput, match="by"):
            check_spend_by(by)
    assert check_spend_by(["tenant", "day", "day"]) == ("day", "tenant")


def test_csv_has_no_formulas() -> None:
    text = spend_csv(("tenant",), [SpendLine(tenant="=1+1:", calls=2, cost_usd=0.5)])
    head, line, _ = text.split("\r\n")
    assert head.startswith("tenant,calls,failed_calls,input_tokens")
    assert line.startswith("'=1+1:,2,0,")
    assert ",0.5," in line

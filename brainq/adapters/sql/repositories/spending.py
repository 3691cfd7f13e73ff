"""Sum the cost of model calls, and count tool calls, from the finalizer's log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Float, Text, case, false, func, literal, select, type_coerce
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import in_sessions
from brainq.adapters.sql.tables import spends, traces, turns
from brainq.contracts.ids import PREFIX_BOUNDARY
from brainq.contracts.spending import SpendBy, SpendLine

_T, _S, _C = turns.c, spends.c, traces.c
# A parent turn counts a child turn as one spend, and the child has its own spends.
_OF_CHILDREN = "child"
MAX_LINES = 100_000


class tenant_in(FunctionElement[str]):  # noqa: N801 - reads as the SQL function it is
    """`tenant_in(session_id)`: the session id up to its first colon, or `:` without one."""

    type = Text()
    inherit_cache = True


@compiles(tenant_in, "sqlite")
def _sqlite_tenant(element: tenant_in, compiler: Any, **kw: Any) -> str:
    session = compiler.process(element.clauses, **kw)
    colon = f"instr({session}, '{PREFIX_BOUNDARY}')"
    return f"CASE {colon} WHEN 0 THEN '{PREFIX_BOUNDARY}' ELSE substr({session}, 1, {colon}) END"


@compiles(tenant_in, "postgresql")
def _postgres_tenant(element: tenant_in, compiler: Any, **kw: Any) -> str:
    session = compiler.process(element.clauses, **kw)
    colon = f"strpos({session}, '{PREFIX_BOUNDARY}')"
    return f"CASE {colon} WHEN 0 THEN '{PREFIX_BOUNDARY}' ELSE substr({session}, 1, {colon}) END"


class utc_day(FunctionElement[str]):  # noqa: N801
    """`utc_day(instant)`: the day, such as 2026-11-27."""

    type = Text()
    inherit_cache = True


@compiles(utc_day, "sqlite")
def _sqlite_day(element: utc_day, compiler: Any, **kw: Any) -> str:
    return f"substr({compiler.process(element.clauses, **kw)}, 1, 10)"


@compiles(utc_day, "postgresql")
def _postgres_day(element: utc_day, compiler: Any, **kw: Any) -> str:
    return f"to_char({compiler.process(element.clauses, **kw)} AT TIME ZONE 'UTC', 'YYYY-MM-DD')"


_GROUPS: dict[SpendBy, ColumnElement[Any]] = {
    "day": utc_day(_T.accepted_at),
    "tenant": tenant_in(_T.session_id),
    "brain": func.coalesce(_T.brain, literal("", Text())),
    "model": _S.model,
    "kind": _S.kind,
    "tool": _C.tool,
}


def _sum(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(column), 0)


_MODEL_FIGURES = (
    func.count().label("calls"),
    *(
        _sum(_S[name]).label(name)
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
    ),
    type_coerce(_sum(_S.cost_usd), Float()).label("cost_usd"),
    type_coerce(_sum(case((_S.estimated != false(), _S.cost_usd), else_=0.0)), Float()).label("estimated_usd"),
    _sum(case((_S.cost_usd.is_(None), 1), else_=0)).label("unpriced_calls"),
)
_TOOL_FIGURES = (
    func.count().label("calls"),
    _sum(case((_C.status != "completed", 1), else_=0)).label("failed_calls"),
)


class Spending:
    """Sums over `spends` and `traces`, joined with their turns."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def report(
        self, by: Sequence[SpendBy], since: datetime, until: datetime | None, sessions: Sequence[str] | None
    ) -> list[SpendLine]:
        """Return one line per group, in order, over turns accepted from `since` on and before `until`.

        sessions   only sessions with one of these prefixes; None for all
        """
        of_tools = "tool" in by
        table, figures = (traces, _TOOL_FIGURES) if of_tools else (spends, _MODEL_FIGURES)
        groups = [_GROUPS[name].label(name) for name in by]
        chosen = select(*groups, *figures).select_from(turns.join(table, table.c.turn_id == _T.turn_id))
        chosen = chosen.where(_T.accepted_at >= since)
        if not of_tools:
            chosen = chosen.where(_S.kind != _OF_CHILDREN)
        if until is not None:
            chosen = chosen.where(_T.accepted_at < until)
        if sessions is not None:
            chosen = chosen.where(in_sessions(_T.session_id, sessions))
        chosen = chosen.group_by(*(_GROUPS[name] for name in by)).order_by(*(_GROUPS[name] for name in by))
        found = self._db.all(chosen.limit(MAX_LINES), {})
        return [_spend_line(record) for record in found if record["calls"]]


def _spend_line(found: Record) -> SpendLine:
    dollars = ("cost_usd", "estimated_usd")
    return SpendLine.model_validate(
        {
            name: value if isinstance(value, str) else float(value) if name in dollars else int(value)
            for name, value in found.items()
        }
    )

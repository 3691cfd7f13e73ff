"""The tables with rows of tenants, each described once. Retention, erasure, re-encryption and moves between cells take
their lists from here, so a new table is added in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Column, Engine, Table

from brainq.adapters.sql.tables import (
    approvals,
    attachments,
    blobs,
    brakes,
    calls,
    decisions,
    deliveries,
    finalizer_steps,
    inputs,
    judgements,
    memories,
    messages,
    observations,
    pruned_sessions,
    schedules,
    spends,
    traces,
    transcripts,
    turns,
)
from brainq.adapters.sql.tables.budget_tables import BUDGET_TABLES, budget_windows
from brainq.adapters.sql.tables.job_tables import JOB_TABLES, step_jobs
from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.operator_tables import OPERATOR_TABLES, acts

KNOWLEDGE = (memories, observations)
"""The tables whose rows belong to a scope as well as to a session, and stay when their turn is pruned."""


@dataclass(frozen=True, slots=True)
class TenantTable:
    """A table with rows of tenants.

    table: the table.
    moves: what a move to another cell does. `copied`: its rows cause no work in the new cell, so they are copied while
        the move can still be undone. `handed over`: workers take up its rows by themselves, so only one cell may have
        them; they are moved after the decision. `apart`: the move does not carry its rows as they are.
    made_by: what creates the table, if it is created when it is first needed.
    """

    table: Table
    moves: Literal["copied", "handed over", "apart"] = "copied"
    made_by: OnDemandTables | None = None

    def is_there(self, engine: Engine) -> bool:
        return self.made_by is None or self.made_by.has(engine, self.table)


TENANT_TABLES = (
    *map(TenantTable, (blobs, attachments, turns, messages, transcripts, traces, calls, spends, decisions)),
    *map(TenantTable, (finalizer_steps, inputs, approvals, brakes, pruned_sessions, *KNOWLEDGE)),
    *(TenantTable(table, "handed over") for table in (schedules, deliveries, judgements)),
    TenantTable(step_jobs, "handed over", JOB_TABLES),
    TenantTable(acts, "apart", OPERATOR_TABLES),
    TenantTable(budget_windows, "apart", BUDGET_TABLES),
)
"""In the order in which a move copies them. A file is of the tenants whose turns have it; rows of `spends` and
`finalizer_steps` are of their turn's tenant, rows of `budget_windows` of their scope's."""
COPIED = tuple(each.table for each in TENANT_TABLES if each.moves == "copied")
HANDED_OVER = tuple(each.table for each in TENANT_TABLES if each.moves == "handed over")
OF_TURNS = tuple(
    table for table in (*COPIED, *HANDED_OVER) if "turn_id" in table.c and table not in (turns, *KNOWLEDGE, step_jobs)
)
"""The tables whose rows are deleted with their turn. A step's job ends when it is tried and its turn is gone."""
BY_TURN = tuple(table for table in OF_TURNS if "session_id" not in table.c)
"""The tables that have the turn of a row, but not its session."""
BY_SESSION = tuple(
    each
    for each in TENANT_TABLES
    if "session_id" in each.table.c and each.table not in (turns, attachments, *KNOWLEDGE)
)


def row_key(table: Table) -> list[Column[Any]]:
    """Return the columns that identify a row, in the order in which rows were written."""
    return [table.c.row] if "row" in table.c else list(table.primary_key.columns)

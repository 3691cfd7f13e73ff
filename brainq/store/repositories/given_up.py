"""How much was given up, and how much waits for people: counts that read nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table, func, literal_column, select

from brainq.store.database import Database
from brainq.store.tables import approvals, deliveries, finalizer_steps, judgements


def _count(table: Table, state: str) -> ColumnElement[int]:
    # A literal: only so the partial index is used.
    is_so = table.c.state == literal_column(f"'{state}'")
    return select(func.count()).select_from(table).where(is_so).scalar_subquery()


_COUNTS = select(
    _count(finalizer_steps, "dead").label("finalizer_steps"),
    _count(judgements, "dead").label("judgements"),
    _count(deliveries, "dead").label("deliveries"),
    _count(approvals, "pending").label("approvals"),
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Finalizer steps, judgements and deliveries that are dead; approvals that are pending."""

    finalizer_steps: int
    judgements: int
    deliveries: int
    approvals: int


def count_given_up(database: Database) -> Counts:
    found = database.first(_COUNTS, {}) or {}
    return Counts(**{name: int(number) for name, number in found.items()})

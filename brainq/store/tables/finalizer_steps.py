"""How far each turn's finalizer got. What a step writes to SQL commits together with its row here."""

from __future__ import annotations

from sqlalchemy import Column, Integer, PrimaryKeyConstraint, Table

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, utc_now

finalizer_steps = Table(
    "finalizer_steps",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("step", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # done, failed, dead
    Column("tries", Integer, nullable=False),
    Column("step_key", IdText, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("error", SafeText),
    PrimaryKeyConstraint("turn_id", "step"),
)

# What people have to mend: it holds steps that were given up only.
partial_index("ix_finalizer_steps_dead", finalizer_steps.c.turn_id, where="state = 'dead'")

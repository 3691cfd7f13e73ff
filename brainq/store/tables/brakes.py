"""What keeps a turn from changing anything: holds, readiness flags, cancels. Written before anybody is promised one."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Table, UniqueConstraint

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

brakes = Table(
    "brakes",
    metadata,
    row_column(),
    Column("session_id", IdText, nullable=False),
    Column("brake_id", IdText, nullable=False),
    Column("turn_id", IdText),  # None: a flag that no turn has taken
    Column("kind", IdText, nullable=False),  # hold, flag, cancel
    Column("on_timeout", IdText, nullable=False),
    Column("timeout_s", Float, nullable=False),
    Column("placed_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ends_at", UtcTimestamp),  # None: not before it is taken, or never
    Column("over_at", UtcTimestamp),
    Column("reason", SafeText, nullable=False),
    UniqueConstraint("session_id", "brake_id"),
)

Index(None, brakes.c.turn_id)

# Read with every submit, and before every call that changes something: it holds what stands only.
partial_index("ix_brakes_standing", brakes.c.session_id, brakes.c.row, where="over_at IS NULL")

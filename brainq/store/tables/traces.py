"""The trace of each call of a turn, as it stood when the turn was over."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, PrimaryKeyConstraint, Table, false

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText

traces = Table(
    "traces",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("step", Integer, nullable=False),
    Column("wave", Integer, nullable=False),
    Column("tool", IdText, nullable=False),
    Column("effect", IdText, nullable=False),
    Column("status", IdText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("repairs", Integer, nullable=False),
    Column("retryable", Boolean, nullable=False, server_default=false()),
    Column("latency_ms", BigInteger, nullable=False),
    Column("dispatched_at_ms", BigInteger, nullable=False),  # Redis time; 0: never
    Column("started_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger, nullable=False),
    Column("args_hash", IdText, nullable=False),
    Column("detail", SafeText, nullable=False),
    PrimaryKeyConstraint("turn_id", "call_id"),
    sqlite_with_rowid=False,
)

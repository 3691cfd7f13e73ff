"""Intents of non-read calls. The unique key is the promise: an attempt starts at most once."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Integer, Table, UniqueConstraint, false

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

calls = Table(
    "calls",
    metadata,
    row_column(),
    Column("turn_id", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("tool", IdText, nullable=False),
    Column("effect", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # intent, void, done
    Column("args_hash", IdText, nullable=False),
    Column("idempotency_key", IdText, nullable=False),
    Column("owner", IdText, nullable=False),
    Column("outcome_kind", IdText),
    Column("late", Boolean, nullable=False, server_default=false()),
    Column("started_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ended_at", UtcTimestamp),
    Column("args_json", SafeText),
    Column("outcome_json", SafeText),
    UniqueConstraint("turn_id", "call_id", "attempt"),
)

"""Schedules: what is asked when. They outlive Redis, and stay until somebody removes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, UniqueConstraint

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

schedules = Table(
    "schedules",
    metadata,
    row_column(),
    Column("schedule_id", IdText, nullable=False),
    Column("name", IdText, nullable=False),
    Column("timing", SafeText, nullable=False),
    Column("zone", SafeText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("request_json", SafeText, nullable=False),
    Column("on_running", SafeText, nullable=False),
    Column("missed", SafeText, nullable=False),
    Column("paused", Integer, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger),
    Column("last_due_ms", BigInteger),
    Column("last_turn_id", IdText, nullable=False),
    Column("note", SafeText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    UniqueConstraint("schedule_id"),
    UniqueConstraint("name"),
    Index("ix_schedules_next_ms", "next_ms"),
)

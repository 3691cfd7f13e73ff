"""Every turn ever accepted or rejected: written before Redis knows it, ended by the finalizer."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, UniqueConstraint

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

turns = Table(
    "turns",
    metadata,
    row_column(),
    Column("turn_id", IdText, nullable=False),
    Column("request_key", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # accepted, rejected, or the ending
    Column("content_hash", IdText, nullable=False),
    Column("turn_number", Integer),
    Column("ending", IdText),
    Column("stop_reason", IdText),
    Column("accepted_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ended_at", UtcTimestamp),
    Column("reject_reason", SafeText),
    Column("error", SafeText),
    Column("request_json", SafeText, nullable=False),
    Column("result_json", SafeText),
    UniqueConstraint("turn_id"),
    UniqueConstraint("request_key"),
)

Index(None, turns.c.session_id, turns.c.row)

# The sweeper reads this every second: it holds live turns only, however many have ended.
partial_index("ix_turns_unended", turns.c.row, where="ended_at IS NULL")

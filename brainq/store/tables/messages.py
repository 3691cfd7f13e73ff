"""The event log of a session: what the user said at a turn's start, what the assistant said at its end."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, Table, UniqueConstraint

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

messages = Table(
    "messages",
    metadata,
    row_column(),
    Column("session_id", IdText, nullable=False),
    Column("turn_id", IdText, nullable=False),
    Column("role", IdText, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("redacted", Boolean, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("content", SafeText, nullable=False),
    UniqueConstraint("turn_id", "role", "seq"),
)

Index(None, messages.c.session_id, messages.c.row)

"""Calls that a person has to let through, and what was decided."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Table, UniqueConstraint, false

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

approvals = Table(
    "approvals",
    metadata,
    row_column(),
    Column("turn_id", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("tool", IdText, nullable=False),
    Column("effect", IdText, nullable=False),
    Column("args_hash", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # pending, approved, denied, expired, void
    Column("edited", Boolean, nullable=False, server_default=false()),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("expires_at", UtcTimestamp, nullable=False),
    Column("decided_at", UtcTimestamp),
    Column("decided_by", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("comment", SafeText, nullable=False),
    Column("args_json", SafeText),
    UniqueConstraint("turn_id", "call_id"),
)

Index(None, approvals.c.session_id, approvals.c.row)

# What people are shown: it holds open approvals only, however many were decided.
partial_index("ix_approvals_pending", approvals.c.row, where="state = 'pending'")

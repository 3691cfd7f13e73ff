"""Mid-turn input: written before Redis knows it, and what became of it."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, Table, UniqueConstraint

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

inputs = Table(
    "inputs",
    metadata,
    row_column(),
    Column("session_id", IdText, nullable=False),
    Column("client_message_id", IdText, nullable=False),
    Column("turn_id", IdText, nullable=False),  # the turn it was sent to first
    Column("readiness", Boolean),
    Column("merged", Boolean, nullable=False),
    Column("content_hash", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # accepted, consumed, bounced, refused
    Column("step", Integer),
    Column("bounced_turn_id", IdText),
    Column("accepted_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("settled_at", UtcTimestamp),
    Column("text", SafeText, nullable=False),
    Column("attachments_json", SafeText),
    UniqueConstraint("session_id", "client_message_id"),
)

Index(None, inputs.c.turn_id)

# What the sweeper reads: it holds open inputs only, however many are settled.
partial_index("ix_inputs_accepted", inputs.c.row, where="state = 'accepted'")

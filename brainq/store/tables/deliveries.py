"""What webhooks are sent: first jobs, then what became of them."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, UniqueConstraint

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

deliveries = Table(
    "deliveries",
    metadata,
    row_column(),
    Column("message_id", IdText, nullable=False),
    Column("url", IdText, nullable=False),
    Column("event", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("turn_id", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # pending, done, dead
    Column("tries", Integer, nullable=False, server_default="0"),
    # Not to be taken before this: a claim sets it to the end of its lease, a failure to the next try.
    Column("due_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("data_json", SafeText, nullable=False),
    Column("error", SafeText),
    UniqueConstraint("message_id", "url"),
)

Index(None, deliveries.c.turn_id)

# What senders read: it holds open deliveries only, however many are settled.
partial_index("ix_deliveries_pending", deliveries.c.url, deliveries.c.due_at, where="state = 'pending'")

# What people have to mend: it holds deliveries that were given up only.
partial_index("ix_deliveries_dead", deliveries.c.row, where="state = 'dead'")

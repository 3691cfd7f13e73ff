"""Judgements of turns: first jobs, then scores."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, PrimaryKeyConstraint, Table

from brainq.store.tables.base import metadata, partial_index
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, utc_now

judgements = Table(
    "judgements",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("judge", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # pending, done, dead
    Column("tries", Integer, nullable=False, server_default="0"),
    # Not to be taken before this: a claim sets it to the end of its lease, a failure to the next try.
    Column("due_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("score", Float),
    Column("method", IdText),
    Column("model", IdText),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Float),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("reason", SafeText),
    Column("error", SafeText),
    PrimaryKeyConstraint("turn_id", "judge"),
)

# What the sweeper reads: it holds open judgements only, however many are settled.
partial_index("ix_judgements_pending", judgements.c.due_at, where="state = 'pending'")

# What people have to mend: it holds judgements that were given up only.
partial_index("ix_judgements_dead", judgements.c.turn_id, where="state = 'dead'")

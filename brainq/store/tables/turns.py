"""Every turn ever accepted or rejected: written before Redis knows it, ended by the finalizer."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, Table, UniqueConstraint

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
    # What lists show, so that no list reads requests and results. The figures are the result's.
    Column("kind", IdText),
    Column("brain", IdText),  # the one that the turn names
    Column("message", SafeText),  # how the user's message begins; empty where content is not kept
    Column("steps", Integer),
    Column("calls", Integer),
    Column("failed_calls", Integer),
    Column("tokens", BigInteger),
    Column("cost_usd", Float),
    UniqueConstraint("turn_id"),
    UniqueConstraint("request_key"),
)

Index(None, turns.c.session_id, turns.c.row)

# The sweeper reads this every second: it holds live turns only, however many have ended.
partial_index("ix_turns_unended", turns.c.row, where="ended_at IS NULL")

# What lists are filtered by. Of an answer that is whole there are so many that nobody needs an index to find one.
Index("ix_turns_listed", turns.c.state, turns.c.row, turns.c.session_id, turns.c.turn_id)
Index(None, turns.c.accepted_at, turns.c.row)
Index("ix_turns_dear", turns.c.cost_usd, turns.c.row, turns.c.session_id)
partial_index("ix_turns_stopped", turns.c.stop_reason, turns.c.row, where="stop_reason <> 'answered'")
partial_index("ix_turns_failing", turns.c.row, where="failed_calls > 0")
partial_index("ix_turns_brain", turns.c.brain, turns.c.row, where="brain IS NOT NULL")

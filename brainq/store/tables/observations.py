"""What turns taught about a scope's subjects: topics, sources that helped, questions left open."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, UniqueConstraint

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

# Full-text search hangs on `terms`: on SQLite an FTS5 table that triggers keep, on Postgres a generated
# column `search`. Both are made by the migration and are not part of this metadata; see `store/search.py`.
observations = Table(
    "observations",
    metadata,
    row_column(),
    Column("scope", IdText, nullable=False),  # whose: a user, or a session
    Column("kind", IdText, nullable=False),  # topic, source, open_question
    Column("norm_hash", IdText, nullable=False),  # of the text without case, spacing and punctuation
    Column("times_seen", Integer, nullable=False, server_default="1"),
    Column("session_id", IdText, nullable=False),  # where it was first seen
    Column("turn_id", IdText, nullable=False),
    Column("last_turn_id", IdText, nullable=False),
    Column("source_event_id", IdText, nullable=False),  # the user's message it was first learned from
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),  # seen last
    Column("scope_term", IdText, nullable=False),
    Column("text", SafeText, nullable=False),
    Column("terms", SafeText, nullable=False),
    UniqueConstraint("scope", "kind", "norm_hash"),
)

Index(None, observations.c.turn_id)

"""Tables of what turns leave behind: memories, observations, judgements."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, PrimaryKeyConstraint, Table, UniqueConstraint

from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, metadata, partial_index, row_column, utc_now

# What was found worth remembering, once however often it came up.

# Full-text search hangs on `terms`: on SQLite an FTS5 table that triggers keep, on Postgres a generated
# column `search`. Both are made by the migration and are not part of this metadata: `store/repositories/knowledge.py`.
memories = Table(
    "memories",
    metadata,
    row_column(),
    Column("scope", IdText, nullable=False),  # whose: a user, or a session
    Column("kind", IdText, nullable=False),  # fact, preference, habit
    Column("norm_hash", IdText, nullable=False),  # of the text without case, spacing and punctuation
    Column("times_seen", Integer, nullable=False, server_default="1"),
    Column("session_id", IdText, nullable=False),  # where it was first seen
    Column("turn_id", IdText, nullable=False),
    Column("last_turn_id", IdText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),  # seen last
    Column("scope_term", IdText, nullable=False),
    Column("text", SafeText, nullable=False),
    Column("terms", SafeText, nullable=False),
    UniqueConstraint("scope", "kind", "norm_hash"),
)

Index(None, memories.c.turn_id)


# What turns taught about a scope's subjects: topics, sources that helped, questions left open.

# Full-text search hangs on `terms`: on SQLite an FTS5 table that triggers keep, on Postgres a generated
# column `search`. Both are made by the migration and are not part of this metadata: `store/repositories/knowledge.py`.
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


# Judgements of turns: first jobs, then scores.

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

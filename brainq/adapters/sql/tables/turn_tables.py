"""Tables of turns: requests and results, messages, calls, the finalizer's records, and knowledge."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    false,
    text,
)

from brainq.adapters.sql.tables.types import (
    ContentText,
    IdText,
    SafeText,
    UtcTimestamp,
    metadata,
    partial_index,
    row_column,
    utc_now,
)

# Every turn that was accepted or rejected: written before Redis has it, completed by the finalizer.
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
    Column("reject_reason", ContentText("line")),
    Column("error", ContentText("line")),
    Column("request_json", ContentText("required"), nullable=False),
    Column("result_json", ContentText("required")),
    # The columns that lists show, so that no list reads requests and results. The figures are the result's.
    Column("kind", IdText),
    Column("brain", IdText),  # The brain that the turn names.
    Column("message", ContentText("line")),  # The beginning of the user's message; empty if content is not kept.
    Column("steps", Integer),
    Column("calls", Integer),
    Column("failed_calls", Integer),
    Column("tokens", BigInteger),
    Column("cost_usd", Float),
    UniqueConstraint("turn_id"),
    UniqueConstraint("request_key"),
)

Index(None, turns.c.session_id, turns.c.row)

# The sweeper reads this index every second. It has live turns only, however many have ended.
partial_index("ix_turns_unended", turns.c.row, where="ended_at IS NULL")

# Indexes for the filters of lists. Most turns are answered, so an index of those would not make a search faster.
Index("ix_turns_listed", turns.c.state, turns.c.row, turns.c.session_id, turns.c.turn_id)

Index(None, turns.c.accepted_at, turns.c.row)

Index("ix_turns_dear", turns.c.cost_usd, turns.c.row, turns.c.session_id)

partial_index("ix_turns_stopped", turns.c.stop_reason, turns.c.row, where="stop_reason <> 'answered'")

partial_index("ix_turns_failing", turns.c.row, where="failed_calls > 0")

partial_index("ix_turns_brain", turns.c.brain, turns.c.row, where="brain IS NOT NULL")


# The event log of a session: the user's message at a turn's start, the assistant's at its end.
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
    Column("content", ContentText, nullable=False),
    UniqueConstraint("turn_id", "role", "seq"),
)

Index(None, messages.c.session_id, messages.c.row)


# The whole conversation of each turn, message by message: it outlives Redis, and compaction.
# A step has one message a call, but may have several without one: a follow-up, a note of the runtime. These
# are distinguished by a digest of their content, so that writing a message twice is writing it once.
transcripts = Table(
    "transcripts",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("step", Integer, nullable=False),
    Column("role", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),  # Empty except for the role `tool`.
    Column("digest", IdText, nullable=False),  # Empty if there is a call_id.
    Column("session_id", IdText, nullable=False),
    Column("place", Integer, nullable=False),  # The position in the step.
    Column("redacted", Boolean, nullable=False),
    Column("message_json", ContentText("required"), nullable=False),
    PrimaryKeyConstraint("turn_id", "step", "role", "call_id", "digest"),
)


# The trace of each call at the end of its turn.
traces = Table(
    "traces",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("step", Integer, nullable=False),
    Column("wave", Integer, nullable=False),
    Column("tool", IdText, nullable=False),
    Column("effect", IdText, nullable=False),
    Column("status", IdText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("repairs", Integer, nullable=False),
    Column("retryable", Boolean, nullable=False, server_default=false()),
    Column("latency_ms", BigInteger, nullable=False),
    Column("dispatched_at_ms", BigInteger, nullable=False),  # Redis time, or 0 if the call was never dispatched.
    Column("started_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger, nullable=False),
    Column("args_hash", IdText, nullable=False),
    Column("detail", ContentText("line"), nullable=False),
    PrimaryKeyConstraint("turn_id", "call_id"),
    sqlite_with_rowid=False,
)


# Intents of non-read calls. The unique key is the promise: an attempt starts at most once.
calls = Table(
    "calls",
    metadata,
    row_column(),
    Column("turn_id", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("tool", IdText, nullable=False),
    Column("effect", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # intent, void, done
    Column("args_hash", IdText, nullable=False),
    Column("idempotency_key", IdText, nullable=False),
    Column("owner", IdText, nullable=False),
    Column("outcome_kind", IdText),
    Column("late", Boolean, nullable=False, server_default=false()),
    Column("started_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ended_at", UtcTimestamp),
    Column("args_json", ContentText("null")),
    Column("outcome_json", ContentText("null")),
    UniqueConstraint("turn_id", "call_id", "attempt"),
)


# The usage of each model call.
# Dollars are floats. Prices are floats, a 64-bit float keeps a sum of a million calls exact to far below a millionth of
# a cent, and SQLite would convert NUMERIC to a float anyway. The vendor writes the invoice.
spends = Table(
    "spends",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("kind", IdText, nullable=False),  # step, lost, reflection, compaction
    Column("model", IdText, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cache_read_tokens", BigInteger, nullable=False),
    Column("cache_creation_tokens", BigInteger, nullable=False),
    Column("cost_usd", Float),  # None if the model's price is unknown.
    # True if the service reported no token counts.
    Column("estimated", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("turn_id", "seq"),
    sqlite_with_rowid=False,
)


# One RuntimeDecisionRecord a turn.
decisions = Table(
    "decisions",
    metadata,
    row_column(),
    Column("turn_id", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("key", IdText, nullable=False),
    Column("strategy", IdText, nullable=False),
    Column("tools", JSON, nullable=False),
    Column("context_hash", IdText, nullable=False),
    Column("prompt_hash", IdText, nullable=False, server_default=text("''")),
    Column("elapsed_ms", BigInteger, nullable=False),
    Column("turn_number", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cache_read_tokens", BigInteger, nullable=False),
    Column("cache_creation_tokens", BigInteger, nullable=False),
    Column("ending", IdText, nullable=False),
    Column("stop_reason", IdText, nullable=False),
    Column("prompt_id", SafeText),
    Column("prompt_version", SafeText),
    Column("prompt_tags", JSON, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    UniqueConstraint("turn_id"),
)


# The state of each turn's finalizer steps. The SQL writes of a step commit together with its row here.
finalizer_steps = Table(
    "finalizer_steps",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("step", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # done, failed, dead
    Column("tries", Integer, nullable=False),
    Column("step_key", IdText, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("error", ContentText("line")),
    PrimaryKeyConstraint("turn_id", "step"),
)

# An index of dead steps only.
partial_index("ix_finalizer_steps_dead", finalizer_steps.c.turn_id, where="state = 'dead'")


# The number of the newest pruned turn of each session. The row is kept for ever, because the next turn's number
# continues from here.
pruned_sessions = Table(
    "pruned_sessions",
    metadata,
    Column("session_id", IdText, nullable=False),
    Column("turn_row", BigInteger, nullable=False),  # The pruned turn's `turns.row`.
    Column("turn_number", Integer, nullable=False),
    PrimaryKeyConstraint("session_id"),
    sqlite_with_rowid=False,
)


# Full-text search uses `terms`: an FTS5 table with triggers on SQLite, a generated column `search` on Postgres. The
# migration creates both, and they are not part of this metadata; see `adapters/sql/repositories/knowledge.py`.
def _knowledge_table(name: str, *own: Column[Any]) -> Table:
    """Return a table of knowledge about scopes, with one row for equal texts."""
    table = Table(
        name,
        metadata,
        row_column(),
        Column("scope", IdText, nullable=False),  # The user or session that the knowledge belongs to.
        Column("kind", IdText, nullable=False),
        Column("norm_hash", IdText, nullable=False),  # A hash of the text without case, spacing and punctuation.
        Column("times_seen", Integer, nullable=False, server_default="1"),
        Column("session_id", IdText, nullable=False),  # The session in which the text was first seen.
        Column("turn_id", IdText, nullable=False),
        Column("last_turn_id", IdText, nullable=False),
        *own,
        Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
        Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),  # seen last
        Column("scope_term", IdText, nullable=False),
        Column("text", ContentText, nullable=False),
        Column("terms", SafeText, nullable=False),
        UniqueConstraint("scope", "kind", "norm_hash"),
    )
    Index(None, table.c.turn_id)
    return table


# Memories: facts, preferences, habits.
memories = _knowledge_table("memories")

# Observations about a scope: topics, helpful sources, open questions. Each names the user's message from which it was
# first learned.
observations = _knowledge_table("observations", Column("source_event_id", IdText, nullable=False))

# Judgements of turns: jobs at first, then scores.
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
    Column("reason", ContentText("line")),
    Column("error", ContentText("line")),
    PrimaryKeyConstraint("turn_id", "judge"),
)

# An index of open judgements only, for the sweeper.
partial_index("ix_judgements_pending", judgements.c.due_at, where="state = 'pending'")

# An index of dead judgements only.
partial_index("ix_judgements_dead", judgements.c.turn_id, where="state = 'dead'")

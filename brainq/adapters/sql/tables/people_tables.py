"""Tables of input, files, approvals, brakes, schedules, tokens and webhook deliveries."""

from __future__ import annotations

from sqlalchemy import (
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
)

from brainq.adapters.sql.tables.types import (
    ContentBytes,
    ContentText,
    IdText,
    SafeText,
    UtcTimestamp,
    metadata,
    partial_index,
    row_column,
    utc_now,
)

# Mid-turn input, written before Redis has it, and its outcome.
inputs = Table(
    "inputs",
    metadata,
    row_column(),
    Column("session_id", IdText, nullable=False),
    Column("client_message_id", IdText, nullable=False),
    Column("turn_id", IdText, nullable=False),  # The turn to which the input was first sent.
    Column("readiness", Boolean),
    Column("merged", Boolean, nullable=False),
    Column("content_hash", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # accepted, consumed, bounced, refused
    Column("step", Integer),
    Column("bounced_turn_id", IdText),
    Column("accepted_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("settled_at", UtcTimestamp),
    Column("text", ContentText, nullable=False),
    Column("attachments_json", ContentText("null")),
    UniqueConstraint("session_id", "client_message_id"),
)

Index(None, inputs.c.turn_id)

# The index that the sweeper reads. It has open inputs only, however many are settled.
partial_index("ix_inputs_accepted", inputs.c.row, where="state = 'accepted'")


# The bytes of attachments, stored once, and the turns that have them. A blob may be read only through a row of
# `attachments`: by its turn, or by the session of one of its turns.
blobs = Table(
    "blobs",
    metadata,
    Column("sha256", IdText, nullable=False),
    Column("data", ContentBytes, nullable=False),
    PrimaryKeyConstraint("sha256"),
)

attachments = Table(
    "attachments",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("sha256", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("media_type", IdText, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("name", ContentText("line"), nullable=False),
    PrimaryKeyConstraint("turn_id", "sha256"),
)

Index(None, attachments.c.session_id, attachments.c.sha256)

Index(None, attachments.c.sha256)


# Approvals: calls that need a person's decision, and the decisions.
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
    Column("reason", ContentText("line"), nullable=False),
    Column("comment", ContentText("line"), nullable=False),
    Column("args_json", ContentText("null")),
    UniqueConstraint("turn_id", "call_id"),
)

Index(None, approvals.c.session_id, approvals.c.row)

# An index of pending approvals only.
partial_index("ix_approvals_pending", approvals.c.row, where="state = 'pending'")


# Brakes: holds, readiness flags and cancels. A row is written before the brake is promised to anybody. The table also
# has notes that a turn's response was deleted; they are never in force, so no build reads them as brakes.
brakes = Table(
    "brakes",
    metadata,
    row_column(),
    Column("session_id", IdText, nullable=False),
    Column("brake_id", IdText, nullable=False),
    Column("turn_id", IdText),  # None for a flag that no turn has taken.
    Column("kind", IdText, nullable=False),  # hold, flag, cancel, deleted
    Column("on_timeout", IdText, nullable=False),
    Column("timeout_s", Float, nullable=False),
    Column("placed_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ends_at", UtcTimestamp),  # None if the time has not started, or has no end.
    Column("over_at", UtcTimestamp),
    Column("reason", ContentText("line"), nullable=False),
    UniqueConstraint("session_id", "brake_id"),
)

Index(None, brakes.c.turn_id)

# An index of brakes in force only: it is read with every submit, and before every call with effects.
partial_index("ix_brakes_standing", brakes.c.session_id, brakes.c.row, where="over_at IS NULL")


# Schedules. They survive a loss of Redis, and stay until they are removed.
schedules = Table(
    "schedules",
    metadata,
    row_column(),
    Column("schedule_id", IdText, nullable=False),
    Column("name", IdText, nullable=False),
    Column("timing", SafeText, nullable=False),
    Column("zone", SafeText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("request_json", ContentText("null"), nullable=False),
    Column("on_running", SafeText, nullable=False),
    Column("missed", SafeText, nullable=False),
    Column("paused", Integer, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger),
    Column("last_due_ms", BigInteger),
    Column("last_turn_id", IdText, nullable=False),
    Column("note", SafeText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    UniqueConstraint("schedule_id"),
    UniqueConstraint("name"),
    Index("ix_schedules_next_ms", "next_ms"),
)


# Bearer tokens: the sessions and verbs that each gives access to. It holds a hash of the secret, not the secret.
tokens = Table(
    "tokens",
    metadata,
    row_column(),
    Column("token_id", IdText, nullable=False),
    Column("secret_hash", IdText, nullable=False),
    Column("name", SafeText, nullable=False),
    Column("sessions_json", SafeText, nullable=False),
    Column("verbs_json", SafeText, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("expires_at", UtcTimestamp),
    Column("last_used_at", UtcTimestamp),
    Column("revoked_at", UtcTimestamp),
    UniqueConstraint("token_id"),
)


# Webhook deliveries: jobs at first, then their outcome.
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
    # No process may claim the row before this time: a claim sets it to the end of its lease, a failure to the next try.
    Column("due_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("data_json", SafeText, nullable=False),
    Column("error", SafeText),
    UniqueConstraint("message_id", "url"),
)

Index(None, deliveries.c.turn_id)

# An index of open deliveries only, for the senders.
partial_index("ix_deliveries_pending", deliveries.c.url, deliveries.c.due_at, where="state = 'pending'")

# An index of dead deliveries only.
partial_index("ix_deliveries_dead", deliveries.c.row, where="state = 'dead'")

"""The whole conversation of each turn, message by message: it outlives Redis, and compaction."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Integer, PrimaryKeyConstraint, Table

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText

# A step has one message a call, but may have several without one: a follow-up, a note of the runtime. These
# are told apart by a digest of what they say, so that writing a message twice is writing it once.
transcripts = Table(
    "transcripts",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("step", Integer, nullable=False),
    Column("role", IdText, nullable=False),
    Column("call_id", IdText, nullable=False),  # empty but for role `tool`
    Column("digest", IdText, nullable=False),  # empty where there is a call_id
    Column("session_id", IdText, nullable=False),
    Column("place", Integer, nullable=False),  # the order inside the step
    Column("redacted", Boolean, nullable=False),
    Column("message_json", SafeText, nullable=False),
    PrimaryKeyConstraint("turn_id", "step", "role", "call_id", "digest"),
)

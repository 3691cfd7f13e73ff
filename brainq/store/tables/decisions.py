"""One RuntimeDecisionRecord a turn."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Integer, Table, UniqueConstraint, text

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

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

"""Bearer tokens: who may ask, in which sessions, for what. No secret is in it, only the secret's hash."""

from __future__ import annotations

from sqlalchemy import Column, Table, UniqueConstraint

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, row_column, utc_now

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

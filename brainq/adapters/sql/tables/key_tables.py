"""The table of tenants' keys, which may be in another database than the content. It is created with the first key."""

from __future__ import annotations

from sqlalchemy import Column, Integer, PrimaryKeyConstraint, Table, UniqueConstraint

from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.types import IdText, SafeText, UtcTimestamp, utc_now

KEY_TABLES = OnDemandTables()

# One row per key, kept for ever. `wrapped` is empty if the key was removed.
tenant_keys = Table(
    "tenant_keys",
    KEY_TABLES.metadata,
    Column("key_id", IdText, nullable=False),
    Column("tenant", IdText, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("operator_key", IdText, nullable=False),
    Column("wrapped", SafeText, nullable=False),  # base64
    Column("state", IdText, nullable=False),  # current, old, leaving, shredded
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("key_id"),
    UniqueConstraint("tenant", "generation"),
)

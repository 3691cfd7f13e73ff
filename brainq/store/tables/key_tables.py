"""The table of tenants' keys, in a database that may be another than the content's.

It is made when the first key is.
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, PrimaryKeyConstraint, Table, UniqueConstraint

from brainq.store.tables.on_demand import OnDemandTables
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, utc_now

KEY_TABLES = OnDemandTables()

# One row a key, kept for good: of a key that was removed the row says so, and `wrapped` is empty.
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

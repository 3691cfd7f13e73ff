"""Tables of deployments that have cells: where each tenant is, where it moved to, and moves under way.

They are made where cells are set up.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table

from brainq.store.tables.on_demand import OnDemandTables
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, utc_now

CELL_TABLES = OnDemandTables()

# The directory, in home's SQL: which cell a tenant is in. A row is written once, and changed by moves only.
tenant_cells = Table(
    "tenant_cells",
    CELL_TABLES.metadata,
    Column("tenant", IdText, nullable=False),
    Column("cell", IdText, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("tenant"),
)

# In each cell's SQL: who has left it, and where to. Redis has a copy, which scripts ask.
tombstones = Table(
    "tombstones",
    CELL_TABLES.metadata,
    Column("tenant", IdText, nullable=False),
    Column("cell", IdText, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("moved_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("tenant"),
)

# In home's SQL: one row a tenant that moves, with the phase that was reached.
moves = Table(
    "moves",
    CELL_TABLES.metadata,
    Column("tenant", IdText, nullable=False),
    Column("from_cell", IdText, nullable=False),
    Column("to_cell", IdText, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("phase", IdText, nullable=False),
    Column("owner", IdText, nullable=False),
    Column("lease_until", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("counts_json", SafeText, nullable=False, server_default="{}"),
    Column("error", SafeText),
    Column("started_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("tenant"),
)

# In home's SQL: each cell's share of a model's limit. The row of no cell is whose asker has the others to itself.
limit_shares = Table(
    "limit_shares",
    CELL_TABLES.metadata,
    Column("model", IdText, nullable=False),
    Column("cell", IdText, nullable=False),
    Column("mark", BigInteger, nullable=False),
    Column("share", Integer, nullable=False),
    Column("held", Integer, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("asked_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("asking_since", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("model", "cell"),
)

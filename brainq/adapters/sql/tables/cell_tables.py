"""Tables of deployments with cells: each tenant's cell, where it moved to, and moves in progress.

They are created when cells are set up.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table

from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.types import IdText, SafeText, UtcTimestamp, utc_now

CELL_TABLES = OnDemandTables()

# The directory of tenants' cells, in the home cell's SQL. A row is written once and changed only by moves.
tenant_cells = Table(
    "tenant_cells",
    CELL_TABLES.metadata,
    Column("tenant", IdText, nullable=False),
    Column("cell", IdText, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("tenant"),
)

# The tenants that left a cell, and their new cell, in that cell's SQL. Redis has a copy for the scripts.
tombstones = Table(
    "tombstones",
    CELL_TABLES.metadata,
    Column("tenant", IdText, nullable=False),
    Column("cell", IdText, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("moved_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("tenant"),
)

# One row per moving tenant, with the phase of its move, in the home cell's SQL.
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

# In the home cell's SQL: each cell's share of a model's limit. The row without a cell is the lock that a request for a
# share holds.
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

"""Tables of operators' stops and of the audit log. Each is created with its first row."""

from __future__ import annotations

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table

from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.types import ContentText, IdText, SafeText, UtcTimestamp, row_column, utc_now

OPERATOR_TABLES = OnDemandTables()

# Active stops. A row is deleted when the stop is lifted; the audit log has who lifted it.
stops = Table(
    "stops",
    OPERATOR_TABLES.metadata,
    Column("kind", IdText, nullable=False),  # brain, tool, model, server, tenant
    Column("name", IdText, nullable=False),
    Column("tenant", IdText, nullable=False),  # "": of all
    Column("mode", IdText, nullable=False),  # pause, forbid
    Column("stopped_by", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("since", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("ends_at", UtcTimestamp),
    PrimaryKeyConstraint("kind", "name", "tenant"),
)

# The audit log. A row is added after an act and never changed.
acts = Table(
    "acts",
    OPERATOR_TABLES.metadata,
    row_column(),
    Column("at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("who", SafeText, nullable=False),
    Column("source", IdText, nullable=False),  # http, cli, client
    Column("act", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("turn_id", IdText, nullable=False),
    Column("subject", ContentText("line"), nullable=False),
    Column("reason", ContentText("line"), nullable=False),
)

Index(None, acts.c.turn_id)

Index(None, acts.c.session_id)

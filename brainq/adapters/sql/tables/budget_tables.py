"""Tables of budgets, and of the amounts granted to their windows. They are created when budgets are set up."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, PrimaryKeyConstraint, Table, false, text

from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.types import IdText, SafeText, UtcTimestamp, utc_now

BUDGET_TABLES = OnDemandTables()

# Budgets that override the settings. A row without an amount was removed, so the setting applies again.
budgets = Table(
    "budgets",
    BUDGET_TABLES.metadata,
    Column("scope", IdText, nullable=False),
    Column("per", IdText, nullable=False),
    Column("usd", Float),
    Column("at_cap", IdText, nullable=False),
    Column("set_by", SafeText, nullable=False, server_default=text("''")),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("scope", "per"),
)

# One row per window with spending. Redis spends only what was granted here before, so after a loss of Redis the whole
# grant counts as spent, which is never too low.
budget_windows = Table(
    "budget_windows",
    BUDGET_TABLES.metadata,
    Column("scope", IdText, nullable=False),
    Column("per", IdText, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("granted_usd", Float, nullable=False),
    Column("raised_usd", Float, nullable=False, server_default=text("0")),
    Column("raised_by", SafeText, nullable=False, server_default=text("''")),
    Column("noticed_usd", Float),  # The cap of which four fifths were granted when people were last notified.
    Column("noticed_at", UtcTimestamp),
    # The amount leased by the home cell, if cells share the budget.
    Column("leased_usd", Float, nullable=False, server_default=text("0")),
    # The part of the lease that was given back to the home cell.
    Column("returned_usd", Float, nullable=False, server_default=text("0")),
    Column("is_spent", Boolean, nullable=False, server_default=false()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("scope", "per", "start_ms"),
)

# In the home cell's SQL, for windows that several cells share: the total leased to each cell and given back by it. The
# row without a cell is for the whole window.
budget_leases = Table(
    "budget_leases",
    BUDGET_TABLES.metadata,
    Column("scope", IdText, nullable=False),
    Column("per", IdText, nullable=False),
    Column("start_ms", BigInteger, nullable=False),
    Column("cell", IdText, nullable=False),
    Column("leased_usd", Float, nullable=False),
    Column("returned_usd", Float, nullable=False),
    Column("raised_usd", Float, nullable=False),
    Column("raised_by", SafeText, nullable=False),
    Column("noticed_usd", Float),
    Column("noticed_at", UtcTimestamp),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("scope", "per", "start_ms", "cell"),
)

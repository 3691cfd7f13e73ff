"""The registry of the tables with rows of tenants."""

from __future__ import annotations

from brainq.adapters.sql.tables import attachments, blobs, metadata, turns
from brainq.adapters.sql.tables.budget_tables import budget_windows
from brainq.adapters.sql.tables.job_tables import step_jobs
from brainq.adapters.sql.tables.tenant_tables import (
    BY_SESSION,
    BY_TURN,
    COPIED,
    HANDED_OVER,
    KNOWLEDGE,
    OF_TURNS,
    TENANT_TABLES,
)
from lab.upgrade.used import every_on_demand

TENANT_COLUMNS = {"session_id", "turn_id", "tenant", "scope"}
NOT_OF_TENANTS = {
    "budgets": "operators set them; they stay when the tenant's rows go",
    "budget_leases": "what home leased to other cells; retention deletes them by age",
    "moves": "a move deletes its row itself",
    "stops": "operators set and lift them",
    "tenant_keys": "the registry of keys; `erase_keys` removes a tenant's",
    "tenant_cells": "the directory of tenants, which erases its rows itself",
    "tombstones": "where a tenant went, which a move writes",
}


def test_every_table_with_a_tenant_column_is_registered_or_has_a_reason() -> None:
    on_demand = [table for each in every_on_demand() for table in each.metadata.sorted_tables]
    of_tenants = {
        table.name for table in (*metadata.sorted_tables, *on_demand) if not TENANT_COLUMNS.isdisjoint(table.c.keys())
    }
    registered = {each.table.name for each in TENANT_TABLES}

    assert of_tenants | {"blobs"} == registered | NOT_OF_TENANTS.keys()
    assert registered.isdisjoint(NOT_OF_TENANTS)


def test_every_registered_table_is_erased_pruned_and_moved() -> None:
    erased = {turns, attachments, blobs, budget_windows, *BY_TURN, *KNOWLEDGE, *(each.table for each in BY_SESSION)}
    assert erased == {each.table for each in TENANT_TABLES}
    assert {*OF_TURNS, turns, *KNOWLEDGE} == {table for table in metadata.sorted_tables if "turn_id" in table.c}
    of_cells = {table for table in metadata.sorted_tables if table.name != "tokens"}
    assert {*COPIED, *HANDED_OVER} == of_cells | {step_jobs}

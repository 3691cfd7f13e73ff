"""Stores on SQLite and on Postgres."""

from __future__ import annotations

from tests.integration.adapters.sql.conftest import backend, emptied_database, migrated_file, sql_url, store, store_url

__all__ = ["backend", "emptied_database", "migrated_file", "sql_url", "store", "store_url"]

"""What of a tenant moves to another cell."""

from __future__ import annotations

from brainq.adapters.sql.tables import metadata, tokens
from brainq.adapters.sql.tenant_rows import JOBS, RECORDS, tenant_range


def test_every_table_moves_but_tokens_which_are_homes() -> None:
    assert {table.name for table in metadata.sorted_tables} == {table.name for table in (*RECORDS, *JOBS, tokens)}


def test_a_tenant_is_a_range_of_sessions() -> None:
    assert tenant_range("acme:") == {"first": "acme:", "beyond": "acme;"}
    first, beyond = tenant_range("acme").values()
    assert first <= "acme" < beyond
    assert not any(first <= other < beyond for other in ("acm", "acme:1", "acme2", "acme-"))

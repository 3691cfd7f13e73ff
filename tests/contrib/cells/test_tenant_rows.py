"""What of a tenant moves to another cell."""

from __future__ import annotations

from brainq.contrib.cells.tenant_rows import tenant_range


def test_a_tenant_is_a_range_of_sessions() -> None:
    assert tenant_range("acme:") == {"first": "acme:", "beyond": "acme;"}
    first, beyond = tenant_range("acme").values()
    assert first <= "acme" < beyond
    assert not any(first <= other < beyond for other in ("acm", "acme:1", "acme2", "acme-"))

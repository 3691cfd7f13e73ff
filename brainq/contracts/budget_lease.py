"""Leases of budgets that several cells share.

A lease is the part of a window's cap that one cell may spend. The SQL of the home cell grants leases, which together
never exceed the cap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEASE_SHARE = 0.05  # the part of the cap that is leased in advance, beyond the needs of the call
# Near the cap, at most this part of the free amount is leased in advance, so that little stays unused.
LAST_SHARE = 0.25
UNUSED_S = 60.0
"""A lease is returned if nothing of it was spent for this long."""
SHARED_KINDS = ("all", "brain")


@dataclass(frozen=True, slots=True)
class LeaseWish:
    """The lease of a window that a cell requests, as totals in US dollars.

    granted: the amount that the cell's own SQL has granted before, which may be spent.
    wanted: the total that the call needs to begin.
    expected: the total that the call needs if it is billed like similar calls.
    """

    granted: float
    wanted: float
    expected: float


@dataclass(frozen=True, slots=True)
class Lease:
    """The total US dollars of a window that one cell was leased, and the total that it has returned."""

    leased_usd: float = 0.0
    returned_usd: float = 0.0


def decide_lease(wish: LeaseWish, own: Lease, others: Iterable[Lease], cap_usd: float) -> tuple[float, bool]:
    """Return the cell's new total lease in US dollars, and whether its call may begin."""
    leased = max(own.leased_usd, wish.granted)
    free = cap_usd - (leased - own.returned_usd) - sum(other.leased_usd - other.returned_usd for other in others)
    if wish.wanted - leased > free + 1e-9:
        return leased, False
    ahead = min(cap_usd * LEASE_SHARE, max(0.0, free) * LAST_SHARE)
    return leased + max(0.0, min(free, max(wish.wanted, wish.expected) - leased + ahead)), True


def is_shared(scope: str) -> bool:
    """Return whether the calls of several cells count against budgets of this scope."""
    return scope.partition(" ")[0] in SHARED_KINDS

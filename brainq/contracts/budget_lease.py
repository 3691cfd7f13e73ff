"""Budgets of all tenants or of a brain over several cells: how much of a window's cap each cell may spend, decided in
home's SQL. What cells were leased never comes to more than the cap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEASE_SHARE = 0.05  # of the cap, leased at once beyond what the call wants; but no more than a
LAST_SHARE = 0.25  # of what is free: near the cap little lies unused
UNUSED_S = 60.0
"""A lease of which nothing was spent for so long is given back."""
SHARED_KINDS = ("all", "brain")


@dataclass(frozen=True, slots=True)
class LeaseWish:
    """What a cell has to have been leased of a window in all, in dollars.

    granted    by its own SQL before: it may have spent that
    wanted     for the call to begin alone; `expected`: for it to be billed what its like are
    """

    granted: float
    wanted: float
    expected: float


@dataclass(frozen=True, slots=True)
class Lease:
    """What one cell was leased of a window, and has given back of it, ever."""

    leased_usd: float = 0.0
    returned_usd: float = 0.0


def decide_lease(wish: LeaseWish, own: Lease, others: Iterable[Lease], cap_usd: float) -> tuple[float, bool]:
    """What the cell has been leased from now on, and whether its call may begin. Pure."""
    leased = max(own.leased_usd, wish.granted)
    free = cap_usd - (leased - own.returned_usd) - sum(other.leased_usd - other.returned_usd for other in others)
    if wish.wanted - leased > free + 1e-9:
        return leased, False
    ahead = min(cap_usd * LEASE_SHARE, max(0.0, free) * LAST_SHARE)
    return leased + max(0.0, min(free, max(wish.wanted, wish.expected) - leased + ahead)), True


def is_shared(scope: str) -> bool:
    """Whether calls of several cells are held to this scope."""
    return scope.partition(" ")[0] in SHARED_KINDS

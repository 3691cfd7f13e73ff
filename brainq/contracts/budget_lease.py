"""Leases of budgets that several cells share: how much of a window's cap each cell may spend. Home's SQL decides, and
leases never exceed the cap together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEASE_SHARE = 0.05  # of the cap, leased at once beyond what the call needs, but at most the next share
LAST_SHARE = 0.25  # of what is free: near the cap, little stays unused
UNUSED_S = 60.0
"""A lease is returned if nothing of it was spent for this long."""
SHARED_KINDS = ("all", "brain")


@dataclass(frozen=True, slots=True)
class LeaseWish:
    """The dollars that a cell must have been leased of a window in all.

    granted: granted by its own SQL before, and possibly spent.
    wanted: needed for the call to begin alone.
    expected: needed for the call to be billed like similar calls.
    """

    granted: float
    wanted: float
    expected: float


@dataclass(frozen=True, slots=True)
class Lease:
    """The dollars that one cell was leased of a window, and has returned of it, in all."""

    leased_usd: float = 0.0
    returned_usd: float = 0.0


def decide_lease(wish: LeaseWish, own: Lease, others: Iterable[Lease], cap_usd: float) -> tuple[float, bool]:
    """Return the cell's new lease in all, and whether its call may begin."""
    leased = max(own.leased_usd, wish.granted)
    free = cap_usd - (leased - own.returned_usd) - sum(other.leased_usd - other.returned_usd for other in others)
    if wish.wanted - leased > free + 1e-9:
        return leased, False
    ahead = min(cap_usd * LEASE_SHARE, max(0.0, free) * LAST_SHARE)
    return leased + max(0.0, min(free, max(wish.wanted, wish.expected) - leased + ahead)), True


def is_shared(scope: str) -> bool:
    """Return whether calls of several cells count in this scope."""
    return scope.partition(" ")[0] in SHARED_KINDS

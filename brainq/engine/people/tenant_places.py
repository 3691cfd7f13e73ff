"""Where tenants are, as a cell sees it: here, on their way to another cell, or gone there."""

from __future__ import annotations

from collections.abc import Mapping

from brainq.contracts.cell import Placement, tenant_key
from brainq.errors import TenantMoved, TenantMoving


class TenantPlaces:
    """Where tenants are. In a deployment of one cell, which this class is for, every tenant is here.

    `brainq.contrib.cells.gate` overrides it if there are several cells. A placement without a cell ("") means that the
    tenant is about to move, from here or to here: what is accepted for it is recorded and waits.
    """

    def look(self, session_id: str) -> Placement | None:
        """Return what SQL has about the session's tenant: where it went, that it is about to move, or has just come.

        Returns None if it is here.
        """
        return None

    def away(self, session_id: str) -> Placement | None:
        """Return where the session's tenant is, or None if it is here."""
        place = self.look(session_id)
        return None if place is not None and place.has_come else place

    def require_here(self, session_id: str) -> bool:
        """Return whether the tenant has just come. A tenant that is about to move is still here.

        Raises TenantMoved, before anything is recorded.
        """
        place = self.look(session_id)
        if place is not None and not place.has_come and place.cell:
            raise TenantMoved(tenant_key(session_id), place.cell, place.epoch)
        return place is not None and place.has_come

    def require_shown(self, session_id: str) -> None:
        """Check why Redis lacks what SQL has: a tenant that moves is hidden for a while.

        Raises TenantMoving during that time, and TenantMoved once the tenant has left.
        """
        self.require_here(session_id)
        if self.away(session_id) is not None:
            tenant = tenant_key(session_id)
            raise TenantMoving(f"tenant {tenant!r} is being copied to another cell; try again in a few seconds")

    def settle(self, session_id: str) -> None:
        """Find the cell of a tenant whose message came here without a look into the directory.

        A tenant of another cell gets a tombstone here. A tenant of no cell belongs to this one from now on. Raises
        CellUnreachable if the tenant is unknown here and the directory is away.
        """

    def arrivals(self) -> Mapping[str, int]:
        """Return the marks of tenants that have come, some of whose turns may be in SQL and not yet in Redis."""
        return {}

    def arrived(self, tenant: str, mark: int) -> bool:
        """Remove a mark: Redis has all turns of the tenant. Returns False if more came, and the mark has changed."""
        return False

    def send_turn(self, turn_id: str, cell: str) -> None:
        """Send a turn after its tenant. It was accepted here when the tenant had moved."""

    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None:
        """Send input after its turn. It was accepted here when the turn had moved."""

    def restore(self) -> int:
        """Write to Redis the tombstones that it lost, and remove those that SQL has no more. Returns how many."""
        return 0


ONE_CELL = TenantPlaces()

"""TenantGate: in a deployment of several cells, what is before a session whose tenant is not this cell's any more.

The cell itself decides, and not what its callers have heard: SQL's tombstones are asked before a turn or input is
accepted, and Redis' in the very script that would begin the turn. So a front that knows nothing of a move cannot begin
a turn in the cell that was left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brainq.contracts.cell import Placement, tenant_key
from brainq.errors import TenantMoved, TenantMoving
from brainq.observe.logs import logger
from brainq.ports.tenants import LateRows, MovedWords, TenantDirectory, Tombstones

log = logger("brainq.people")


class OneCell:
    """Where there is one cell alone: every tenant is here, and nobody is asked."""

    def require_here(self, session_id: str) -> bool:
        """Never raises."""
        return False

    def require_shown(self, session_id: str) -> None:
        """Never raises."""

    def look(self, session_id: str) -> Placement | None:
        return None

    def away(self, session_id: str) -> Placement | None:
        return None

    def arrivals(self) -> Mapping[str, int]:
        return {}

    def arrived(self, tenant: str, mark: int) -> bool:
        return False

    def settle(self, session_id: str) -> None:
        """Nothing is to be found out."""

    def send_turn(self, turn_id: str, cell: str) -> None:
        raise AssertionError(f"turn {turn_id} is to be sent to cell {cell!r}, and there is one cell alone")

    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None:
        raise AssertionError(f"input {client_message_id} is to be sent to cell {cell!r}, and there is one cell alone")

    def restore(self) -> int:
        return 0


ONE_CELL = OneCell()


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantGate:
    """Where there are several cells, of which this process serves `cell`. Fits `ports.tenants.TenantPlaces`."""

    tombstones: Tombstones
    words: MovedWords
    late: LateRows
    directory: TenantDirectory
    cell: str

    def require_here(self, session_id: str) -> bool:
        """Whether the tenant has just come. Raises TenantMoved, before anything is written down. One that is about to
        move is still here."""
        place = self.look(session_id)
        if place is not None and not place.has_come and place.cell:
            raise TenantMoved(tenant_key(session_id), place.cell, place.epoch)
        return place is not None and place.has_come

    def require_shown(self, session_id: str) -> None:
        """For who has not found in Redis what SQL has: a tenant that moves is hidden for a while. Raises TenantMoving
        then, and TenantMoved once it has left."""
        self.require_here(session_id)
        if self.away(session_id) is not None:
            tenant = tenant_key(session_id)
            raise TenantMoving(f"tenant {tenant!r} is copied to another cell just now; try again in a few seconds")

    def away(self, session_id: str) -> Placement | None:
        """Where the session's tenant is, if it is not here; without a cell while it is about to move."""
        place = self.look(session_id)
        return None if place is not None and place.has_come else place

    def look(self, session_id: str) -> Placement | None:
        """As `away`; also that the tenant has just come."""
        return self.tombstones.of(tenant_key(session_id))

    def arrivals(self) -> Mapping[str, int]:
        return self.tombstones.arrivals()

    def arrived(self, tenant: str, mark: int) -> bool:
        """From now on its turns are queued without a look at what waits in SQL."""
        return self.tombstones.arrived(tenant, mark)

    def settle(self, session_id: str) -> None:
        """For what comes here without a look into the directory, such as a message of the broker: a tenant of another
        cell gets a tombstone, and one of none is this cell's from now on. Raises CellUnreachable for one that is not
        known here while the directory is away."""
        if self.away(session_id) is not None:
            return
        tenant = tenant_key(session_id)
        placement = self.directory.settle(tenant, self.cell)
        if placement.cell != self.cell:
            self.tombstones.put(tenant, placement.cell, placement.epoch)
            self.words.put(tenant, placement)

    def send_turn(self, turn_id: str, cell: str) -> None:
        """The turn was accepted here when its tenant had moved: it is the other cell's."""
        self.late.send_turn(turn_id, cell)
        log.info("turn sent after its tenant", turn_id=turn_id, cell=cell)

    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None:
        """The input was accepted here when its turn had moved: it is the other cell's."""
        self.late.send_input(session_id, client_message_id, cell)

    def restore(self) -> int:
        """Write to Redis what SQL knows and Redis lost, and take away what SQL knows no more; how many were lost."""
        known = self.words.all()
        tombstones = self.tombstones.all()
        self.words.forget(known, tombstones)
        return self.words.restore(tombstones)

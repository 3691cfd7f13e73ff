"""A front's cache of the directory, which has the cell of each tenant.

Entries are read from the home cell, and read again when they may be stale. Cached tenants are served while the home
cell does not answer. A stale entry does no harm: the cell that a tenant has left refuses its sessions and names the new
cell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.contracts.cell import Placement, hashed_cell
from brainq.contrib.cells.placements import Directory
from brainq.errors import CellUnreachable

T = TypeVar("T")
FRESH_S = 2.0  # The seconds for which a front may read from a cell that its tenant has left.
RETRY_S = 5.0  # For these seconds, a directory that did not answer is not read again for known tenants.
MOST_KNOWN = 200_000  # some 30 MB


@dataclass(slots=True)
class _Known:
    placement: Placement
    asked_at: float  # monotonic
    is_hearsay: bool = False  # Only the cell that the tenant left has named this place; the directory has not yet.


class KnownTenants:
    """The tenants that this process has met, and their cells. Thread-safe.

    open_directory: returns the home cell's directory; called when it is first read.
    names: the names of all cells, the home cell first.
    """

    def __init__(
        self,
        open_directory: Callable[[], Directory],
        names: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = open_directory
        self._names = tuple(names)
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._quiet_until = float("-inf")

    def cell_of(self, tenant: str) -> str:
        """Return the tenant's cell, or the cell that an unknown tenant would get. Nothing is recorded.

        Raises CellUnreachable if the tenant is unknown and the directory does not answer.
        """
        if (known := self._fresh(tenant)) is not None:
            return known.cell
        found = self._ask(lambda directory: directory.placement(tenant) or self._unwritten(directory, tenant))
        if found.epoch:
            self._keep(tenant, found)
        return found.cell

    def settle(self, tenant: str) -> str:
        """Return the tenant's cell, and record it, so that it stays the same for every front when cells are added."""
        if (known := self._fresh(tenant)) is not None:
            return known.cell
        found = self._ask(
            lambda directory: (
                directory.placement(tenant) or directory.settle(tenant, self._unwritten(directory, tenant).cell)
            )
        )
        self._keep(tenant, found)
        return found.cell

    def learn(self, tenant: str, placement: Placement) -> None:
        """Record where the tenant moved, as reported by the cell that it left.

        The new cell may not have all of the tenant yet.
        """
        self._keep(tenant, placement, is_hearsay=True)

    def is_hearsay(self, tenant: str) -> bool:
        """Return whether only the cell that the tenant left has reported its new cell."""
        known = self._known.get(tenant)
        return known is not None and known.is_hearsay

    def confirm(self, tenant: str) -> None:
        """Record that the tenant's cell has all of its data."""
        if (known := self._known.get(tenant)) is not None:
            known.is_hearsay = False

    def look_again(self, tenant: str) -> bool:
        """Read the directory now.

        Returns whether the tenant's cell has changed, and False if the home cell does not answer.
        """
        known = self._known.get(tenant)
        try:
            found = self._ask(lambda directory: directory.placement(tenant))
        except CellUnreachable:
            return False
        # The tenant was erased. The next submit places it anew, and every front chooses the same cell.
        if found is None:
            with self._lock:
                self._known.pop(tenant, None)
            return False
        now = self._keep(tenant, found)
        return known is not None and now.cell != known.placement.cell

    def _unwritten(self, directory: Directory, tenant: str) -> Placement:
        """Return the cell of a tenant without an entry: the home cell if it has turns from before the cells, or else
        one chosen by a hash."""
        home = directory.lived_here(tenant)
        return Placement(self._names[0] if home else hashed_cell(tenant, self._names), 0)

    def _fresh(self, tenant: str) -> Placement | None:
        """Return the known place.

        If it may be old, one thread at a time reads it again; the others use the known one.
        """
        known, now = self._known.get(tenant), self._clock()
        if known is None:
            return None
        if now - known.asked_at >= FRESH_S and now >= self._quiet_until and self._refreshing.acquire(blocking=False):
            try:
                self.look_again(tenant)
            finally:
                self._refreshing.release()
            known = self._known.get(tenant)
        return None if known is None else known.placement

    def _keep(self, tenant: str, placement: Placement, *, is_hearsay: bool = False) -> Placement:
        """Store the newer of the known place and the one that was found, and return it."""
        with self._lock:
            known = self._known.pop(tenant, None)
            if known is not None and known.placement.epoch > placement.epoch:
                placement, is_hearsay = known.placement, known.is_hearsay
            elif known is not None and known.placement == placement:
                is_hearsay = is_hearsay and known.is_hearsay
            elif len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[tenant] = _Known(placement, self._clock(), is_hearsay)
            return placement

    def _ask(self, question: Callable[[Directory], T]) -> T:
        try:
            return question(self._open())
        except Exception as failure:
            if not is_sql_unavailable(failure) and not isinstance(failure, OSError):
                raise
            self._quiet_until = self._clock() + RETRY_S
            raise CellUnreachable("", f"{type(failure).__name__} in home's SQL; cached tenants still work") from failure

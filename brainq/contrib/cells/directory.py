"""The directory as a front knows it: which cell each tenant is in; asked at home once, and again when it may be old.

A tenant that is known goes on while home is away. What a front believes decides nothing: the cell that a tenant has
left says so, and where to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from brainq.contracts.cell import Placement, hashed_cell
from brainq.errors import CellUnreachable
from brainq.store.engine import is_sql_unavailable
from brainq.store.repositories.cells import Directory

T = TypeVar("T")
FRESH_S = 2.0  # how long a front that only reads may look into a cell that its tenant has left
RETRY_S = 5.0  # a directory that did not answer is not asked again for tenants that are known
MOST_KNOWN = 200_000  # some 30 MB


@dataclass(slots=True)
class _Known:
    placement: Placement
    asked_at: float  # monotonic
    is_hearsay: bool = False  # the cell that the tenant leaves has said so, and not yet the directory


class KnownTenants:
    """Where tenants are. Thread-safe.

    open_directory   home's directory, opened when it is first asked
    names            of all cells; the first is home
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
        """Where the tenant is, or would be; nothing is written down.

        Raises CellUnreachable for an unknown one while the directory is away.
        """
        if (known := self._fresh(tenant)) is not None:
            return known.cell
        found = self._ask(lambda directory: directory.placement(tenant) or self._unwritten(directory, tenant))
        if found.epoch:
            self._keep(tenant, found)
        return found.cell

    def settle(self, tenant: str) -> str:
        """As `cell_of`, and written down: the same for every front from now on, however many cells are added."""
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
        """Note what the cell said that the tenant leaves. The new cell may not have all of the tenant yet."""
        self._keep(tenant, placement, is_hearsay=True)

    def is_hearsay(self, tenant: str) -> bool:
        """Return whether only the cell that was left has said where the tenant is."""
        known = self._known.get(tenant)
        return known is not None and known.is_hearsay

    def confirm(self, tenant: str) -> None:
        """Note that the tenant's cell has all of it."""
        if (known := self._known.get(tenant)) is not None:
            known.is_hearsay = False

    def look_again(self, tenant: str) -> bool:
        """Ask now; True where the tenant is elsewhere than was thought. False also while the directory is away."""
        known = self._known.get(tenant)
        try:
            found = self._ask(lambda directory: directory.placement(tenant))
        except CellUnreachable:
            return False
        if found is None:  # erased: whoever comes next is placed anew, by every front alike
            with self._lock:
                self._known.pop(tenant, None)
            return False
        now = self._keep(tenant, found)
        return known is not None and now.cell != known.placement.cell

    def _unwritten(self, directory: Directory, tenant: str) -> Placement:
        """Home has the tenants of the time before there were cells; any other is placed by its hash."""
        home = directory.lived_here(tenant)
        return Placement(self._names[0] if home else hashed_cell(tenant, self._names), 0)

    def _fresh(self, tenant: str) -> Placement | None:
        """What is known, asked again by one thread at a time where it may be old; the others go by what they have."""
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
        """Keep the later of what is known and what was found. Returns it."""
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
            raise CellUnreachable("", f"{type(failure).__name__} of home's SQL; known tenants go on") from failure

"""Tenants of several cells, as the machines use them: who has left this one, and what is sent after them.

A tenant is named by its key, as `contracts.cell.tenant_key` makes it. A placement without a cell ("") says that the
tenant is about to move, from here or to here: what is accepted for it is written down, and waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from brainq.contracts.cell import Placement


class Tombstones(Protocol):
    """What SQL knows of them. Fitted by `store.repositories.cells.Tombstones`."""

    def of(self, tenant: str) -> Placement | None: ...
    def all(self) -> Mapping[str, Placement]: ...
    def put(self, tenant: str, cell: str, epoch: int) -> None: ...
    def arrivals(self) -> Mapping[str, int]: ...
    def arrived(self, tenant: str, mark: int) -> bool: ...


class TenantDirectory(Protocol):
    """Where all tenants are. Fitted by `wiring.tenants.HomeDirectory`.

    settle   where the tenant is; one that is in no cell is in this one from now on
    """

    def settle(self, tenant: str, cell: str) -> Placement: ...


class MovedWords(Protocol):
    """What scripts look at. Fitted by `state.tenant_keys.RedisMovedWords`.

    restore   write these where they are missing, or older; how many were
    forget    take away those of `known`, which were read before `tombstones`, that are not among these
    """

    def all(self) -> Mapping[str, Placement]: ...
    def put(self, tenant: str, placement: Placement | None) -> None: ...
    def forget(self, known: Mapping[str, Placement], tombstones: Mapping[str, Placement]) -> None: ...
    def restore(self, tombstones: Mapping[str, Placement]) -> int: ...


class LateRows(Protocol):
    """Rows that came too late to be moved. Fitted by `store.late_rows.LateRows`.

    send_turn    an accepted turn, with its files, input and brakes, is the other cell's: under the same ids, so that
                 again changes nothing. What its request key had met there before counts, and not this one
    send_input   the same for input of a turn that was moved
    """

    def send_turn(self, turn_id: str, cell: str) -> None: ...
    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None: ...


class TenantPlaces(Protocol):
    """Whether a tenant is still this cell's. Fitted by `people.tenant_gate`.

    look       what SQL says of the session's tenant: where it is, that it is about to move, or that it has just come
    arrivals   the marks of tenants that have come, of which turns may wait in SQL that Redis does not know
    arrived    Redis knows those; where the mark is another one by then nothing changes
    """

    def require_here(self, session_id: str) -> bool: ...
    def require_shown(self, session_id: str) -> None: ...
    def look(self, session_id: str) -> Placement | None: ...
    def away(self, session_id: str) -> Placement | None: ...
    def arrivals(self) -> Mapping[str, int]: ...
    def arrived(self, tenant: str, mark: int) -> bool: ...
    def settle(self, session_id: str) -> None: ...
    def send_turn(self, turn_id: str, cell: str) -> None: ...
    def send_input(self, session_id: str, client_message_id: str, cell: str) -> None: ...
    def restore(self) -> int: ...

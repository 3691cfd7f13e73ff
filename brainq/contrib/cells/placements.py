"""The tables of cells: each tenant's cell, where tenants have moved, and the moves in progress."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Float,
    Integer,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)

from brainq.adapters.sql.database import Database
from brainq.adapters.sql.prepared import Record
from brainq.adapters.sql.statements import insert_or_ignore, upsert
from brainq.adapters.sql.tables import schedules, turns
from brainq.adapters.sql.tables.cell_tables import moves, tenant_cells, tombstones
from brainq.adapters.sql.tables.types import utc_after, utc_now
from brainq.contracts.cell import Move, Placement
from brainq.contrib.cells.tenant_rows import tenant_range
from brainq.errors import BrainqError

_D, _T, _M = tenant_cells.c, tombstones.c, moves.c
_PLACED = select(tenant_cells).where(_D.tenant == bindparam("sought"))
_PLACE = insert_or_ignore(tenant_cells)
_FLIP = (
    update(tenant_cells)
    .where(_D.tenant == bindparam("sought"), _D.epoch == bindparam("epoch", type_=Integer()) - 1)
    .values(cell=bindparam("cell"), epoch=bindparam("epoch", type_=Integer()), updated_at=utc_now())
)
_FORGET = delete(tenant_cells).where(_D.tenant == bindparam("sought"), _D.epoch == 1)
_ALL_PLACED = select(tenant_cells).order_by(_D.tenant)
_PLACED_COUNTS = select(_D.cell, func.count().label("tenants")).group_by(_D.cell)
_FIRST, _BEYOND = bindparam("first"), bindparam("beyond")
_LIVED_HERE = (
    select(turns.c.session_id.label("lived"))
    .where(turns.c.session_id >= _FIRST, turns.c.session_id < _BEYOND)
    .limit(1),
    *(
        select(column.label("lived")).where(column >= _FIRST, column < _BEYOND).limit(1)
        for column in (schedules.c.session_id, schedules.c.name)
    ),
)
_BURIED = select(tombstones).where(_T.tenant == bindparam("sought"))
_BURY = upsert(
    tombstones,
    ["tenant"],
    copied=["cell", "epoch"],
    changed={"moved_at": utc_now()},
    where=or_(
        _T.epoch < literal_column("excluded.epoch"),
        and_(_T.cell == literal_column("''"), _T.epoch == literal_column("excluded.epoch")),
    ),
)
_REBURY = upsert(tombstones, ["tenant"], copied=["cell", "epoch"], changed={"moved_at": utc_now()})
_ALL_BURIED = select(tombstones).where(_T.epoch > 0).order_by(_T.tenant)
_LATE = upsert(tombstones, ["tenant"], copied=["epoch"], changed={"moved_at": utc_now()}, where=_T.epoch < 0)
_ARRIVALS = select(_T.tenant, _T.epoch).where(_T.epoch < 0).order_by(_T.moved_at, _T.tenant)
_ARRIVED = delete(tombstones).where(
    _T.tenant == bindparam("sought"), _T.epoch == bindparam("mark", type_=Integer()), _T.epoch < 0
)
MARKS = 2**30
_UNBURY = delete(tombstones).where(_T.tenant == bindparam("sought"))
_MOVE = select(moves).where(_M.tenant == bindparam("sought"))
_ALL_MOVES = select(moves).order_by(_M.started_at, _M.tenant)
_BEGIN = insert_or_ignore(moves, fixed={"lease_until": utc_after(bindparam("lease_s", type_=Float()))})
_TAKE = (
    update(moves)
    .where(
        _M.tenant == bindparam("sought"),
        or_(_M.owner == bindparam("taker", type_=_M.owner.type), _M.lease_until <= utc_now()),
    )
    .values(
        owner=bindparam("taker", type_=_M.owner.type),
        lease_until=utc_after(bindparam("lease_s", type_=Float())),
        updated_at=utc_now(),
    )
)
_ADVANCE = (
    update(moves)
    .where(
        _M.tenant == bindparam("sought"),
        _M.owner == bindparam("by", type_=_M.owner.type),
        _M.phase == bindparam("before", type_=_M.phase.type),
    )
    .values(
        phase=bindparam("phase"), counts_json=bindparam("counts_json"), error=bindparam("error"), updated_at=utc_now()
    )
)
_DROP = delete(moves).where(_M.tenant == bindparam("sought"), _M.owner == bindparam("by", type_=_M.owner.type))


class Directory:
    """The `tenant_cells` table, in the home cell's SQL. A tenant is named by its key, as `tenant_key` makes it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def close(self) -> None:
        self._db.engine.dispose()

    def placement(self, tenant: str) -> Placement | None:
        """Return the tenant's entry, or None if it has none."""
        found = self._db.first(_PLACED, {"sought": tenant})
        return None if found is None else Placement(found["cell"], found["epoch"])

    def settle(self, tenant: str, cell: str) -> Placement:
        """Give the tenant an entry for this cell unless it has one. Returns the entry. The first writer wins."""
        self._db.write(self._db.pick(_PLACE), {"tenant": tenant, "cell": cell, "epoch": 1})
        placement = self.placement(tenant)
        if placement is None:
            raise BrainqError(f"the directory lost tenant {tenant!r} while its cell was recorded; try again")
        return placement

    def forget(self, tenant: str) -> bool:
        """Remove the entry.

        Returns False if there is none. An entry of a tenant that has moved stays, because a tombstone has its epoch; it
        returns False for that, too.
        """
        return self._db.write(_FORGET, {"sought": tenant}) == 1

    def flip(self, tenant: str, cell: str, epoch: int) -> bool:
        """Point the entry to another cell.

        Returns False, and changes nothing, unless the entry has the previous epoch.
        """
        return self._db.write(_FLIP, {"sought": tenant, "cell": cell, "epoch": epoch}) == 1

    def lived_here(self, tenant: str) -> bool:
        """Return whether this database has turns or schedules of the tenant, from before there were cells."""
        return any(self._db.first(query, tenant_range(tenant)) is not None for query in _LIVED_HERE)

    def all(self) -> dict[str, Placement]:
        return {row["tenant"]: Placement(row["cell"], row["epoch"]) for row in self._db.all(_ALL_PLACED, {})}

    def counts(self) -> dict[str, int]:
        """Return the number of tenants of each cell. A cell without tenants is omitted."""
        return {row["cell"]: row["tenants"] for row in self._db.all(_PLACED_COUNTS, {})}


class Tombstones:
    """The `tombstones` table of one cell: the tenants that have left it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, tenant: str) -> Placement | None:
        """Return where the tenant moved.

        Returns None if it did not move away, and this cell itself if it has just arrived.
        """
        found = self._db.first(_BURIED, {"sought": tenant})
        return None if found is None else Placement(found["cell"], found["epoch"])

    def put(self, tenant: str, cell: str, epoch: int) -> None:
        """Record where the tenant moved, or that it is about to leave (no cell).

        The tombstone of a later move stays unchanged, and so does that of a tenant which has already left.
        """
        self._db.write(self._db.pick(_BURY), {"tenant": tenant, "cell": cell, "epoch": epoch}, durably=True)

    def restore(self, tenant: str, cell: str, epoch: int) -> None:
        """Replace the tenant's tombstone, whatever it is. Used when a move to this cell is undone."""
        self._db.write(self._db.pick(_REBURY), {"tenant": tenant, "cell": cell, "epoch": epoch}, durably=True)

    def remove(self, tenant: str) -> bool:
        """Remove the tombstone, because the tenant is here again. Returns False if there was none."""
        return self._db.write(_UNBURY, {"sought": tenant}) == 1

    def all(self) -> dict[str, Placement]:
        """Return the tombstones by tenant, without those of tenants that have arrived here."""
        return {row["tenant"]: Placement(row["cell"], row["epoch"]) for row in self._db.all(_ALL_BURIED, {})}

    # A tenant that has arrived also has a row until Redis knows each of its turns; see `Placement.has_come`.

    def arrive(self, tenant: str, cell: str) -> None:
        """Mark that the tenant has arrived in this cell. Some of its turns may be in SQL and not yet in Redis."""
        self._db.write(self._db.pick(_REBURY), {"tenant": tenant, "cell": cell, "epoch": _mark()}, durably=True)

    def arrive_late(self, tenant: str, cell: str) -> None:
        """Mark that a turn arrived after its tenant. Changes nothing if the tenant is about to leave, or has left."""
        self._db.write(self._db.pick(_LATE), {"tenant": tenant, "cell": cell, "epoch": _mark()}, durably=True)

    def arrivals(self) -> dict[str, int]:
        """Return the mark of each tenant with a turn that arrived late."""
        return {row["tenant"]: row["epoch"] for row in self._db.all(_ARRIVALS, {})}

    def arrived(self, tenant: str, mark: int) -> bool:
        """Remove the mark, because Redis has all of the tenant's turns.

        Returns False if the mark changed because more arrived.
        """
        return self._db.write(_ARRIVED, {"sought": tenant, "mark": mark}) == 1


class Moves:
    """The `moves` table, in the home cell's SQL.

    A tenant has at most one move, which one process at a time performs.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def begin(
        self, tenant: str, from_cell: str, to_cell: str, epoch: int, phase: str, owner: str, lease_s: float
    ) -> bool:
        """Insert a move. Returns False if the tenant already has one."""
        values = {"tenant": tenant, "from_cell": from_cell, "to_cell": to_cell, "epoch": epoch, "phase": phase}
        return self._db.write(self._db.pick(_BEGIN), {**values, "owner": owner, "lease_s": lease_s}, durably=True) == 1

    def get(self, tenant: str) -> Move | None:
        found = self._db.first(_MOVE, {"sought": tenant})
        return None if found is None else _move(found)

    def all(self) -> list[Move]:
        return [_move(found) for found in self._db.all(_ALL_MOVES, {})]

    def take(self, tenant: str, owner: str, lease_s: float) -> bool:
        """Lease a move, or renew the lease. Returns False if another process has it."""
        return self._db.write(_TAKE, {"sought": tenant, "taker": owner, "lease_s": lease_s}) == 1

    def advance(
        self, tenant: str, owner: str, before: str, phase: str, counts: Mapping[str, Any], error: str | None = None
    ) -> bool:
        """Write the next phase. Returns False if another process has the move, or if the move was in another phase."""
        values = {"sought": tenant, "by": owner, "before": before, "phase": phase, "error": error}
        return self._db.write(_ADVANCE, {**values, "counts_json": json.dumps(dict(counts))}, durably=True) == 1

    def remove(self, tenant: str, owner: str) -> bool:
        """Delete a move that is complete or undone. Returns False if another process has it."""
        return self._db.write(_DROP, {"sought": tenant, "by": owner}) == 1


def _mark() -> int:
    return -1 - secrets.randbelow(MARKS)


def _move(found: Record) -> Move:
    return Move(
        **{name: value for name, value in found.items() if name != "counts_json"},
        counts=json.loads(found["counts_json"]),
    )

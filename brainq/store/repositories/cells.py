"""Where tenants are, where they moved to, and moves under way: what SQL knows of cells."""

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

from brainq.contracts.cell import Move, Placement
from brainq.contracts.ids import PREFIX_BOUNDARY, prefix_upper_bound
from brainq.errors import BrainqError
from brainq.store.database import Database, Record
from brainq.store.statements import insert_or_ignore, upsert
from brainq.store.tables import schedules, turns
from brainq.store.tables.cell_tables import moves, tenant_cells, tombstones
from brainq.store.tables.types import utc_after, utc_now

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
    """The `tenant_cells` table, in home's SQL. A tenant is a key as `tenant_key` makes it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def close(self) -> None:
        """Close the connections of its database."""
        self._db.engine.dispose()

    def placement(self, tenant: str) -> Placement | None:
        """None for a tenant that is not written down."""
        found = self._db.first(_PLACED, {"sought": tenant})
        return None if found is None else Placement(found["cell"], found["epoch"])

    def settle(self, tenant: str, cell: str) -> Placement:
        """Write the tenant down as of this cell, unless it is written down: whoever was first wins."""
        self._db.write(self._db.pick(_PLACE), {"tenant": tenant, "cell": cell, "epoch": 1})
        placement = self.placement(tenant)
        if placement is None:
            raise BrainqError(f"the directory lost tenant {tenant!r} while it was written down; ask again")
        return placement

    def forget(self, tenant: str) -> bool:
        """Write it down no more; False where it was not, or has moved: a tombstone names its epoch then."""
        return self._db.write(_FORGET, {"sought": tenant}) == 1

    def flip(self, tenant: str, cell: str, epoch: int) -> bool:
        """It is in this cell from now on; False unless its entry is of the epoch before."""
        return self._db.write(_FLIP, {"sought": tenant, "cell": cell, "epoch": epoch}) == 1

    def lived_here(self, tenant: str) -> bool:
        """Whether this very database has turns or schedules of a tenant: one that was here before there were cells."""
        beyond = prefix_upper_bound(tenant) if tenant.endswith(PREFIX_BOUNDARY) else tenant + "\x01"
        return any(self._db.first(query, {"first": tenant, "beyond": beyond}) is not None for query in _LIVED_HERE)

    def all(self) -> dict[str, Placement]:
        """Every tenant that is written down, by its key."""
        return {row["tenant"]: Placement(row["cell"], row["epoch"]) for row in self._db.all(_ALL_PLACED, {})}

    def counts(self) -> dict[str, int]:
        """How many tenants each cell has; a cell without one is left out."""
        return {row["cell"]: row["tenants"] for row in self._db.all(_PLACED_COUNTS, {})}


class Tombstones:
    """The `tombstones` table of one cell: tenants that have left it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, tenant: str) -> Placement | None:
        """Where the tenant has moved to; None where it did not move away. Its own cell where it has just come."""
        found = self._db.first(_BURIED, {"sought": tenant})
        return None if found is None else Placement(found["cell"], found["epoch"])

    def put(self, tenant: str, cell: str, epoch: int) -> None:
        """Write it down; one of a later move stays as it is, and one that has moved is not about to (no cell)."""
        self._db.write(self._db.pick(_BURY), {"tenant": tenant, "cell": cell, "epoch": epoch}, durably=True)

    def restore(self, tenant: str, cell: str, epoch: int) -> None:
        """Write it down in place of any other: a move to here is undone."""
        self._db.write(self._db.pick(_REBURY), {"tenant": tenant, "cell": cell, "epoch": epoch}, durably=True)

    def remove(self, tenant: str) -> bool:
        """The tenant is here again. False where it had none."""
        return self._db.write(_UNBURY, {"sought": tenant}) == 1

    def all(self) -> dict[str, Placement]:
        """By tenant; those that have come are not among them."""
        return {row["tenant"]: Placement(row["cell"], row["epoch"]) for row in self._db.all(_ALL_BURIED, {})}

    # A tenant that has come has a row, too, until Redis knows each of its turns: see `Placement.has_come`.

    def arrive(self, tenant: str, cell: str) -> None:
        """The tenant is in this cell, which is this one, from now on; turns of it may wait that Redis does not know."""
        self._db.write(self._db.pick(_REBURY), {"tenant": tenant, "cell": cell, "epoch": _mark()}, durably=True)

    def arrive_late(self, tenant: str, cell: str) -> None:
        """A turn has come after its tenant. Where that is about to leave, or has left, nothing changes."""
        self._db.write(self._db.pick(_LATE), {"tenant": tenant, "cell": cell, "epoch": _mark()}, durably=True)

    def arrivals(self) -> dict[str, int]:
        """The marks of tenants that have come, by tenant."""
        return {row["tenant"]: row["epoch"] for row in self._db.all(_ARRIVALS, {})}

    def arrived(self, tenant: str, mark: int) -> bool:
        """Redis knows each of its turns. False where more came meanwhile: the mark is another one then."""
        return self._db.write(_ARRIVED, {"sought": tenant, "mark": mark}) == 1


class Moves:
    """The `moves` table, in home's SQL: at most one move a tenant, which one process at a time goes on with."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def begin(
        self, tenant: str, from_cell: str, to_cell: str, epoch: int, phase: str, owner: str, lease_s: float
    ) -> bool:
        """Write a move down; False where the tenant has one."""
        values = {"tenant": tenant, "from_cell": from_cell, "to_cell": to_cell, "epoch": epoch, "phase": phase}
        return self._db.write(self._db.pick(_BEGIN), {**values, "owner": owner, "lease_s": lease_s}, durably=True) == 1

    def get(self, tenant: str) -> Move | None:
        found = self._db.first(_MOVE, {"sought": tenant})
        return None if found is None else _move(found)

    def all(self) -> list[Move]:
        """The one that began first comes first."""
        return [_move(found) for found in self._db.all(_ALL_MOVES, {})]

    def take(self, tenant: str, owner: str, lease_s: float) -> bool:
        """Go on with a move, alone, for so long; also a beat of whoever has it. False while another has it."""
        return self._db.write(_TAKE, {"sought": tenant, "taker": owner, "lease_s": lease_s}) == 1

    def advance(
        self, tenant: str, owner: str, before: str, phase: str, counts: Mapping[str, Any], error: str | None = None
    ) -> bool:
        """From one phase to the next; False where another process has the move, or it was in another phase."""
        values = {"sought": tenant, "by": owner, "before": before, "phase": phase, "error": error}
        return self._db.write(_ADVANCE, {**values, "counts_json": json.dumps(dict(counts))}, durably=True) == 1

    def remove(self, tenant: str, owner: str) -> bool:
        """It is over, or undone. False where another process has it."""
        return self._db.write(_DROP, {"sought": tenant, "by": owner}) == 1


def _mark() -> int:
    return -1 - secrets.randbelow(MARKS)


def _move(found: Record) -> Move:
    return Move(
        **{name: value for name, value in found.items() if name != "counts_json"},
        counts=json.loads(found["counts_json"]),
    )

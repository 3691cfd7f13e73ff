"""Cells: complete deployments (Redis, SQL, four pools) that each serve some tenants, and the cell's name in ids.

The directory places tenant keys: `acme:` for every session with this prefix, or the id of a session without a colon. A
turn id that brainq makes for a session in cell `b` begins with `b-`, the cell where it was made. That is only a hint,
because tenants move.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import SecretStr

from brainq.contracts.ids import PREFIX_BOUNDARY
from brainq.errors import InvalidInput

CELL_NAME_PATTERN = "^[a-z][a-z0-9]{0,7}$"
RESERVED_NAMES = ("ch", "in", "oa")
"""The words before a dash in brainq's own ids that are not names of cells."""
ID_BOUNDARY = "-"
CELLS_FORM = '{"a": {"redis": "redis://...", "sql": "postgresql://..."}, "b": {...}}'
ROW_ID_PATTERN = "^([a-z][a-z0-9]{0,7}-)?[1-9][0-9]{0,18}$"
RowId = int | str
"""The id of a memory or a webhook delivery: its row's number, or `b-129` if there are several cells.

A number alone is a row of home, the first cell, which has the data of the time before there were cells.
"""
MAX_ROW = 2**63 - 1
_NAME = re.compile(CELL_NAME_PATTERN[1:-1], re.ASCII)
_ROW = re.compile(f"(?:(?P<cell>{_NAME.pattern}){ID_BOUNDARY})?(?P<row>[1-9][0-9]{{0,18}})", re.ASCII)
_FIELDS = ("redis", "sql", "broker")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. Neither repr nor str shows a password.

    broker_url: None means the cell's Redis.
    """

    name: str
    redis_url: SecretStr
    sql_url: SecretStr
    broker_url: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The cell of a tenant. `epoch` begins at 1 and grows by one with each move; the higher epoch is right.

    In a cell's own SQL, an epoch below 0 marks a tenant that has just arrived. It may have rows that Redis does not
    know.
    """

    cell: str
    epoch: int

    @property
    def has_come(self) -> bool:
        return self.epoch < 0


@dataclass(frozen=True, slots=True)
class Move:
    """A tenant's move, as the home cell's SQL records it.

    lease_until: until when only its present owner may continue it.
    counts: the number of copied rows by kind.
    """

    tenant: str
    from_cell: str
    to_cell: str
    epoch: int
    phase: str
    owner: str
    lease_until: datetime
    started_at: datetime
    updated_at: datetime
    error: str | None = None
    counts: Mapping[str, Any] = field(default_factory=dict[str, Any])


MovePhase = Literal["claimed", "waiting", "copying", "deciding", "flipping", "cleaning", "undoing", "done"]


@dataclass(frozen=True, slots=True)
class MoveStep:
    """The progress of a move.

    counts: the number of copied rows by kind.
    waits_for: turns that must end or park first.
    """

    tenant: str
    from_cell: str
    to_cell: str
    phase: MovePhase
    counts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    waits_for: tuple[str, ...] = ()


def parse_cells(text: str) -> tuple[Cell, ...]:
    """Return the cells of a JSON object, in its order. The first is home. An empty text gives no cells.

    Raises InvalidInput, which shows no URL.
    """
    if not text.strip():
        return ()
    try:
        pairs: Any = json.loads(text, object_pairs_hook=_Pairs)
    except ValueError:
        raise InvalidInput("cells", f"it is neither JSON nor the path of a file; write {CELLS_FORM}") from None
    if not isinstance(pairs, _Pairs):
        raise InvalidInput("cells", f"write a JSON object of cells by name: {CELLS_FORM}")
    names = [name for name, _ in pairs]
    for name in names:
        if not _NAME.fullmatch(name) or name in RESERVED_NAMES:
            raise InvalidInput(
                "cells",
                f"{name[:20]!r} is not a valid cell name; use 1 to 8 of a-z 0-9, starting with a letter, but not "
                f"{', '.join(RESERVED_NAMES)}",
            )
        if names.count(name) > 1:
            raise InvalidInput("cells", f"{name!r} is given twice; give each cell a name of its own")
    cells = tuple(_parse_cell(name, given) for name, given in pairs)
    _require_apart("redis", cells, [cell.redis_url for cell in cells])
    _require_apart("sql", cells, [cell.sql_url for cell in cells])
    return cells


def tenant_key(session_id: str) -> str:
    """Return the key that the directory places: `acme:` for `acme:42`, or the id itself if it has no colon."""
    tenant, boundary, _ = session_id.partition(PREFIX_BOUNDARY)
    return tenant + boundary


def hashed_cell(key: str, names: Sequence[str]) -> str:
    """Return the cell of a tenant without an entry in the directory, by rendezvous hashing.

    If a cell is added, it takes over its share of the tenants, and no tenant moves between the other cells.
    """
    return ranked_cells(key, names)[0]


def ranked_cells(key: str, names: Sequence[str]) -> list[str]:
    """Return all cells, beginning with the one that this key hashes to."""
    return sorted(names, key=lambda name: (hashlib.sha256(f"{name} {key}".encode()).digest(), name), reverse=True)


def birth_cell(turn_id: str, names: Sequence[str]) -> str | None:
    """Return the cell in which a turn, schedule or approval id was made, or None if the id does not name one."""
    name, boundary, _ = turn_id.partition(ID_BOUNDARY)
    return name if boundary and name in names else None


def with_birth_cell(name: str, turn_id: str) -> str:
    """Return `turn_id` with the name of the cell where it is made.

    It is unchanged if `name` is "", for a single cell.
    """
    return f"{name}{ID_BOUNDARY}{turn_id}" if name else turn_id


def shown_row(cell: str, row: int) -> RowId:
    """Return the id that callers get for a row: with the cell's name, or the number alone if there is but one cell."""
    return f"{cell}{ID_BOUNDARY}{row}" if cell else row


def parse_row(field: str, shown: object) -> tuple[str, int]:
    """Return the cell that an id of `shown_row` names, and the row in it. The cell is "" for a number alone.

    Raises InvalidInput naming `field`.
    """
    found = None if isinstance(shown, bool) else _ROW.fullmatch(str(shown))
    if found is None or (row := int(found["row"])) > MAX_ROW:
        raise InvalidInput(field, f"{repr(shown)[:60]} must be the id of a row, such as 129 or b{ID_BOUNDARY}129")
    return found["cell"] or "", row


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys in order, including repeated ones."""


def _parse_cell(name: str, given: object) -> Cell:
    if not isinstance(given, _Pairs):
        raise InvalidInput(f"cells.{name}", 'write an object with "redis" and "sql"')
    values = dict(given)
    if unknown := sorted(set(values) - set(_FIELDS)):
        raise InvalidInput(f"cells.{name}", f"{unknown[0][:20]!r} is not one of {', '.join(_FIELDS)}")
    broker = values.get("broker")
    return Cell(
        name,
        _url(f"cells.{name}.redis", values.get("redis")),
        _url(f"cells.{name}.sql", values.get("sql")),
        None if broker is None else _url(f"cells.{name}.broker", broker),
    )


def _url(where: str, value: object) -> SecretStr:
    if not isinstance(value, str) or "://" not in value:
        raise InvalidInput(where, "write an address such as redis://host:6379/0 or postgresql://user@host/name")
    return SecretStr(value)


def _require_apart(kind: str, cells: Sequence[Cell], urls: Sequence[SecretStr]) -> None:
    """Raise InvalidInput if two cells share a server: each would take the other's turns for its own. On a Redis Cluster
    each cell has a hash slot of its own, unless its URL names the hash tag of another one."""
    seen: dict[str, str] = {}
    for cell, url in zip(cells, urls, strict=True):
        if "+cluster://" in url.get_secret_value() and "tag=" not in url.get_secret_value():
            continue
        other = seen.setdefault(url.get_secret_value(), cell.name)
        if other != cell.name:
            raise InvalidInput(f"cells.{cell.name}.{kind}", f"cell {other!r} has the same; give each cell its own")

"""The checks of `brainq doctor` for several cells: the servers of each, and whether the cells agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from brainq.adapters.redis.slot_primary import Shard, SlotPrimary, primary_of, slot_of
from brainq.adapters.sql.repositories.budgets import Budgets
from brainq.adapters.sql.repositories.stops import Stops
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES, tenant_cells
from brainq.app.wiring.preflight import Check, fail, ok, warn
from brainq.cli.doctor import services
from brainq.cli.output import counted
from brainq.contracts.cell import Cell, Move
from brainq.contracts.encryption import KeyPlace
from brainq.contrib.cells.placements import Directory, Moves
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import load_brains
from brainq.engine.tools.lanes import shared_templates
from brainq.errors import BrainqError
from brainq.runtime.failover import Address
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, parse_cluster_url
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.text.service_url import host_in_url

MOST_TAGS = 1000


class CellSlot(NamedTuple):
    """The hash tag of a cell's keys, and the shards of its Redis Cluster."""

    tag: str
    shards: Sequence[Shard]


def check_cells(settings: Settings) -> Iterator[Check]:
    """Check all cells, the home cell first. A check is omitted if its server does not answer."""
    cells = settings.all_cells()
    yield check_own_cell(settings.cell, cells)
    yield from check_lanes(settings)
    working: list[Settings] = []
    held: dict[str, frozenset[str]] = {}
    for cell in cells:
        has_sql = yield from _named(cell.name, _check_cell(settings.of_cell(cell), working))
        if has_sql:
            held[cell.name] = _held(settings.of_cell(cell), cell)
        if cell is cells[0] and has_sql:
            yield check_directory(cell, settings.key_place)
    yield check_held(held)
    if slots := cell_slots(working):
        yield check_nodes(slots)


def check_own_cell(name: str, cells: Sequence[Cell]) -> Check:
    """Report which cell a worker in this environment would serve."""
    names = ", ".join(cell.name for cell in cells)
    if name:
        return ok("cell", f"a worker here serves {name!r}; BRAINQ_CELLS has {names}")
    return ok("cell", f"clients, gateways and commands here serve {names}; a worker needs BRAINQ_CELL")


def check_lanes(settings: Settings) -> Iterator[Check]:
    """Check that no lane is shared by tenants, unless its tool accepts a lane for each cell."""
    try:
        brains = load_brains(settings.app)
    except BrainqError:  # another check reports it
        return
    shared = {name: lanes for brain in brains for name, lanes in lanes_between_tenants(brain).items()}
    if not shared:
        yield ok("lanes", 'no tool has lanes that tenants share, except with lane_scope="cell"')
    for name, lanes in shared.items():
        yield fail(
            "lanes",
            f"{name} has the lanes {', '.join(map(repr, lanes))}, which tenants share: they hold only within each cell",
            'put {session} into the lane if one for each session is enough, or set lane_scope="cell" if one for each '
            "cell is enough",
        )


def lanes_between_tenants(brain: Brain) -> dict[str, tuple[str, ...]]:
    """Return the tools whose lanes tenants may share, without those that accept a lane for each cell. Pure."""
    return {
        f"{brain.name}.{name}": templates
        for name, tool in brain.tools.items()
        if tool.lane_scope != "cell" and (templates := shared_templates(tool.spec))
    }


def _named(cell: str, checks: Generator[Check, None, bool]) -> Generator[Check, None, bool]:
    while True:
        try:
            check = next(checks)
        except StopIteration as end:
            return bool(end.value)
        yield replace(check, name=f"{cell} {check.name}")


def _check_cell(settings: Settings, working: list[Settings]) -> Generator[Check, None, bool]:
    """Check one cell, and add its settings to `working` if its Redis accepts writes.

    Returns whether its SQL can be read.
    """
    has_sql = yield from services.check_sql_and_content(settings)
    url = settings.redis_url.get_secret_value() if settings.redis_url else ""
    if (yield from services.check_redis_and_broker(settings, url)):
        working.append(settings)
    return has_sql


def cell_slots(cells: Iterable[Settings]) -> dict[str, CellSlot]:
    """Return the hash tag of each cell that is on a Redis Cluster, and the shards of that cluster."""
    found: dict[str, CellSlot] = {}
    for settings in cells:
        url = settings.redis_url.get_secret_value() if settings.redis_url else ""
        if url.startswith(CLUSTER_SCHEMES):
            address = parse_cluster_url(url)
            found[settings.cell] = CellSlot(address.tag, SlotPrimary(address).shards())
    return found


def check_nodes(cells: Mapping[str, CellSlot]) -> Check:
    """Check that no two cells have their slots on one node, which would serve both with one core. Pure."""
    nodes = {name: primary_of(cell.shards, slot_of(cell.tag)) for name, cell in cells.items()}
    listed = ", ".join(f"{name} slot {slot_of(cell.tag)} on {_shown(nodes[name])}" for name, cell in cells.items())
    first = {node: name for name, node in reversed(nodes.items())}
    second = [name for name, node in nodes.items() if first[node] != name]
    if not second:
        return ok("nodes", listed)
    used, tags = Counter(nodes.values()), list[str]()
    for name in second:
        if (found := better_tag(cells[name], used)) is not None:
            tags.append(f"cell {name} ?tag={found[0]} (on {_shown(found[1])})")
            used.update({nodes[name]: -1, found[1]: 1})
    remedy = "add primaries to the cluster"
    if tags:
        remedy = (
            f"move slots (docs/operate/scale.md), or for cells without data extend the redis URL: {', '.join(tags)}"
        )
    return warn("nodes", f"{listed}: cells on one node share its core", remedy)


def better_tag(cell: CellSlot, used: Mapping[Address | None, int]) -> tuple[str, Address] | None:
    """Return a hash tag for the cell whose slot is on a node with the fewest cells, and that node. Pure.

    Returns None if the present node has no more cells than that node would have.

    used: how many cells each node has.
    """
    nodes = {shard.primary for shard in cell.shards if shard.primary and shard.slots}
    fewest = min((used.get(node, 0) for node in nodes), default=0)
    if used.get(primary_of(cell.shards, slot_of(cell.tag)), 0) <= fewest + 1:
        return None
    for number in range(2, MOST_TAGS):
        tag = f"{cell.tag}.{number}"
        node = primary_of(cell.shards, slot_of(tag))
        if node is not None and used.get(node, 0) == fewest:
            return tag, node
    return None


def _shown(node: Address | None) -> str:
    return f"{host_in_url(node[0])}:{node[1]}" if node else "no node"


def _held(settings: Settings, cell: Cell) -> frozenset[str]:
    with Store.open(cell.sql_url.get_secret_value(), migrate=False, keys=settings.key_place) as store:
        stops = [f"stop of {stop.subject}" for stop in Stops(store.database).standing()]
        budgets = Budgets(store.database).standing()
    return frozenset([*stops, *(f"budget {one.scope} {one.usd:g} a {one.per}" for one in budgets)])


def check_held(held: Mapping[str, frozenset[str]]) -> Check:
    """Check that each cell has the stops and budgets that apply to all cells.

    A cell that was added later, or did not answer, lacks them.
    """
    everything = frozenset[str]().union(*held.values())
    lacking = {name: sorted(everything - own) for name, own in held.items() if own != everything}
    if not lacking:
        return ok(
            "set for all", f"{counted(len(everything), 'stop or budget', 'stops and budgets')}, the same in each cell"
        )
    return warn(
        "set for all",
        "; ".join(f"{name} has no {', '.join(lacks)}" for name, lacks in lacking.items()),
        "repeat `brainq stop`, `brainq lift` or `brainq budgets set`: each applies to all cells",
    )


def check_directory(home: Cell, keys: KeyPlace | None = None) -> Check:
    """Report the number of tenants in the directory, and moves that no process continues."""
    with Store.open(home.sql_url.get_secret_value(), migrate=False, keys=keys) as store:
        if not CELL_TABLES.has(store.engine, tenant_cells):
            return ok("directory", f"empty: the first turn creates it in the SQL of cell {home.name!r}")
        counts = Directory(store.database).counts()
        moves = Moves(store.database).all()
    listed = ", ".join(f"{name} {counted(count, 'tenant')}" for name, count in counts.items()) or "no tenant yet"
    left = left_moves(moves, datetime.now(UTC))
    if not left:
        return ok("directory", listed)
    return warn(
        "directory",
        f"{listed}; no process continues the move of {', '.join(move.tenant for move in left)}",
        f"`brainq move {left[0].tenant} --to {left[0].to_cell}` continues it",
    )


def left_moves(moves: Iterable[Move], now: datetime) -> list[Move]:
    """Return the moves whose process has ended. Pure."""
    return [move for move in moves if move.lease_until < now]

"""The checks of `brainq doctor` for several cells: the servers of each, and whether the cells agree."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from brainq.adapters.redis.connection import make_client
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
from brainq.runtime.settings.deployment import Settings


def check_cells(settings: Settings) -> Iterator[Check]:
    """Check all cells, the home cell first. A check is omitted if its server does not answer."""
    cells = settings.all_cells()
    yield check_own_cell(settings.cell, cells)
    yield from check_lanes(settings)
    servers: dict[str, str] = {}
    held: dict[str, frozenset[str]] = {}
    for cell in cells:
        has_sql = yield from _named(cell.name, _check_cell(settings.of_cell(cell), cell, servers))
        if has_sql:
            held[cell.name] = _held(settings.of_cell(cell), cell)
        if cell is cells[0] and has_sql:
            yield check_directory(cell, settings.key_place)
    yield check_held(held)
    yield check_versions(servers)


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


def _check_cell(settings: Settings, cell: Cell, servers: dict[str, str]) -> Generator[Check, None, bool]:
    """Check one cell, and add its Redis to `servers`. Returns whether its SQL can be read."""
    has_sql = yield from services.check_sql_and_content(settings)
    url = cell.redis_url.get_secret_value()
    if (yield from services.check_redis_and_broker(settings, url)):
        servers[cell.name] = _server(url)
    return has_sql


def _server(url: str) -> str:
    with make_client(url) as client:
        info: Mapping[str, object] = client.info("server")
    return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info.get('redis_version')}"


def check_versions(servers: Mapping[str, str]) -> Check:
    """Compare the versions of Redis.

    A move DUMPs keys in one cell and RESTOREs them in another, which an older server cannot do.
    """
    listed = ", ".join(f"{name} {server}" for name, server in servers.items()) or "no cell's Redis answers"
    if len(set(servers.values())) <= 1:
        return ok("versions", listed)
    return warn(
        "versions",
        f"{listed}: a tenant can only be moved to the same version or a newer one",
        "upgrade all cells to one version before you move tenants",
    )


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

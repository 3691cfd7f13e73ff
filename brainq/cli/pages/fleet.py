"""Print the fleet, its cells and its scale as pages, and its brains as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from brainq.cli.output import EFFECT_STYLES, clean, counted, duration
from brainq.cli.pages.layout import Column, PageTable, fact, key, print_head, print_section, words
from brainq.contracts.brain import BrainDescription
from brainq.contracts.fleet import (
    CellMove,
    CellsState,
    CellState,
    Fleet,
    FleetCapacity,
    FleetModel,
    FleetQueue,
    FleetScale,
    FleetTrouble,
    Pool,
    PoolScale,
)
from brainq.contracts.stop import Stop

MIB = 1024 * 1024


def print_fleet(console: Console, fleet: Fleet) -> None:
    print_head(console, _fleet_head(fleet))
    if fleet.troubles:
        print_section(console, "troubles", troubles_table(fleet.troubles))
    if fleet.stops:
        print_section(console, "stops", _stops_table(fleet.stops))
    print_section(console, "pools", _pools_table(fleet.pools))
    if fleet.queues:
        print_section(console, "queues", _queues_table(fleet.queues))
    if fleet.models:
        print_section(console, "models", _models_table(fleet.models))


def print_cells(console: Console, state: CellsState) -> None:
    """Print the cells as a table, with a note if BRAINQ_CELLS is not set."""
    print_section(console, "cells", PageTable(_cell_row(cell) for cell in state.cells))
    if state.directory == "away":
        console.print(
            "The directory of tenants is unreachable, so new tenants are refused until the home cell answers again."
        )
    if [cell.name for cell in state.cells] == [""]:
        console.print("There is a single cell without a name, because BRAINQ_CELLS is not set.", style="dim")
    if state.moves:
        print_section(console, "moves", PageTable(_move_row(move) for move in state.moves))


def _cell_row(cell: CellState) -> dict[Column, str | Text]:
    away = "" if cell.is_up else "-"
    return {
        key("cell"): f"{cell.name or '(one)'}{' (home)' if cell.is_home and cell.name else ''}",
        fact("", 6): Text("up", "green") if cell.is_up else Text("away", "red"),
        fact("tenants", 5, right=True): "?" if cell.tenants is None else str(cell.tenants),
        fact("active", 4, right=True): away or str(cell.active),
        fact("parked", 4, right=True): away or str(cell.parked),
        fact("waiting", 3, right=True): away or str(cell.waiting),
        fact("workers", 2, right=True): away or str(cell.workers),
        words("redis", 1): Text(clean(_place_of(cell), lines=False), "dim"),
    }


def _place_of(cell: CellState) -> str:
    """Return the address of the cell's Redis. Cells of one Redis Cluster have the same, so it is its slot and node."""
    return cell.redis if cell.slot is None else f"slot {cell.slot} on {cell.node}"


def _move_row(move: CellMove) -> dict[Column, str | Text]:
    return {
        key("tenant"): clean(move.tenant, lines=False),
        fact("from", 4): move.from_cell,
        fact("to", 4): move.to_cell,
        fact("phase", 5): move.phase,
        words("error", 1): Text(clean(move.error or "", lines=False), "red"),
    }


def print_scale(console: Console, scale: FleetScale) -> None:
    rows = (_scale_row(row) for pool in scale.pools for row in (pool, *pool.builds))
    print_section(console, "workers", PageTable(rows))


def _scale_row(pool: PoolScale) -> dict[Column, str | Text]:
    too_many = pool.stop_first[: pool.draining + max(0, pool.workers - pool.wanted)]
    stops = [f"{clean(each.name, lines=False)}{' (draining)' * each.draining}" for each in too_many]
    return {
        key("pool"): f"{pool.pool}@{clean(pool.build, lines=False)}" if pool.build else pool.pool,
        fact("wanted", 5, right=True): Text(str(pool.wanted), "" if pool.wanted == pool.workers else "yellow"),
        fact("now", 4, right=True): str(pool.workers),
        fact("queued", 3, right=True): str(pool.queued),
        fact("running", 3): f"{pool.running}, {pool.threads} a worker",
        fact("oldest", 2): "" if pool.oldest_age_s is None else duration(pool.oldest_age_s * 1000),
        words("may stop", 1): Text(", ".join(stops), "dim"),
    }


def _fleet_head(fleet: Fleet) -> list[tuple[str, Text]]:
    turns, lanes, redis = fleet.turns, fleet.lanes, fleet.redis
    states = {name: getattr(turns, name) for name in ("active", "parked", "queued", "closing", "accepted")}
    more = "" if turns.is_whole else ", counting only the newest turns"
    lapsed = f", {_counts({'lapsed': lanes.lapsed})}" if lanes.lapsed else ""
    round_s = fleet.sweeper.last_round_s
    swept = "no sweep in the last day" if round_s is None else f"last sweep {duration(round_s * 1000)} ago"
    given_up = fleet.given_up.model_dump()
    limit = f" of {redis.max_bytes / MIB:,.0f} MiB" if redis.max_bytes else ""
    return [
        ("turns", Text(_counts(states) + more)),
        ("room", Text(_capacity_text(fleet.room))),
        ("people", Text(f"{counted(turns.approvals, 'approval')} pending")),
        ("lanes", Text(f"{lanes.held} held, {counted(lanes.waiting, 'call')} waiting{lapsed}")),
        ("sweeper", Text(f"{swept}; the oldest check is {duration(fleet.sweeper.overdue_s * 1000)} overdue")),
        ("abandoned", Text(_counts(given_up), "red" if any(given_up.values()) else "")),
        ("redis", Text(f"{redis.version}, {redis.used_bytes / MIB:,.1f} MiB{limit}, {redis.policy}")),
    ]


def troubles_table(troubles: Sequence[FleetTrouble]) -> PageTable:
    return PageTable(
        {
            words("what", 2, 40): Text(clean(each.text, lines=False), "red"),
            words("remedy", 1, 24): clean(each.remedy, lines=False),
        }
        for each in troubles
    )


def _stops_table(stops: Sequence[Stop]) -> PageTable:
    return PageTable(
        {
            key("stopped"): clean(stop.subject, lines=False),
            fact("mode", 3): Text(stop.mode, "red" if stop.mode == "forbid" else "yellow"),
            fact("by", 2): clean(stop.by, lines=False),
            words("because", 1): clean(stop.reason, lines=False),
        }
        for stop in stops
    )


def _pools_table(pools: Sequence[Pool]) -> PageTable:
    return PageTable(
        {
            key("pool"): pool.name,
            fact("workers", 3, right=True): Text(str(len(pool.workers)), "" if pool.workers else "red"),
            fact("busy", 2): f"{pool.busy} of {pool.threads}",
            fact("build", 1): _builds_of(pool),
            words("names", 1): Text(", ".join(clean(worker.name, lines=False) for worker in pool.workers), "dim"),
        }
        for pool in pools
    )


def _builds_of(pool: Pool) -> str:
    """Return the builds of a pool's workers: `1.5`, or `1.4 (2), 1.5 (1)` if there are several."""
    counts = sorted(Counter(clean(worker.build, lines=False) for worker in pool.workers if worker.build).items())
    return ", ".join(name if len(counts) == 1 else f"{name} ({count})" for name, count in counts)


def _queues_table(queues: Sequence[FleetQueue]) -> PageTable:
    return PageTable(
        {
            key("queue"): queue.name.removeprefix("brainq."),
            fact("depth", 2, right=True): str(queue.depth),
            fact("oldest", 1): "" if queue.oldest_age_s is None else duration(queue.oldest_age_s * 1000),
        }
        for queue in queues
    )


def _models_table(models: Sequence[FleetModel]) -> PageTable:
    table = PageTable()
    for model in models:
        limits = f"{model.taken} of {model.requests or 'any number of'} requests"
        limits += f", {model.tokens} tokens at most" if model.tokens else ""
        stopped = f"stopped for {duration(model.stopped_s * 1000)}" if model.stopped_s else ""
        table.add(
            {
                key("model"): clean(model.name, lines=False),
                fact("in a minute", 2): limits,
                fact("waiting", 2, right=True): str(model.waiting),
                words("", 1): Text(stopped, "red"),
            }
        )
    return table


def _capacity_text(room: FleetCapacity) -> str:
    size = "no capacity known yet" if room.size is None else f"{room.live} of {room.size} live, {room.share} per tenant"
    size += "".join(f"; brain {brain.name} {brain.live} of {brain.cap}" for brain in room.brains)
    return size + f"; {counted(room.tenants_waiting, 'tenant')} waiting" * bool(room.tenants_waiting)


def _counts(numbers: dict[str, int]) -> str:
    """Return `3 active, 1 parked`, or `none` if all are 0."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in numbers.items() if number) or "none"


def brains_table(brains: Sequence[BrainDescription]) -> PageTable:
    return PageTable(
        {
            key("brain"): brain.name,
            fact("default", 1): "yes" if brain.is_default and len(brains) > 1 else "",
            fact("model", 2): brain.model,
            fact("live at most", 2): str(brain.max_live_turns or ""),
            words("tools", 3): Text(", ").join(
                Text(tool.name, EFFECT_STYLES[tool.effect.value]) for tool in brain.tools
            ),
        }
        for brain in brains
    )

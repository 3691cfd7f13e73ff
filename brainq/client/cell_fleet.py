"""The fleets of all cells as one: what several have is added up, and cells that did not answer are named.

Each cell has workers, queues and capacity of its own. With one cell its own fleet is given as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from brainq.cells.cells import Cells
from brainq.client.connection import cells_of
from brainq.client.fleet import MAX_RECENT_TURNS, WINDOW, fleet_activity, read_activity, read_fleet
from brainq.client.metrics import read_gauges, read_metrics
from brainq.client.scale import ScaleRequest, read_scale
from brainq.contracts.base import Wire
from brainq.contracts.fleet import (
    Fleet,
    FleetActivity,
    FleetCapacity,
    FleetModel,
    FleetQueue,
    FleetRedis,
    FleetScale,
    FleetSweeper,
    PoolScale,
)
from brainq.errors import CellUnreachable
from brainq.observe.metrics.catalogue import UP, Metric
from brainq.observe.metrics.counters import Series
from brainq.wiring import Wiring

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from brainq.client.async_client import AsyncClient
    from brainq.client.client import Client
    from brainq.observe.threads import KeptThread

W = TypeVar("W", bound=Wire)
T = TypeVar("T")


def read_all_fleets(cells: Cells) -> Fleet:
    """See `Client.fleet`. Raises CellUnreachable where no cell answers."""
    if not cells.is_routed:
        return read_fleet(cells.home)
    asked = cells.ask(read_fleet)
    if not asked.answers:
        raise CellUnreachable(asked.away[0], "and no other cell does")
    fleets = asked.values
    return Fleet(
        at_ms=max(each.at_ms for each in fleets),
        pools=tuple(
            pools[0].model_copy(update={"workers": tuple(worker for pool in pools for worker in pool.workers)})
            for pools in zip(*(each.pools for each in fleets), strict=True)
        ),
        queues=tuple(_queues(_by_name(each.queues for each in fleets))),
        lanes=_sum([each.lanes for each in fleets]),
        turns=_sum([each.turns for each in fleets]).model_copy(
            update={"is_whole": all(each.turns.is_whole for each in fleets)}
        ),
        room=_room([each.room for each in fleets]),
        sweeper=FleetSweeper(
            last_round_s=_most([each.sweeper.last_round_s for each in fleets]),
            overdue_s=max(each.sweeper.overdue_s for each in fleets),
        ),
        given_up=_sum([each.given_up for each in fleets]),
        models=tuple(_models([model for each in fleets for model in each.models])),
        troubles=tuple(trouble for each in fleets for trouble in each.troubles),
        stops=tuple({stop.field: stop for each in fleets for stop in each.stops}.values()),
        redis=_redis([each.redis for each in fleets]),
        cells_away=asked.away,
    )


def read_all_activity(cells: Cells) -> FleetActivity:
    """See `Client.activity`."""
    if not cells.is_routed:
        return read_activity(cells.home)
    now = datetime.now(UTC)
    asked = cells.ask(lambda wiring: wiring.store.turn_lists.recent(now - WINDOW, MAX_RECENT_TURNS))
    whole = all(len(turns) < MAX_RECENT_TURNS for turns in asked.values)
    activity = fleet_activity([turn for turns in asked.values for turn in turns], now)
    return activity.model_copy(update={"is_whole": whole, "cells_away": asked.away})


def read_all_scales(cells: Cells, request: ScaleRequest) -> FleetScale:
    """See `Client.scale`: of the cell that BRAINQ_CELL names, else the sum of all."""
    if not cells.is_routed or cells.own:
        return read_scale(cells.of_name(cells.own), request)
    asked = cells.ask(lambda wiring: read_scale(wiring, request))
    if asked.away:  # a scaler that reads too few would stop workers that are needed
        raise CellUnreachable(asked.away[0], "set BRAINQ_CELL to scale the workers of another")
    pools = [_scale(list(pools)) for pools in zip(*(each.pools for each in asked.values), strict=True)]
    return FleetScale(
        at_ms=max(each.at_ms for each in asked.values), wanted=sum(each.wanted for each in pools), pools=tuple(pools)
    )


def serve_metrics(client: Client, port: int) -> tuple[WSGIServer, KeptThread]:
    """Serve the metrics at http://127.0.0.1:`port`/metrics in a thread, read anew for each request.

    Raises OSError where the port is taken.
    """
    from brainq.observe.metrics.prometheus import start_server

    return start_server(lambda: read_all_metrics(cells_of(client)), port)


def read_all_gauges(client: AsyncClient) -> list[Series]:
    """See `read_gauges`."""
    cells = cells_of(client)
    return _by_cell(cells, read_gauges) if cells.is_routed else read_gauges(cells.home)


def read_all_metrics(cells: Cells) -> list[Series]:
    """See `Client.metrics`: with several cells each series has the label `cell` before its own."""
    return _by_cell(cells, read_metrics) if cells.is_routed else read_metrics(cells.home)


def _by_cell(cells: Cells, read: Callable[[Wiring], list[Series]]) -> list[Series]:
    asked = cells.ask(read)
    labelled: dict[str, tuple[Metric, Series]] = {}
    away = [Series(UP, {(service,): 0.0 for service in ("redis", "sql")})]
    for name, found in (*asked.answers, *((name, away) for name in asked.away)):
        for series in found:
            metric = replace(series.metric, labels=("cell", *series.metric.labels))
            known = labelled.get(metric.name)
            values = {(name, *labels): value for labels, value in series.values.items()}
            counts = {(name, *labels): value for labels, value in series.distributions.items()}
            if known is not None:
                values, counts = {**known[1].values, **values}, {**known[1].distributions, **counts}
            labelled[metric.name] = metric, Series(metric, values, counts)
    return [series for _, series in labelled.values()]


def _sum(parts: Sequence[W]) -> W:
    """Every number of them added up."""
    first = parts[0]
    numbers = [name for name, value in first if type(value) is int]
    return first.model_copy(update={name: sum(getattr(each, name) for each in parts) for name in numbers})


def _most(values: Iterable[float | None]) -> float | None:
    """None where any is not known."""
    found = list(values)
    return None if None in found else max(value for value in found if value is not None)


def _total(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)


def _by_name(lists: Iterable[Sequence[FleetQueue]]) -> dict[str, list[FleetQueue]]:
    named: dict[str, list[FleetQueue]] = {}
    for queue in (queue for queues in lists for queue in queues):
        named.setdefault(queue.name, []).append(queue)
    return named


def _queues(named: dict[str, list[FleetQueue]]) -> Iterable[FleetQueue]:
    for queues in named.values():
        ages = [queue.oldest_age_s for queue in queues if queue.oldest_age_s is not None]
        depth = sum(queue.depth for queue in queues)
        yield queues[0].model_copy(update={"depth": depth, "oldest_age_s": max(ages, default=None)})


def _room(rooms: Sequence[FleetCapacity]) -> FleetCapacity:
    return FleetCapacity(
        size=_total(each.size for each in rooms),
        share=_total(each.share for each in rooms),
        live=sum(each.live for each in rooms),
        tenants_waiting=sum(each.tenants_waiting for each in rooms),
        brains=tuple(
            _sum(brains)
            for brains in _grouped([brain for each in rooms for brain in each.brains], lambda brain: brain.name)
        ),
    )


def _models(models: Sequence[FleetModel]) -> Iterable[FleetModel]:
    for same in _grouped(models, lambda model: f"{model.name} {model.account}"):
        yield same[0].model_copy(
            update={
                "requests": _total(each.requests for each in same),
                "tokens": _total(each.tokens for each in same),
                "taken": sum(each.taken for each in same),
                "waiting": sum(each.waiting for each in same),
                "stopped_s": max(each.stopped_s for each in same),
            }
        )


def _redis(servers: Sequence[FleetRedis]) -> FleetRedis:
    """The worst of what may be wrong; memory is that of all."""
    policies = [each.policy for each in servers]
    return FleetRedis(
        version=min(each.version for each in servers),
        used_bytes=sum(each.used_bytes for each in servers),
        max_bytes=_total(each.max_bytes for each in servers),
        policy=next((policy for policy in policies if policy != "noeviction"), policies[0]),
        keeps_on_disk=all(each.keeps_on_disk for each in servers),
    )


def _scale(pools: Sequence[PoolScale]) -> PoolScale:
    ages = [each.oldest_age_s for each in pools if each.oldest_age_s is not None]
    return _sum(pools).model_copy(
        update={
            "threads": max(each.threads for each in pools),
            "oldest_age_s": max(ages, default=None),
            "builds": tuple(
                _scale(same) for same in _grouped([one for each in pools for one in each.builds], lambda one: one.build)
            ),
            "stop_first": tuple(
                sorted(
                    (one for each in pools for one in each.stop_first),
                    key=lambda one: (not one.draining, one.busy, one.name),
                )
            ),
        }
    )


def _grouped(items: Sequence[T], key: Callable[[T], str]) -> Iterable[list[T]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.values()

"""The fleets of all cells, combined into one. Each cell has its own workers, queues and capacity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells
from brainq.contracts.fleet import Fleet, FleetActivity, FleetScale
from brainq.errors import CellUnreachable
from brainq.fleet.combine import combine
from brainq.fleet.metrics import read_gauges, read_metrics
from brainq.fleet.scale import ScaleRequest, read_scale
from brainq.fleet.snapshot import MAX_RECENT_TURNS, WINDOW, fleet_activity, read_fleet
from brainq.runtime.observe.metrics.catalogue import UP, Metric
from brainq.runtime.observe.metrics.counters import Series

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from brainq.runtime.observe.threads import KeptThread


def read_all_fleets(cells: Cells) -> Fleet:
    """See `Client.fleet`. Raises CellUnreachable if no cell answers."""
    found = cells.ask(read_fleet)
    if not found.answers:
        raise CellUnreachable(found.away[0], "nor does any other cell")
    return combine(found.values).model_copy(update={"cells_away": found.away})


def read_all_activity(cells: Cells) -> FleetActivity:
    """See `Client.activity`."""
    now = datetime.now(UTC)
    found = cells.ask(lambda wiring: wiring.store.turn_lists.recent(now - WINDOW, MAX_RECENT_TURNS))
    is_whole = all(len(turns) < MAX_RECENT_TURNS for turns in found.values)
    activity = fleet_activity([turn for turns in found.values for turn in turns], now)
    return activity.model_copy(update={"is_whole": is_whole, "cells_away": found.away})


def read_all_scales(cells: Cells, request: ScaleRequest) -> FleetScale:
    """See `Client.scale`. Returns the scale of the cell that BRAINQ_CELL names, or of all cells together."""
    if cells.own:
        return read_scale(cells.of_name(cells.own), request)
    found = cells.ask(lambda wiring: read_scale(wiring, request))
    if found.away:  # An autoscaler that reads too low a number would stop workers that are needed.
        raise CellUnreachable(found.away[0], "set BRAINQ_CELL to scale the workers of a single cell")
    return combine(found.values)


def serve_metrics(cells: Cells, port: int) -> tuple[WSGIServer, KeptThread]:
    """Serve the metrics at http://127.0.0.1:`port`/metrics in a thread. They are read for each request.

    Raises OSError if the port is taken.
    """
    from brainq.runtime.observe.metrics.prometheus import start_server

    return start_server(lambda: read_all_metrics(cells), port)


def read_all_gauges(cells: Cells) -> list[Series]:
    """See `read_gauges`."""
    return _by_cell(cells, read_gauges)


def read_all_metrics(cells: Cells) -> list[Series]:
    """See `Client.metrics`. If there are several cells, each series has the label `cell` before its own."""
    return _by_cell(cells, read_metrics)


def _by_cell(cells: Cells, read: Callable[[Wiring], list[Series]]) -> list[Series]:
    found = cells.ask(read)
    if len(cells.names) == 1:
        return found.values[0]
    labelled: dict[str, tuple[Metric, Series]] = {}
    down = [Series(UP, {(service,): 0.0 for service in ("redis", "sql")})]
    for name, cell in (*found.answers, *((name, down) for name in found.away)):
        for series in cell:
            metric = replace(series.metric, labels=("cell", *series.metric.labels))
            known = labelled.get(metric.name)
            values = {(name, *labels): value for labels, value in series.values.items()}
            counts = {(name, *labels): value for labels, value in series.distributions.items()}
            if known is not None:
                values, counts = {**known[1].values, **values}, {**known[1].distributions, **counts}
            labelled[metric.name] = metric, Series(metric, values, counts)
    return [series for _, series in labelled.values()]

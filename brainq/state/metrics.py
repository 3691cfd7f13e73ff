"""What all processes counted, in one hash: a field a cell, such as `["brainq_turns","shop","completed","answered"]`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from brainq.observe.metrics.catalogue import DROPPED
from brainq.observe.metrics.counters import Cell, Counters
from brainq.state.connection import Client, as_mapping
from brainq.state.keys import Keys
from brainq.state.typed_scripts import Scripts

DAY_MS = 86_400_000
KEEP_MS = 30 * DAY_MS
REMEMBER_MS = DAY_MS  # for as long a process may try to add a batch again
MAX_CELLS = 10_000  # some 1 MB, and a third of a second of a scrape


@dataclass(frozen=True, slots=True)
class RedisMetrics:
    """Adding to it, and reading it."""

    client: Client
    scripts: Scripts
    keys: Keys

    def flush(self, counters: Counters) -> None:
        """Add what was counted since the last time; nothing is sent where that is nothing. What could not be sent is
        sent again the next time, and added once."""
        batch = counters.batch()
        if batch is None:
            return
        deltas = [part for cell, by in batch.deltas.items() for part in (_cell_field(cell), f"{by:.17g}")]
        self.scripts.metrics_flush(
            flushed=self.keys.flushed(counters.process),
            number=batch.number,
            dropped=_cell_field((DROPPED.name,)),
            keep_ms=KEEP_MS,
            remember_ms=REMEMBER_MS,
            most=MAX_CELLS,
            deltas=deltas,
        )
        counters.mark_flushed(batch)

    def totals(self) -> Mapping[Cell, float]:
        """All that was counted."""
        (found,) = self.client.many([("HGETALL", self.keys.metrics)])
        return {tuple(json.loads(field)): float(value) for field, value in as_mapping(found).items()}


def _cell_field(cell: Cell) -> str:
    return json.dumps(cell, ensure_ascii=False, separators=(",", ":"))

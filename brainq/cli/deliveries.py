"""How `brainq webhook list` shows deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.cli.style import STATUS_STYLES, clean, styled
from brainq.cli.table import PageTable, fact, key, words
from brainq.contracts.webhook import DeliveryRow


def as_table(rows: Sequence[DeliveryRow]) -> PageTable:
    table = PageTable(
        key("id"),
        fact("state", 6),
        fact("event", 5),
        fact("turn", 4),
        fact("tries", 2, right=True),
        words("to", 1),
        words("error", 3),
    )
    for row in rows:
        table.add(
            str(row.row),
            styled(row.state, STATUS_STYLES),
            row.event,
            row.turn_id,
            str(row.tries),
            clean(row.url, lines=False),
            clean(row.error or "", lines=False),
        )
    return table

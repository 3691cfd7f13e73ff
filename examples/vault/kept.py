"""What the finalizer kept of the demo's turns: decisions, judgements, memories."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from brainq.adapters.sql.store import Store
from brainq.cli.output import clean
from examples.vault.app import owner_of
from examples.vault.report import Finished

JUDGES = ("faithfulness", "relevance")


def wait_for_judges(store: Store, turns: Sequence[Finished], timeout_s: float) -> None:
    """Judging is not part of a turn's chain: it comes when it comes. Raises RuntimeError when it does not."""
    until = time.monotonic() + timeout_s
    for turn in turns:
        while any(row.state == "pending" for row in store.judgements.of_turn(turn.result.turn_id)):
            if time.monotonic() > until:
                raise RuntimeError(f"the judges of turn {turn.result.turn_id} are not done")
            time.sleep(0.05)


def show_kept(console: Console, store: Store, turns: Sequence[Finished]) -> None:
    """A row a turn, then what is remembered of the owner."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for title in ("turn", "strategy", *JUDGES, "judged by"):
        table.add_column(title)
    for turn in turns:
        decision = store.decisions.get(turn.result.turn_id)
        rows = {row.judge: row for row in store.judgements.of_turn(turn.result.turn_id)}
        scores = [rows[name].score if name in rows else None for name in JUDGES]
        table.add_row(
            turn.label,
            decision.strategy if decision else "",
            *("" if score is None else f"{score:.2f}" for score in scores),
            ", ".join(sorted({row.method for row in rows.values() if row.method})),
        )
    console.print(table)
    for memory in store.memories.list(owner_of("")):
        console.print(Text(f"  remembered  {memory.kind}: {clean(memory.text, lines=False)}"), soft_wrap=True)

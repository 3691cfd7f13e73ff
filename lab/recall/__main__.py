"""Measure the recall, and print a table for each registry: `python -m lab.recall`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from brainq.contracts.brain import ToolRanker
from brainq.engine.tools.ranking import Bm25Ranker, EmbeddingRanker
from brainq.errors import SetupError
from examples.airline.recorded import load_sessions, recorded_path
from lab.recall.cases import cases
from lab.recall.measure import Recall, measure, percentile, selection_ms
from lab.recall.registry import registries

SIZES = (8, 12, 16, 20, 32, 40, 64)
WIDTH = 120  # also where the output is a file
TIMED_SIZE = 64  # the default of Selection; the time hardly depends on it
TIMED_TURNS = 200
RANKERS: dict[str, Callable[[], ToolRanker]] = {
    "bm25": Bm25Ranker,
    "embedding": lambda: EmbeddingRanker(kept=10_000),
    "cosine": lambda: EmbeddingRanker(words=None, kept=10_000),
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    console = Console(highlight=False, width=WIDTH)
    try:
        rankers = {name: RANKERS[name]() for name in given.ranking or ("bm25", "embedding")}
        turns = list(cases(load_sessions(given.recorded)))
    except (SetupError, OSError) as failure:
        console.print(f"recall: {failure}", markup=False, style="red")
        return 1
    for registry, specs in registries().items():
        console.print(f"\n{registry}: {len(specs)} tools. Turns with all called tools kept / calls kept, %")
        table = Table("ranking", "by", *map(str, SIZES), "CPU ms", "p99")
        for name, ranker in rankers.items():
            taken = selection_ms(turns[:TIMED_TURNS], specs, RANKERS[name](), TIMED_SIZE)
            for with_context in (False, True):
                found = measure(turns, specs, ranker, SIZES, pinned=given.pinned, with_context=with_context)
                times = [f"{percentile(taken, percent):.2f}" for percent in (50, 99)] if with_context else []
                recalls = (f"{100 * size.of_turns:.1f}/{100 * size.of_calls:.1f}" for size in found.values())
                table.add_row(name, "context" if with_context else "message", *recalls, *times)
                if given.lost and with_context:
                    _show_lost(console, name, found)
        console.print(table)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    calls = sum(len(turn.called) for turn in turns)
    console.print(
        f"{len(turns)} turns, {calls} calls; {cores} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}"
    )
    return 0


def _show_lost(console: Console, ranking: str, found: dict[int, Recall]) -> None:
    for size, recall in found.items():
        lost = ", ".join(f"{name} {n}" for name, n in recall.lost.most_common(6))
        console.print(f"{ranking}, {size} tools: calls lost: {lost or 'none'}", soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.recall", description=__doc__)
    parser.add_argument("--recorded", type=Path, default=recorded_path(), help="gzipped sessions, a JSON a line")
    parser.add_argument("--ranking", action="append", choices=sorted(RANKERS), help="default: bm25 and embedding")
    parser.add_argument("--pinned", action="append", default=[], metavar="TOOL", help="always shown")
    parser.add_argument("--lost", action="store_true", help="which tools' calls were lost, with context")
    return parser


if __name__ == "__main__":
    sys.exit(main())

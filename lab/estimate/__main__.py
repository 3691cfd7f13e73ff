"""Print estimated / real tokens, for recorded usage and for texts: `python -m lab.estimate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from examples.airline.recorded import recorded_path
from lab.estimate.ratios import Sample, ratios
from lab.estimate.texts import ENCODING, counter, text_samples
from lab.estimate.usage import usage_samples


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.estimate", description=__doc__)
    parser.add_argument("--recorded", type=Path, default=recorded_path(), help="gzipped sessions, a JSON a line")
    recorded: Path = parser.parse_args(arguments).recorded
    console = Console(highlight=False, width=100)
    try:
        by_model, left_out = usage_samples(recorded)
    except OSError as failure:
        console.print(f"estimate: {failure}", markup=False, style="red")
        return 1
    console.print("estimated / real tokens: input that services reported")
    console.print(_table((f"{model}: {kind}", samples) for (model, kind), samples in by_model.items()))
    console.print(f"left out, their reported input shrank: {', '.join(left_out)}", markup=False)
    count = counter()
    if count is None:
        console.print("texts were not counted; for them: pip install bpe-openai")
        return 0
    console.print(f"\nestimated / real tokens: texts, counted by {ENCODING}")
    console.print(_table(text_samples(recorded, count).items()))
    return 0


def _table(rows: Iterable[tuple[str, Sequence[Sample]]]) -> Table:
    table = Table("", "samples", "p5", "median", "p95", "all together")
    for label, samples in rows:
        found = ratios(samples)
        figures = (found.p5, found.median, found.p95, found.overall)
        table.add_row(label, str(found.samples), *(f"{figure:.2f}" for figure in figures))
    return table


if __name__ == "__main__":
    sys.exit(main())

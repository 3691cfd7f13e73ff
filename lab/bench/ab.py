"""`python -m lab.bench.ab OTHER`: this checkout against another, alternately, in one sitting.

Both run `python -m lab.bench --only throughput` in their own directory with their own `.venv`. A ratio is this
checkout's figure divided by the other's of the same round; the machine's drift between rounds is in neither.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parents[2]
Figures = Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    console = Console(highlight=False)
    rounds: list[tuple[Figures, Figures]] = []
    for number in range(1, given.rounds + 1):
        console.print(f"round {number} of {given.rounds} ...")
        # The order changes every round: whoever runs second may find the machine warmer, or slower.
        pair = [HERE, given.other] if number % 2 else [given.other, HERE]
        try:
            measured = {
                checkout: measure(checkout, given.turns, given.workers if checkout == HERE else []) for checkout in pair
            }
        except subprocess.CalledProcessError as failure:
            console.print(f"{failure.cmd} failed:\n{failure.stdout}{failure.stderr}", markup=False, style="red")
            return 1
        rounds.append((measured[HERE], measured[given.other]))
    console.print(table(rounds))
    return 0


def measure(checkout: Path, turns: int, workers: Sequence[str] = ()) -> Figures:
    """Run the benchmark in a checkout, with so many `workers` (POOL=N). Raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory(prefix="ab-", dir=_bench_directory(checkout)) as name:
        path = Path(name, "figures.json")
        subprocess.run(
            [
                *(str(checkout / ".venv/bin/python"), "-m", f"{_tools(checkout)}.bench", "--only", "throughput"),
                *("--turns", str(turns), "--json", str(path)),
                *(f"--workers={each}" for each in workers),
            ],
            cwd=checkout,
            check=True,
            capture_output=True,
            text=True,
        )
        return flat(json.loads(path.read_text()))


def flat(figures: Mapping[str, Any]) -> Figures:
    """Return the figures that both checkouts may have, by label. An older checkout has fewer."""
    found: dict[str, float] = {}
    for label, name in (("events off", "throughput"), ("events on", "throughput_events")):
        run = figures["details"][name]
        found[f"turns/s, {label}"] = run["turns_per_s"]
        found.update({f"CPU ms {part}, {label}": value for part, value in run["cpu_ms_per_turn"].items()})
        if "noop_ms" in run:
            found[f"14 no-op tasks, CPU ms, {label}"] = run["noop_ms"]
            found[f"total / 14 no-op tasks, {label}"] = run["ratio_to_noop"]
        found.update(
            {
                f"Redis {part.replace('_', ' ')}, {label}": run["redis_per_turn"][part]
                for part in ("round_trips", "scripts", "commands")
            }
        )
    return found


def ratios(rounds: Sequence[tuple[Figures, Figures]], label: str) -> list[float]:
    """Return this checkout's figure divided by the other's, for each round.

    Rounds without the figure, or with a zero, are omitted.
    """
    return [ours[label] / theirs[label] for ours, theirs in rounds if ours.get(label) and theirs.get(label)]


def table(rounds: Sequence[tuple[Figures, Figures]]) -> Table:
    """Return the medians of both checkouts, and the median, minimum and maximum of the ratio."""
    shown = Table("figure", "this", "other", "this / other", "min", "max")
    for label in rounds[0][0]:
        here = statistics.median(ours[label] for ours, _ in rounds)
        there = [theirs[label] for _, theirs in rounds if label in theirs]
        by_round = ratios(rounds, label)
        shown.add_row(
            label,
            f"{here:.2f}",
            f"{statistics.median(there):.2f}" if there else "",
            *(
                [f"{figure:.3f}" for figure in (statistics.median(by_round), min(by_round), max(by_round))]
                if by_round
                else ["", "", ""]
            ),
        )
    return shown


def _bench_directory(checkout: Path) -> Path:
    directory = checkout / ".bench"
    directory.mkdir(exist_ok=True)
    return directory


def _tools(checkout: Path) -> str:
    """Return the folder of a checkout's developer tools, which was `ops` in older ones."""
    return "lab" if (checkout / "lab/bench").is_dir() else "ops"


def _checkout(text: str) -> Path:
    path = Path(text).resolve()
    if not (path / ".venv/bin/python").exists() or not (path / _tools(path) / "bench").is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no checkout with a .venv; run `make check` in it once")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.ab", description=__doc__)
    parser.add_argument("other", type=_checkout, help="the directory of the other checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=300, help="turns of each run")
    parser.add_argument("--workers", action="append", default=[], help="POOL=N or all=N, of this checkout alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())

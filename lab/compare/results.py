"""What was measured, round by round, and the table of it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.table import Table

from lab.compare.systems import System

UNITS = {"turns_per_s": "turns/s", "cpu_ms_per_turn": "CPU ms a turn", "p99_ms": "p99 ms, 300 at once"}
"""The three figures; the first is better the higher it is, the others the lower."""


@dataclass
class Measured:
    """One system's figures, a number each round; `failure` says what stopped it, if anything did."""

    system: System
    version: str = ""
    figures: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in UNITS})
    failure: str = ""

    def median(self, name: str) -> float | None:
        return statistics.median(self.figures[name]) if self.figures[name] else None


def shown(values: Sequence[float], digits: int) -> str:
    """Return the median with the minimum and maximum of several values, such as `12.3 (11.0 to 14.1)`."""
    if not values:
        return ""
    median, least, most = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return median if len(values) == 1 else f"{median} ({least} to {most})"


def table(results: Sequence[Measured]) -> Table:
    """Return the table for the terminal. The row of a failed system says so."""
    found = Table("system", *UNITS.values(), "versions", title="the reference turn", title_justify="left")
    for result in results:
        cells = [shown(result.figures[name], digits) for name, digits in zip(UNITS, (0, 1, 0), strict=True)]
        found.add_row(result.system.label, *(cells if not result.failure else ["failed", *cells[1:]]), result.version)
    return found


def markdown(results: Sequence[Measured]) -> str:
    """Return the table for the docs, with what each system does and omits."""
    lines = [
        f"| system | {' | '.join(UNITS.values())} | what keeps a turn, what is left out |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        cells = [shown(result.figures[name], digits) for name, digits in zip(UNITS, (0, 1, 0), strict=True)]
        does = f"{result.system.does} ({result.version})" if result.version else result.system.does
        if result.failure:
            does = f"**Failed:** {' '.join(result.failure.replace('|', '/').split())[:300]}"
        lines.append(f"| {result.system.label} | {' | '.join(cells)} | {does} |")
    return "\n".join(lines)

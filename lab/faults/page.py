"""Writes the tables between the marks of docs/reference/faults.md. A row that was not run again stays."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lab.faults.effects import ROOT
from lab.faults.table import FAULTS
from lab.faults.verdict import Verdict

PAGE = ROOT / "docs" / "reference" / "faults.md"
BEGINS, ENDS = "<!-- make faults writes this -->", "<!-- to here -->"
HEADS = (
    *("fault", "", "fired", "turns", "lost/doubled/`unknown`", "other endings"),
    *("recovery p50/max, s", "build, day"),
)


def row(verdict: Verdict, title: str, run: str) -> str:
    """Return a line of the table. `run` is the build and the day."""
    head = [f"`{verdict.name}`", title]
    if verdict.why_not:
        return _line([*head, f"not run here: {verdict.why_not}", *[""] * 4, run])
    spread = verdict.spread()
    ended = ", ".join(f"{count} {ending}" for ending, count in sorted(verdict.otherwise.items())) or "0"
    cells = [
        f"{sum(map(bool, verdict.fired))}/{verdict.times}",
        str(verdict.turns),
        f"{len(verdict.lost)}/{len(verdict.doubled)}/{verdict.unknown}",
        ended,
        "/".join(f"{value:.1f}" for value in spread or ()),
    ]
    return _line([*head, *cells, run])


def rows_of(text: str) -> dict[str, str]:
    """Return the lines of a page's table by the names of their faults."""
    table = text.partition(BEGINS)[2].partition(ENDS)[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return {line.split("`")[1]: line for line in lines}


def section(rows: Mapping[str, str], notes: str) -> str:
    """Return the text between the marks, with the faults in the table's order."""
    lines = [rows[fault.name] for fault in FAULTS if fault.name in rows]
    return "\n".join([notes, "", _line(HEADS), "|---" * len(HEADS) + "|", *lines])


def write_page(page: Path, verdicts: Sequence[Verdict], run: str, notes: str) -> None:
    """Replace these rows. Raises ValueError if the page has no marks."""
    titles = {fault.name: fault.title for fault in FAULTS}
    rows = rows_of(page.read_text()) | {verdict.name: row(verdict, titles[verdict.name], run) for verdict in verdicts}
    write_between(page, BEGINS, ENDS, section(rows, notes))


def write_between(page: Path, begins: str, ends: str, text: str) -> None:
    """Replace the text between two marks. Raises ValueError if the page does not have them."""
    before, found, rest = page.read_text().partition(begins)
    _, ended, after = rest.partition(ends)
    if not (found and ended):
        raise ValueError(f"{page} has no {begins} ... {ends}")
    page.write_text(f"{before}{begins}\n\n{text}\n\n{ends}{after}")


def run_label() -> str:
    """Return the build and the day of a run that is made now."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return f"`{build}` {datetime.now(UTC):%Y-%m-%d}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"

"""`python -m lab.faults.rivals`: a worker is killed in writes, and just before them, at brainq and its rivals.

Every system runs the same turn: it is asked, writes once, answers. The write tells the effect server that it comes, and
then has its effect there. The server holds five turns at one of the two, their worker dies (SIGKILL), and is started
again. The table goes into docs/reference/faults.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from lab.bench.machine import machine
from lab.bench.stage import forget_settings
from lab.compare.install import InstallFailure, install, version_of
from lab.faults.effects import end_in_order
from lab.faults.page import PAGE, run_label, write_between
from lab.faults.rivals.running import Outcome, run_rival
from lab.faults.rivals.systems import RIVALS, Rival, Setting, chosen

WRITES = 5
BEGINS, ENDS = "<!-- python -m lab.faults.rivals writes this -->", "<!-- to here, too -->"
HEADS = (
    *("system", "setting", "writes cut off", "ran once", "twice", "never"),
    *("completed without a word", "no ending in 3 min", "endings", "build, day"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 1 if a system could not run, or if brainq's default silently doubled or lost a write."""
    given = _parser().parse_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    forget_settings()
    rows = rows_of(Path(given.page).read_text()) if given.page else {}
    failed = False
    for rival in given.only:
        version = _set_up(rival, console)
        for setting in rival.settings:
            console.print(f"{rival.system.label}, {setting.name} ...")
            outcome = _run(rival, setting, given.writes) if version else Outcome(failure="cannot be set up here")
            console.print(f"  {outcome}", markup=False)
            ours = rival.name == "brainq" and setting.is_once
            failed |= bool(outcome.failure) or (ours and not right(outcome))
            rows[_key(rival, setting)] = row(rival, setting, version, outcome)
            if given.page:  # after each: a run that is broken off keeps what it has
                write_between(Path(given.page), BEGINS, ENDS, section(rows))
    return int(failed)


def right(outcome: Outcome) -> bool:
    """Return whether every turn ended, and no write ran twice or was lost silently."""
    return outcome.writes > 0 and not (outcome.twice or outcome.silent or outcome.stuck)


def section(rows: Mapping[tuple[str, str], str]) -> str:
    """Return the text between the marks of the page, with the systems in their order."""
    on = machine()
    notes = f"The last run: {on['cpu']}, {on['cores']} cores, load {os.getloadavg()[0]:.1f} after."
    keys = [_key(rival, setting) for rival in RIVALS for setting in rival.settings]
    lines = [rows[key] for key in keys if key in rows]
    return "\n".join([notes, "", _line(HEADS), "|---" * len(HEADS) + "|", *lines])


def rows_of(text: str) -> dict[tuple[str, str], str]:
    """Return the lines of a page's table, by system and setting."""
    lines = text.partition(BEGINS)[2].partition(ENDS)[0].splitlines()
    keys = [_key(rival, setting) for rival in RIVALS for setting in rival.settings]
    return {key: line for line in lines for key in keys if line.startswith(f"| {key[0]} (") and f"| {key[1]} |" in line}


def _key(rival: Rival, setting: Setting) -> tuple[str, str]:
    return rival.system.label, setting.label


def row(rival: Rival, setting: Setting, version: str, outcome: Outcome) -> str:
    label = f"{rival.system.label} ({version})" if version else rival.system.label
    if outcome.failure:
        return _line([label, setting.label, "not run", *[""] * 6, run_label()])
    counts = (outcome.writes, outcome.once, outcome.twice, outcome.never, outcome.silent, outcome.stuck)
    endings = ", ".join(f"{count} {name}" for name, count in sorted(outcome.endings.items()))
    return _line([label, setting.label, *map(str, counts), endings, run_label()])


def _run(rival: Rival, setting: Setting, writes: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="bq-rival-") as name:
        return run_rival(rival, setting, Path(name), writes)


def _set_up(rival: Rival, console: Console) -> str:
    """Install the rival, and return its version. Returns "" if it cannot be installed here."""
    console.print(f"setting up {rival.system.label} (once) ...")
    try:
        install(rival.system)
        return version_of(rival.system)
    except InstallFailure as failure:
        console.print(f"  {failure}", markup=False, style="red")
        return ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _rivals(names: str) -> tuple[Rival, ...]:
    try:
        return chosen(names)
    except ValueError as unknown:
        raise argparse.ArgumentTypeError(str(unknown)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.faults.rivals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_rivals, default=chosen(""), metavar="NAMES", help="such as dbos,temporal")
    parser.add_argument("--writes", type=int, default=WRITES, help="that are cut off at each of the two places")
    parser.add_argument("--page", default=str(PAGE), metavar="PATH", help="where the table goes; empty: nowhere")
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_in_order)
    sys.exit(main())

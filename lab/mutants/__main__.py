"""Seed each bug of the list into a copy of the code, and expect its tests to fail.

python -m lab.mutants               every bug; exit code 1 if one survives
python -m lab.mutants deadline      the bugs whose name or file contains `deadline`; exit code 2 if there is none
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.markup import escape

from lab.mutants.bug import Bug
from lab.mutants.bugs import BUGS

ROOT = Path(__file__).parents[2]
PARTS = ("brainq", "workers", "tests", "examples", "lab", "ops", "docs", "README.md", "pyproject.toml")
AT_ONCE = 2
LIMIT_S = 600.0
NO_TEST_FAILED, SOME_FAILED = 0, 1  # exit codes of pytest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.mutants", description="Do the tests notice seeded bugs?")
    parser.add_argument("only", nargs="*", help="words; bugs whose name or file holds one of them")
    only = parser.parse_args().only
    bugs, strangers = chosen(BUGS, only)
    if strangers:
        words = ", ".join(map(repr, strangers))
        parser.error(f"no bug's name or file holds {words}; lab/mutants/bugs lists all {len(BUGS)}")
    console, begun = Console(), time.monotonic()
    survivors: list[str] = []
    with _copies(min(AT_ONCE, len(bugs))) as copies, ThreadPoolExecutor(AT_ONCE) as pool:
        for bug, (code, said) in zip(bugs, pool.map(partial(_tried, copies), bugs), strict=True):
            if code == SOME_FAILED:
                console.print(f"[green]found[/]     {escape(bug.name)}")
                continue
            survivors.append(bug.name)
            word = "survived" if code == NO_TEST_FAILED else "broken"
            console.print(f"[red]{word:<9}[/] {escape(bug.name)}  [dim]{bug.file}[/]")
            if code != NO_TEST_FAILED:
                console.print(said[-2_000:], markup=False, highlight=False)
    took_s = time.monotonic() - begun
    console.print(f"{len(bugs) - len(survivors)} of {len(bugs)} bugs were found, in {took_s:.0f} s")
    return 1 if survivors else 0


def chosen(bugs: Sequence[Bug], words: Sequence[str]) -> tuple[list[Bug], list[str]]:
    """Return the bugs whose name or file contains one of the words (all, without words), and the words that match no
    bug."""
    held = {bug: f"{bug.name} {bug.file}" for bug in bugs}
    wanted = [bug for bug, text in held.items() if not words or any(word in text for word in words)]
    return wanted, [word for word in words if not any(word in text for text in held.values())]


@contextmanager
def _copies(count: int) -> Generator[SimpleQueue[Path]]:
    """Yield copies of the code, each for one bug at a time."""
    free: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="bq-mutants-") as folder:
        for number in range(count):
            copy = Path(folder) / str(number)
            copy.mkdir()
            for part in PARTS:
                if (ROOT / part).is_dir():
                    shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / part, copy / part)
            free.put(copy)
        yield free


def _tried(copies: SimpleQueue[Path], bug: Bug) -> tuple[int, str]:
    """Return pytest's exit code and output with this bug in the code."""
    copy = copies.get()
    file = copy / bug.file
    right = file.read_text()
    try:
        file.write_text(bug.seeded(copy))
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                "-m",
                "full or not full",
                *bug.tests,
            ],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return SOME_FAILED, f"the tests did not end within {LIMIT_S:g} s"
    finally:
        file.write_text(right)
        copies.put(copy)


if __name__ == "__main__":
    sys.exit(main())

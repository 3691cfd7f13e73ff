"""Where output goes: answers and tables to stdout, notes and errors to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

PIPED_WIDTH = 10_000  # a pipe has no width: one row a line, with all its columns


def stdout() -> Console:
    """Plain when it is not a terminal or NO_COLOR is set, which rich reads itself."""
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def say(text: str, style: str = "") -> None:
    """One note for people, on stderr."""
    stderr().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value a line; instants and enumerations as text."""
    sys.stdout.write(json.dumps(value, default=str, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _console(*, stderr: bool) -> Console:
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal else PIPED_WIDTH
    # emoji: `app:brain:` of a sentence, and what users write, stays as it is
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)

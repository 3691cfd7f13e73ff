"""Print the results of commands to stdout and notes to stderr: colours, durations, and text that is safe to print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from brainq.errors import ExitCode

if TYPE_CHECKING:  # rich takes a tenth of a second
    from rich.console import Console, RenderableType
    from rich.text import Text

T = TypeVar("T")
PIPED_WIDTH = 10_000  # A pipe has no width, so each row is one line with all its columns.
EFFECT_STYLES = {"read_only": "cyan", "local_write": "yellow", "network": "magenta", "destructive": "red"}
STATUS_STYLES = {
    **dict.fromkeys(("planned", "pending", "waiting", "accepted", "queued", "void"), "dim"),
    **dict.fromkeys(("parked", "dispatched", "closing"), "blue"),
    **dict.fromkeys(("running", "active", "intent"), "bold blue"),
    **dict.fromkeys(("completed", "done", "ok", "approved", "consumed"), "green"),
    **dict.fromkeys(("bounced", "denied", "cancelled"), "yellow"),
    **dict.fromkeys(("refused", "expired", "timed_out", "timed_out_late", "failed", "rejected", "dead"), "red"),
    "unknown": "bold red",
}


def stdout() -> Console:
    """Return a console. It prints plain text if stdout is not a terminal, or if NO_COLOR is set (rich reads it)."""
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def note(text: str, style: str = "") -> None:
    """Print a note for people on stderr."""
    stderr().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a JSON value on one line. Models and data classes become objects; instants and enumerations become text.
    For an object with a method `as_json`, its return value is printed.
    """
    sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_rows(rows: Sequence[Any], table: Callable[[Any], RenderableType], none: str, *, as_json: bool) -> None:
    """Print the rows of a list command as JSON or as a table, or the note `none` if there are no rows."""
    if as_json:
        print_json(rows)
    elif rows:
        stdout().print(table(rows))
    else:
        note(none)
    note_cells_away(getattr(rows, "away", ()))


def note_cells_away(away: Sequence[str]) -> None:
    """Print a note for each cell whose rows are missing from the output because it did not answer."""
    for cell in away:
        note(f"cell {cell} did not answer, so its rows are missing here; `brainq cells` shows its state", "yellow")


def print_page(value: T, page: Callable[[Console, T], None], *, as_json: bool) -> None:
    """Print a value as JSON or as a page."""
    if as_json:
        print_json(value)
    else:
        page(stdout(), value)


def print_outcome(value: Any, text: str, *, ok: bool = True, exit_code: ExitCode = ExitCode.OK, as_json: bool) -> None:
    """Print the outcome of a command, `value` as JSON on stdout or `text` as a note.

    ok          False if nothing was done: the note is yellow, and the command exits
    exit_code   the exit code if `ok` is False
    """
    if as_json:
        print_json(value)
    else:
        note(text, "green" if ok else "yellow")
    if not ok:
        raise typer.Exit(exit_code)


def _plain(value: Any) -> Any:
    if hasattr(value, "as_json"):
        return value.as_json()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal else PIPED_WIDTH
    # Without emoji=False, rich would replace `:word:` in text that users wrote.
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def styled(word: str, styles: dict[str, str]) -> Text:
    """Return the word in its colour, or plain if it has no style."""
    from rich.text import Text

    return Text(word, style=styles.get(word, ""))


def status_text(word: str) -> Text:
    return styled(word, STATUS_STYLES)


def clean(text: str, *, lines: bool = True) -> str:
    """Return `text` without control characters, so that the output of a model or a tool cannot move the cursor.

    `lines=False` also joins its lines into one.
    """
    printable = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    printable = printable.expandtabs(4)
    return printable if lines else " ".join(printable.split())


def short(text: str, width: int) -> str:
    """Return `text` as one line of at most `width` characters."""
    line = clean(text, lines=False)
    return line if len(line) <= width else line[: width - 1] + "…"


def duration(ms: float) -> str:
    """Format a duration as `45 ms`, `3.2 s`, `4 min 05 s`, `2 h 10 min` or `3 d 4 h`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    total_s = round(ms / 1000)
    if total_s < 3600:
        minutes, rest_s = divmod(total_s, 60)
        return f"{minutes} min {rest_s:02d} s" if rest_s else f"{minutes} min"
    if total_s < 86_400:
        return f"{total_s // 3600} h {total_s % 3600 // 60:02d} min"
    return f"{total_s // 86_400} d {total_s % 86_400 // 3600} h"


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Format how long ago an aware instant was, such as `3.2 s ago`."""
    passed = (now or datetime.now(UTC)) - moment
    return f"{duration(max(0.0, passed.total_seconds() * 1000))} ago"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun: `1 call`, `2 calls`, `2 tries`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

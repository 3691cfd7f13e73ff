"""Output of the command line: answers to stdout and notes to stderr, colours, durations and text safe to print."""

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
PIPED_WIDTH = 10_000  # a pipe has no width: one row a line, with all its columns
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
    """Plain when it is not a terminal or NO_COLOR is set, which rich reads itself."""
    return _console(stderr=False)


def stderr() -> Console:
    return _console(stderr=True)


def note(text: str, style: str = "") -> None:
    """One note for people, on stderr."""
    stderr().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value a line: models and data classes as objects, instants and enumerations as text; what has an
    `as_json` as that says."""
    sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_rows(rows: Sequence[Any], table: Callable[[Any], RenderableType], none: str, *, as_json: bool) -> None:
    """What a list command prints: its rows as JSON or as a table; a note where there are none."""
    if as_json:
        print_json(rows)
    elif rows:
        stdout().print(table(rows))
    else:
        note(none)
    note_cells_away(getattr(rows, "away", ()))


def note_cells_away(away: Sequence[str]) -> None:
    """Say which of several cells are missing in what was shown."""
    for cell in away:
        note(f"cell {cell} does not answer: what it has is missing here (`brainq cells`)", "yellow")


def print_page(value: T, page: Callable[[Console, T], None], *, as_json: bool) -> None:
    """What a command shows: `value` as JSON, or as a page."""
    if as_json:
        print_json(value)
    else:
        page(stdout(), value)


def print_outcome(value: Any, text: str, *, ok: bool = True, exit_code: ExitCode = ExitCode.OK, as_json: bool) -> None:
    """What a command did: `value` as JSON on stdout, or `text` as a note; then the end of the command.

    ok          False: nothing was done, so the note is yellow
    exit_code   the command's then
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
    # emoji: `app:brain:` of a sentence, and what users write, stays as it is
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def styled(word: str, styles: dict[str, str]) -> Text:
    """A status or effect in its colour; a word without one is plain."""
    from rich.text import Text

    return Text(word, style=styles.get(word, ""))


def status_text(word: str) -> Text:
    """A status in its colour."""
    return styled(word, STATUS_STYLES)


def clean(text: str, *, lines: bool = True) -> str:
    """`text` without control characters: what a model or a tool wrote must not move the cursor or ring a bell.

    `lines=False` makes it one line.
    """
    printable = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    printable = printable.expandtabs(4)
    return printable if lines else " ".join(printable.split())


def short(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    line = clean(text, lines=False)
    return line if len(line) <= width else line[: width - 1] + "…"


def duration(ms: float) -> str:
    """`45 ms`, `3.2 s`, `4 min 05 s`, `2 h 10 min` or `3 d 4 h`."""
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
    """How long ago an aware instant was, such as `3.2 s ago`."""
    passed = (now or datetime.now(UTC)) - moment
    return f"{duration(max(0.0, passed.total_seconds() * 1000))} ago"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 call`, `2 calls`, `2 tries`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

"""What the demo prints after the turns: answers, who did what, and what changed in the folder."""

from __future__ import annotations

import difflib
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from brainq import ToolTraceEntry, TurnResult
from brainq.cli.output import EFFECT_STYLES, STATUS_STYLES, clean, counted, duration, short, styled

_MOST_LINES_SHOWN = 4
_ROOT = Path(__file__).resolve().parents[2]
_BRAIN = "-A examples.vault.app:brain"
_NEXT = (
    ("The same brain with a Redis of its own, until you stop it", f"BRAINQ dev {_BRAIN}"),
    (
        "In a second terminal, in this directory",
        f'BRAINQ submit {_BRAIN} desk "What are my open loops?" --request-key loops --follow',
    ),
    ("That turn's events again, from any number on", "BRAINQ tail loops --after 3"),
    ("All of the above with a real model", "OPENAI_API_KEY=... make demo"),
)


@dataclass(frozen=True, slots=True)
class Finished:
    """One turn of the demo, when all of it is done. `final_steps` is how many steps its finalizer ran."""

    label: str
    asked: str
    result: TurnResult
    trace: tuple[ToolTraceEntry, ...]
    final_steps: int


def heading(console: Console, text: str) -> None:
    console.print()
    console.rule(Text(text, style="bold"), align="left", style="dim", characters="─")


def draw(console: Console, path: str) -> None:
    """Write what a recording console holds as a picture, with fonts of the reader's own machine."""
    drawn = console.export_svg(title="make demo", unique_id="demo", clear=False)
    Path(path).write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


def show_answers(console: Console, turns: Sequence[Finished]) -> None:
    """Each turn's question, answer, sources, ending and what it used."""
    for turn in turns:
        result = turn.result
        console.print()
        console.print(Text.assemble((turn.label, "bold"), "  ", (clean(turn.asked, lines=False), "italic")))
        for line in clean(result.text).splitlines():
            console.print(Text(_indented(line, console.width)))
        for source in (*result.local_citations, *result.web_citations):
            console.print(Text(f"  source  {clean(source.source, lines=False)}", style="dim"), soft_wrap=True)
        tokens = f"{result.input_tokens} in, {result.output_tokens} out tokens"
        used = [counted(result.steps, "step"), counted(result.tool_calls, "call"), tokens, duration(result.elapsed_ms)]
        ending = styled(result.ending.value, STATUS_STYLES)
        console.print(Text.assemble("  ", ending, f" ({result.stop_reason.value})", (f"  {' · '.join(used)}", "dim")))
        for warning in (*result.warnings, *([result.error] if result.error else [])):
            console.print(Text(f"  {clean(warning)}", style="yellow"))


def show_pools(console: Console, turns: Sequence[Finished], pools: Mapping[str, str]) -> None:
    """Which pool ran what. `pools` maps host and pid, as a call's trace names its owner, to a pool."""
    groups: dict[tuple[str, str, str], list[ToolTraceEntry]] = {}
    for entry in (entry for turn in turns for entry in turn.trace):
        process = entry.owner.rpartition("@")[2].rpartition("-")[0]  # without what makes its name the only one
        pool = pools.get(process, "not run")
        groups.setdefault((pool, entry.effect.value, entry.tool), []).append(entry)
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for title in ("pool", "ran", "effect", "lanes"):
        table.add_column(title, overflow="fold")
    table.add_column("times", justify="right")
    steps = sum(turn.result.steps for turn in turns)
    table.add_row("coordinator", "model steps", "", "", str(steps))
    effects = list(EFFECT_STYLES)
    for pool, effect, tool in sorted(groups, key=lambda group: (group[0], effects.index(group[1]), group[2])):
        entries = groups[pool, effect, tool]
        lanes = dict.fromkeys(lane for entry in entries for lane in entry.lanes)
        table.add_row(pool, tool, styled(effect, EFFECT_STYLES), "\n".join(lanes) or "none", str(len(entries)))
    table.add_row("finalizer", "steps after the answer", "", "", str(sum(turn.final_steps for turn in turns)))
    console.print(table)


def read_folder(folder: Path) -> dict[str, str]:
    """Every note's text by its path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.md"))}


def show_changes(console: Console, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Notes that came, went or changed, with the lines that are new."""
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    for path in changed:
        old, new = before.get(path, ""), after.get(path, "")
        sign, word, style = _change(path in before, path in after)
        difference = list(difflib.ndiff(old.splitlines(), new.splitlines()))
        added = [line[2:] for line in difference if line.startswith("+ ") and line[2:].strip()]
        removed = [line[2:] for line in difference if line.startswith("- ") and line[2:].strip()]
        sizes = [
            counted(len(lines), f"line {how}", f"lines {how}")
            for lines, how in ((added, "added"), (removed, "removed"))
            if lines
        ]
        console.print(
            Text.assemble((f"{sign} {path}", style), (f"  {word}, {', '.join(sizes)}", "dim")), soft_wrap=True
        )
        for line in added[:_MOST_LINES_SHOWN]:
            console.print(Text(f"    {short(line, console.width - 4)}"))
        if len(added) > _MOST_LINES_SHOWN:
            console.print(Text(f"    … {counted(len(added) - _MOST_LINES_SHOWN, 'more line')}", style="dim"))
    same = sum(path in after and before[path] == after[path] for path in before)
    console.print(Text(f"  {counted(same, 'note')} unchanged", style="dim"))


def show_next(console: Console) -> None:
    """Commands to copy, each under a comment that says what it is for."""
    if Path.cwd() != _ROOT:
        console.print(Text(f"  cd {shlex.quote(str(_ROOT))}", style="bold"), soft_wrap=True)
    for meaning, command in _NEXT:
        console.print(Text(f"  # {meaning}", style="dim"))
        console.print(Text(f"  {command.replace('BRAINQ', _brainq())}", style="bold"), soft_wrap=True)


def _brainq() -> str:
    """How a shell in the checkout calls the `brainq` of this Python: it need not be on PATH."""
    ours = Path(sys.executable).with_name("brainq")
    found = shutil.which("brainq")
    if found and Path(found).resolve() == ours.resolve():
        return "brainq"
    return shlex.quote(str(ours.relative_to(_ROOT) if ours.is_relative_to(_ROOT) else ours))


def _indented(line: str, width: int) -> str:
    hanging = "    " if line.startswith("- ") else "  "
    return textwrap.fill(
        line, width, initial_indent="  ", subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def _change(was: bool, there: bool) -> tuple[str, str, str]:
    if not was:
        return "+", "new", "green"
    return ("~", "changed", "yellow") if there else ("-", "deleted", "red")

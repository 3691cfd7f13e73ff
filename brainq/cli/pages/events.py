"""Print a turn's events as lines in a terminal, for `brainq tail` and `brainq submit --follow`.

    printer = EventPrinter(Console())
    for event in handle.events():
        printer.show(event)

Times are relative to the first event shown. The lines do not depend on colours (NO_COLOR, a pipe).
"""

from __future__ import annotations

import re
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from brainq.cli.output import EFFECT_STYLES, clean, counted, duration, short, status_text, styled
from brainq.cli.pages.people import Details, describe_call_event, describe_people_event
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Effect

_TIME_WIDTH = 9
_SUBJECT_WIDTH = 8
_GUTTER = "│ "
_QUEUED = {"room": "of its tenant, until capacity is free", "brain": "of its tenant, until its brain has free capacity"}
_PIECE = re.compile(r"\n|[^\S\n]+|\S+")
_WHOLE_WORDS = re.compile(r"(?s).*\S(?=\s)")


class EventPrinter:
    """A printer of one line per event, and of the model's text as it streams.

    label   a prefix of every line, for several turns on one console. Text is then printed when it is complete,
            because lines of other turns may come in between.
    """

    def __init__(self, console: Console, label: str = "") -> None:
        self._console = console
        self._label = label
        self._start_ms: int | None = None
        self._tools: dict[str, tuple[str, str]] = {}
        self._tool_width = 0
        self._streamed = ""
        self._text = _TextBlock(console, self._margin, stream=not label)
        self._thought = _TextBlock(console, self._margin, stream=not label, style="dim italic")

    def show(self, event: TurnEvent) -> None:
        """Print one event. Call it in the order of the events' numbers."""
        if self._start_ms is None:
            self._start_ms = event.at_ms
        data = cast("dict[str, Any]", event.data)
        if event.kind is EventKind.TEXT_DELTA:
            self._streamed += str(data.get("text", ""))
            self._thought.close()
            self._text.add(str(data.get("text", "")))
            return
        if event.kind is EventKind.REASONING_DELTA:
            self._text.close()
            self._thought.add(str(data.get("text", "")))
            return
        if event.kind is EventKind.STEP_STARTED:
            self._streamed = ""
        replaced = event.kind is EventKind.STEP_STARTED and data.get("attempt", 1) > 1
        self._thought.close(replaced=replaced)
        self._text.close(replaced=replaced)
        subject, word, details = self._describe(event.kind, data)
        line = Text()
        line.append(self._time(event.at_ms), style="dim")
        if self._label:
            line.append(self._label + "  ", style="bold")
        line.append(f"{subject:<{_SUBJECT_WIDTH}}", style="bold" if subject == "turn" else "")
        line.append_text(word)
        if details:
            line.append(" " * max(1, 12 - len(word.plain)))
            line.append_text(_joined(details))
        self._console.print(line, soft_wrap=True, highlight=False)

    @property
    def text(self) -> str:
        """The model's text of the newest step, as far as it has been printed."""
        return self._streamed

    def close(self) -> None:
        """End an unfinished line of text. Call it if the events stop before the final one."""
        self._thought.close()
        self._text.close()

    def add_known_call(self, call_id: str, tool: str, effect: Effect) -> None:
        """Add the name of a call whose step is not printed, because printing starts in the middle of the turn."""
        self._name(call_id, tool, effect.value)

    def _name(self, call_id: str, tool: str, effect: str) -> None:
        tool = short(tool, 40)
        self._tools[call_id] = (tool, effect)
        self._tool_width = max(self._tool_width, len(tool))

    def _time(self, at_ms: int) -> str:
        passed_s = max(0, at_ms - (self._start_ms or at_ms)) / 1000
        elapsed = f"{passed_s:.3f}" if passed_s < 100 else f"{passed_s:.1f}"
        return f"{elapsed:>{_TIME_WIDTH - 2}}  "

    def _margin(self) -> str:
        return " " * (_TIME_WIDTH - len(_GUTTER)) + _GUTTER + (self._label + "  " if self._label else "")

    def _describe(self, kind: EventKind, data: dict[str, Any]) -> tuple[str, Text, Details]:
        described = describe_people_event(kind, data)
        if described is not None:
            return described
        match kind:
            case EventKind.TURN_QUEUED:
                return "turn", status_text("queued"), [_wait(data["ahead"], data.get("why", ""))]
            case EventKind.TURN_ACTIVE:
                return "turn", status_text("active"), [f"deadline in {duration(data['deadline_in_ms'])}"]
            case EventKind.TURN_CLOSING:
                return "turn", status_text("closing"), _ending(data)
            case EventKind.RESULT:
                took: Details = [f"after {duration(data['elapsed_ms'])}"] if "elapsed_ms" in data else []
                reason = data.get("stop_reason", "")
                return ("turn", status_text(str(data.get("ending", "result"))), [*took, *([reason] if reason else [])])
            case EventKind.TURN_OPENING:
                for call in data["plan"]:
                    self._name(call["call"], str(call["tool"]), str(call["effect"]))
                return "turn", Text("opening"), [counted(len(data["plan"]), "call"), "before the first step"]
            case EventKind.REFLECTION:
                described = f"skipped: {data['stub']}" if data.get("stub") else f"on step {data['step']}"
                return "aux", Text("reflection"), [described]
            case EventKind.COMPACTION:
                shorter = f"{data['tokens_before']} to about {data['tokens_after']} tokens of context"
                return "aux", Text("compaction"), [shorter, f"summary by {data['method']}"]
            case EventKind.STEP_RETRIED:
                return f"step {data['step']}", Text("retry", style="yellow"), retry_details(data)
            case EventKind.STEP_STARTED | EventKind.STEP_ENDED:
                return f"step {data['step']}", *self._step(kind, data)
            case EventKind.BUDGET:
                return ("budget", Text("used up", style="yellow"), [str(data.get("spent", data.get("kind", "")))])
            case EventKind.NOTICE if data.get("waits_for"):
                wait = f"{data['waits_for']}, {duration(data['wait_ms'])}"
                return "notice", Text("waiting", style="yellow"), [wait]
            case EventKind.NOTICE:
                full = f"the context is {data['context_full']} % full at step {data['step']}"
                return "notice", Text("note", style="yellow"), [full]
            case _:
                return str(data.get("call", "")), *self._call(kind, data)

    def _step(self, kind: EventKind, data: dict[str, Any]) -> tuple[Text, Details]:
        if kind is EventKind.STEP_STARTED:
            attempt = data.get("attempt", 1)
            if attempt == 1:
                return Text("thinking"), []
            again = f"attempt {attempt}: its text replaces the text of attempt {attempt - 1}"
            return Text("again", style="yellow"), [Text(again, style="yellow")]
        effects: dict[str, int] = {}
        for call in data.get("plan") or []:
            self._name(call["call"], str(call["tool"]), str(call["effect"]))
            effects[call["effect"]] = effects.get(call["effect"], 0) + 1
        usage: Details = [
            Text(f"{count} {effect}", style=EFFECT_STYLES.get(effect, "")) for effect, count in effects.items()
        ]
        problem: Details = [Text(f"its calls are not run: {data['problem']}", "yellow")] if data.get("problem") else []
        tokens = f"{data.get('input_tokens', 0)} in, {data.get('output_tokens', 0)} out tokens"
        return Text("replied"), [counted(data.get("calls", 0), "call"), *usage, *problem, Text(tokens, style="dim")]

    def _call(self, kind: EventKind, data: dict[str, Any]) -> tuple[Text, Details]:
        if kind is EventKind.APPROVAL_REQUESTED and "tool" in data:
            # This event comes before the plan of its step.
            self._name(str(data["call"]), str(data["tool"]), str(data["effect"]))
        tool, effect = self._tools.get(str(data.get("call")), (str(data.get("tool", "")), ""))
        named: Details = []
        if tool:
            named = [Text(tool.ljust(self._tool_width), EFFECT_STYLES.get(effect, "")), styled(effect, EFFECT_STYLES)]
        if data.get("attempt", 1) > 1:
            named.append(Text(f"attempt {data['attempt']}", style="yellow"))
        described = describe_call_event(kind, data)
        if described is not None:
            return described[0], [*named, *described[1]]
        if kind is not EventKind.CALL_ENDED:
            return status_text(kind.value.split(".")[1]), named
        if data.get("latency_ms"):
            named.append(duration(data["latency_ms"]))
        if data.get("detail"):
            named.append(Text(clean(str(data["detail"]), lines=False), style="dim"))
        return status_text(str(data["status"])), named


class _TextBlock:
    """A block of the model's text next to a gutter, wrapped between words. A word is printed when it is complete."""

    def __init__(self, console: Console, margin: Any, *, stream: bool, style: str | None = None) -> None:
        self._console = console
        self._style = style
        self._margin = margin
        self._stream = stream
        self._held = ""
        self._column = 0
        self._open = False

    def add(self, text: str) -> None:
        self._held += clean(text)
        if self._stream:
            whole = _WHOLE_WORDS.match(self._held)
            if whole:
                self._held = self._held[whole.end() :]
                self._write(whole.group())

    def close(self, *, replaced: bool = False) -> None:
        """Print the rest of the text. Omit it if it is about to be replaced and none of it has been printed."""
        if not (replaced and not self._stream):
            self._write(self._held.rstrip())
        self._held = ""
        if self._open:
            self._console.out("", highlight=False)
        self._open = False

    def _write(self, text: str) -> None:
        room = max(20, self._console.width - 1) if self._console.is_terminal else 1_000_000
        margin = self._margin()
        out: list[str] = []
        for piece in _PIECE.findall(text):
            if not self._open:
                out.append(margin)
                self._open, self._column = True, len(margin)
            if piece == "\n" or (not piece.isspace() and self._column + len(piece) > room > len(margin) + len(piece)):
                out.append("\n" + margin)
                self._column = len(margin)
            if piece != "\n" and not (piece.isspace() and self._column >= room):
                out.append(piece)
                self._column += len(piece)
        if out:
            self._console.out("".join(out), end="", highlight=False, style=self._style)


def retry_details(data: dict[str, Any]) -> Details:
    """Return `rate_limit` and `next try in 1.5 s`."""
    return [clean(str(data.get("kind", "")), lines=False), f"next try in {duration(float(data.get('wait_ms', 0)))}"]


def _wait(ahead: int, why: str) -> str:
    if why == "paused":
        return "its session is paused"
    return f"behind {counted(ahead, 'turn')} {_QUEUED.get(why, 'of its session')}"


def _ending(data: dict[str, Any]) -> Details:
    return [status_text(str(data.get("ending", ""))), str(data.get("stop_reason", ""))]


def _joined(details: Details) -> Text:
    return Text("  ").join(part if isinstance(part, Text) else Text(part) for part in details)

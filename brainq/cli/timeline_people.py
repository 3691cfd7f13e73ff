"""Events of people and other programs as lines: what a turn waits for, is held by, and was told."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from brainq.cli.style import STATUS_STYLES, clean, counted, duration, short, styled
from brainq.contracts.event import EventKind

Details = list[str | Text]
Line = tuple[str, Text, Details]
"""The subject, the word, and what else there is to say."""

NAME_WIDTH = 40
_AWAITED = {"people": "for people", "outside": "for a result from outside", "client": "for its client"}


def describe(kind: EventKind, data: dict[str, Any]) -> Line | None:
    """The line of such an event; None for one of another sort."""
    match kind:
        case EventKind.TURN_PARKED:
            awaits = str(data.get("awaits", ""))
            waits = f"waits {_AWAITED.get(awaits, 'for ' + awaits)}; its time stands still"
            return "turn", styled("parked", STATUS_STYLES), [waits]
        case EventKind.TURN_RESUMED:
            return "turn", Text("goes on"), [f"after {duration(data.get('parked_ms', 0))} parked"]
        case EventKind.TURN_CANCELLING:
            return (
                "turn",
                Text("stopping", style="yellow"),
                ["a cancel was asked for", *_quoted(data, "reason")],
            )
        case EventKind.TURN_DIFF:
            return "turn", Text("changed"), [_counts(str(data.get("diff", "")))]
        case EventKind.INPUT_ACCEPTED:
            return "input", Text("accepted"), [_named(data, "input"), "the next step reads it"]
        case EventKind.INPUT_CONSUMED:
            return (
                "input",
                styled("consumed", STATUS_STYLES),
                [_named(data, "input"), f"by step {data.get('step')}"],
            )
        case EventKind.INPUT_BOUNCED:
            return (
                "input",
                styled("bounced", STATUS_STYLES),
                [_named(data, "input"), "it becomes a turn of its own"],
            )
        case EventKind.HOLD_PLACED | EventKind.HOLD_RELEASED:
            return _hold(kind, data)
        case _:
            return None


def call_details(kind: EventKind, data: dict[str, Any]) -> tuple[Text, Details] | None:
    """The word and the rest of an event about a call that waits for somebody, or says how far it is; else None."""
    match kind:
        case EventKind.CALL_PROGRESS:
            done, total = f"{data.get('done', 0):g}", data.get("total")
            line = clean(str(data.get("message", "")), lines=False)
            return Text("at"), [done if total is None else f"{done} of {total:g}", *([line] if line else [])]
        case EventKind.CALL_PARKED:
            why = str(data.get("why", ""))
            waits = {
                "approval": "until a person approves it",
                "hold": "until the turn is released",
                "outside": "until its result comes from outside",
                "child": "until its child turn has ended",
                "client": "until the client gives its result",
            }.get(why, why)
            return styled("parked", STATUS_STYLES), [waits]
        case EventKind.APPROVAL_REQUESTED:
            left = data.get("expires_in_ms")
            within = [f"within {duration(left)}"] if left else []
            return Text("asks", style="yellow"), [
                "for an approval, see `brainq approvals`",
                *within,
                *_quoted(data, "reason"),
            ]
        case EventKind.APPROVAL_DECIDED:
            word = str(data.get("decision", ""))
            edited: Details = [Text("with other arguments", style="yellow")] if data.get("edited") else []
            return styled(word, STATUS_STYLES), edited
        case _:
            return None


def _hold(kind: EventKind, data: dict[str, Any]) -> Line:
    name = _named(data, "hold")
    if kind is EventKind.HOLD_RELEASED:
        return "hold", Text("released", style="green"), [name]
    what = "not ready" if data.get("kind") == "readiness" else "held"
    return "hold", Text(what, style="yellow"), [name, *_quoted(data, "reason")]


def _named(data: dict[str, Any], field: str) -> str:
    return short(str(data.get(field, "")), NAME_WIDTH)


def _quoted(data: dict[str, Any], field: str) -> Details:
    said = clean(str(data.get(field) or ""), lines=False)
    return [Text(said, style="dim")] if said else []


def _counts(diff: str) -> str:
    """`2 files, +10 -3` of a turn's diff."""
    files = added = removed = 0
    in_hunk = False
    # Not splitlines: a file's text may hold other line ends, and a line of a hunk begins with one of " +-\\@".
    for line in diff.split("\n"):
        if line.startswith(("diff --git ", "Binary or too large: ")):
            files += 1
            in_hunk = False
        elif line.startswith("@@ "):
            in_hunk = True
        elif in_hunk:
            added += line.startswith("+")
            removed += line.startswith("-")
    return f"{counted(files, 'file')}, +{added} -{removed}"

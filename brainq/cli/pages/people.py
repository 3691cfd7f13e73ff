"""Print a turn's approvals, holds and inputs as tables, sections of pages, and lines of events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group
from rich.text import Text

from brainq.cli.output import EFFECT_STYLES, STATUS_STYLES, ago, clean, counted, duration, short, status_text, styled
from brainq.cli.pages.layout import PageTable, fact, key, words
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.event import EventKind
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import child_turn_id
from brainq.contracts.people import Approval, Receipt, StandingHold
from brainq.contracts.rows import InputRow

ARGUMENTS_WIDTH = 60
REASON_WIDTH = 60
TEXT_WIDTH = 60
_AT_TIMEOUT = {
    "deny": "when it expires, the waiting calls are denied",
    "release": "when it expires, it is released",
    "cancel": "when it expires, the turn is cancelled",
}
PARKED_REASONS = {
    "approval": "waiting for an approval",
    "hold": "waiting for the release of a hold",
    "outside": "waiting for a result from outside",
    "child": "waiting for its child turn",
    "client": "waiting for the client's result",
}
Details = list[str | Text]
Line = tuple[str, Text, Details]
"""The subject, the keyword and the details of a line."""
NAME_WIDTH = 40
_AWAITED = {"people": "for people", "outside": "for a result from outside", "client": "for its client"}


def approvals_table(approvals: Sequence[Approval]) -> PageTable:
    """Return the table of `brainq approvals`. The first column is the id to copy."""
    decided = any(approval.state != "pending" for approval in approvals)
    return PageTable(
        {
            key("id"): approval.id,
            words("tool", 6, 24): approval.tool,
            fact("effect", 2): styled(approval.effect.value, EFFECT_STYLES),
            words("arguments", 5): _arguments(approval),
            key("state") if decided else fact("state", 0): status_text(approval.state) if decided else "",
            fact("when", 3): _decision_time(approval),
            words("reason", 1): Text(short(approval.reason, REASON_WIDTH), "dim"),
        }
        for approval in approvals
    )


def approval_section(approvals: Sequence[Approval]) -> Group:
    """Return one line per call, and the commands that decide pending approvals."""
    table = PageTable()
    for approval in approvals:
        reason = short(approval.reason, REASON_WIDTH)
        if approval.comment:
            reason += f"; comment: {short(approval.comment, REASON_WIDTH)}"
        table.add(
            {
                key("call"): approval.call_id,
                words("tool", 6, 24): Text(approval.tool, EFFECT_STYLES.get(approval.effect.value, "")),
                words("arguments", 5): _arguments(approval),
                key("state"): status_text(approval.state).append(", edited" if approval.edited else ""),
                fact("when", 3): _decision_time(approval),
                words("reason", 2): Text(reason, "dim"),
            }
        )
    commands = [
        Text(f"{label:<11}", "yellow").append(f"brainq {verb} {approval.id}", "bold")
        for approval in approvals
        if approval.state == "pending"
        for label, verb in (("to decide:", "approve"), ("or", "deny"))
    ]
    return Group(table, *commands)


def hold_section(turn_id: str, holds: Sequence[StandingHold]) -> Group:
    """Return one line per open hold, and the commands that release them."""
    table = PageTable(
        {
            key("hold"): hold.id,
            fact("kind", 1): hold.kind,
            words("ends", 3): f"{_ends_in(hold.ends_in_ms)}, {_AT_TIMEOUT[hold.on_timeout]}",
            words("reason", 2): Text(short(hold.reason, 80), "dim"),
        }
        for hold in holds
    )
    commands = [Text("to release: ", "yellow").append(f"brainq release {turn_id} {hold.id}", "bold") for hold in holds]
    return Group(table, *commands)


def _ends_in(left_ms: int) -> str:
    return f"in {duration(left_ms)}" if left_ms > 0 else "now"


def input_section(inputs: Sequence[tuple[InputRow, Receipt]]) -> PageTable:
    """Return one line per input, in the order in which they were accepted."""
    return PageTable(
        {
            key("input"): row.client_message_id,
            words("text", 3): short(row.text, TEXT_WIDTH),
            fact("ready", 2): "" if row.readiness is None else "yes" if row.readiness else "no",
            words("receipt", 4): Text(describe_receipt(receipt), STATUS_STYLES.get(receipt.state, "")),
            fact("sent", 1): Text(ago(row.accepted_at), "dim"),
        }
        for row, receipt in inputs
    )


def describe_receipt(receipt: Receipt) -> str:
    """Return the outcome of an input, such as `was read by step 2`."""
    match receipt.state:
        case "accepted":
            return "waits for the turn's next step"
        case "consumed":
            return f"was read by step {receipt.step}"
        case "bounced":
            return f"became turn {receipt.bounced_turn_id}"
        case "refused":
            return "was refused because the turn had ended"


def parked_reason(entry: ToolTraceEntry | TurnCall) -> str:
    """Return what a parked call waits for, or "" for a call that is not parked."""
    return PARKED_REASONS.get(entry.park, "")


def resume_hints(turn_id: str, trace: Sequence[ToolTraceEntry]) -> list[Text]:
    """Return the commands that complete calls waiting for a result from outside or for a child turn."""
    lines: list[Text] = []
    for entry in trace:
        if entry.park == "outside":
            line = Text(f"to complete {entry.call_id}: ", "yellow").append("brainq complete TOKEN JSON", "bold")
            line.append("  or  ").append("brainq fail TOKEN ERROR", "bold")
            lines.append(line.append("  with the token that the tool issued", "dim"))
        elif entry.park == "child":
            child = child_turn_id(turn_id, entry.call_id)
            lines.append(
                Text(f"{entry.call_id} waits for its child turn: ", "yellow").append(f"brainq show {child}", "bold")
            )
    return lines


def _arguments(approval: Approval) -> str:
    if approval.arguments is None:
        return "(not kept)"
    return short(json.dumps(approval.arguments, ensure_ascii=False), ARGUMENTS_WIDTH)


def _decision_time(approval: Approval) -> Text:
    if approval.state == "pending":
        left_ms = (approval.expires_at - datetime.now(UTC)).total_seconds() * 1000
        return Text(f"expires in {duration(max(0.0, left_ms))}")
    if approval.state == "expired":
        return Text(ago(approval.expires_at), "dim")
    by = f" by {short(approval.decided_by, 30)}" if approval.decided_by else ""
    when = f"{ago(approval.decided_at)}" if approval.decided_at else ""
    return Text((when + by).strip(), "dim")


def describe_people_event(kind: EventKind, data: dict[str, Any]) -> Line | None:
    """Return the line for an event about people's input, or None for other events."""
    match kind:
        case EventKind.TURN_PARKED:
            awaits = str(data.get("awaits", ""))
            waits = f"waiting {_AWAITED.get(awaits, 'for ' + awaits)}; the deadline is paused"
            return "turn", status_text("parked"), [waits]
        case EventKind.TURN_RESUMED:
            return "turn", Text("resumed"), [f"after {duration(data.get('parked_ms', 0))} parked"]
        case EventKind.TURN_CANCELLING:
            return (
                "turn",
                Text("stopping", style="yellow"),
                ["cancel requested", *_quoted_field(data, "reason")],
            )
        case EventKind.TURN_DIFF:
            return "turn", Text("changed"), [_diff_counts(str(data.get("diff", "")))]
        case EventKind.INPUT_ACCEPTED:
            return "input", Text("accepted"), [_short_field(data, "input"), "the next step reads it"]
        case EventKind.INPUT_CONSUMED:
            return ("input", status_text("consumed"), [_short_field(data, "input"), f"by step {data.get('step')}"])
        case EventKind.INPUT_BOUNCED:
            return ("input", status_text("bounced"), [_short_field(data, "input"), "the input becomes a new turn"])
        case EventKind.HOLD_PLACED | EventKind.HOLD_RELEASED:
            return _hold_line(kind, data)
        case _:
            return None


def describe_call_event(kind: EventKind, data: dict[str, Any]) -> tuple[Text, Details] | None:
    """Return the keyword and details of an event about a parked call or a call's progress. Others give None."""
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
            return status_text("parked"), [waits]
        case EventKind.APPROVAL_REQUESTED:
            left = data.get("expires_in_ms")
            within = [f"within {duration(left)}"] if left else []
            return Text("waiting", style="yellow"), [
                "for an approval, see `brainq approvals`",
                *within,
                *_quoted_field(data, "reason"),
            ]
        case EventKind.APPROVAL_DECIDED:
            word = str(data.get("decision", ""))
            edited: Details = [Text("with other arguments", style="yellow")] if data.get("edited") else []
            return status_text(word), edited
        case _:
            return None


def _hold_line(kind: EventKind, data: dict[str, Any]) -> Line:
    name = _short_field(data, "hold")
    if kind is EventKind.HOLD_RELEASED:
        return "hold", Text("released", style="green"), [name]
    what = "not ready" if data.get("kind") == "readiness" else "held"
    return "hold", Text(what, style="yellow"), [name, *_quoted_field(data, "reason")]


def _short_field(data: dict[str, Any], field: str) -> str:
    return short(str(data.get(field, "")), NAME_WIDTH)


def _quoted_field(data: dict[str, Any], field: str) -> Details:
    quoted = clean(str(data.get(field) or ""), lines=False)
    return [Text(quoted, style="dim")] if quoted else []


def _diff_counts(diff: str) -> str:
    """Return the size of a turn's diff, such as `2 files, +10 -3`."""
    files = added = removed = 0
    in_hunk = False
    # splitlines() would also split at other line ends within a file's text.
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

"""What people are asked of a turn, hold in it, and said into it, as sections of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group
from rich.text import Text

from brainq.cli.style import EFFECT_STYLES, STATUS_STYLES, ago, duration, short, styled
from brainq.cli.table import PageTable, fact, key, words
from brainq.contracts.approval import Approval
from brainq.contracts.history import TurnCall
from brainq.contracts.hold import StandingHold
from brainq.contracts.ids import child_turn_id
from brainq.contracts.mailbox import Receipt
from brainq.contracts.rows import InputRow
from brainq.contracts.trace import ToolTraceEntry

ARGUMENTS_WIDTH = 60
REASON_WIDTH = 60
TEXT_WIDTH = 60

_AT_TIMEOUT = {
    "deny": "then the calls that wait are denied",
    "release": "then it is released",
    "cancel": "then the turn is cancelled",
}


def approvals_as_table(approvals: Sequence[Approval]) -> PageTable:
    """The list `brainq approvals` prints: an id to copy first."""
    decided = any(approval.state != "pending" for approval in approvals)
    table = PageTable(
        key("id"),
        words("tool", 6, 24),
        fact("effect", 2),
        words("arguments", 5),
        key("state") if decided else fact("state", 0),
        fact("when", 3),
        words("reason", 1),
    )
    for approval in approvals:
        table.add(
            approval.id,
            approval.tool,
            styled(approval.effect.value, EFFECT_STYLES),
            _arguments(approval),
            styled(approval.state, STATUS_STYLES) if decided else "",
            _when(approval),
            Text(short(approval.reason, REASON_WIDTH), "dim"),
        )
    return table


def approval_section(approvals: Sequence[Approval]) -> Group:
    """One line a call, and how to decide those that wait."""
    table = PageTable(
        key("call"),
        words("tool", 6, 24),
        words("arguments", 5),
        key("state"),
        fact("when", 3),
        words("reason", 2),
    )
    for approval in approvals:
        reason = short(approval.reason, REASON_WIDTH)
        if approval.comment:
            reason += f"; said: {short(approval.comment, REASON_WIDTH)}"
        table.add(
            approval.call_id,
            Text(approval.tool, EFFECT_STYLES.get(approval.effect.value, "")),
            _arguments(approval),
            styled(approval.state, STATUS_STYLES).append(", edited" if approval.edited else ""),
            _when(approval),
            Text(reason, "dim"),
        )
    commands = [
        Text(f"{label:<11}", "yellow").append(f"brainq {verb} {approval.id}", "bold")
        for approval in approvals
        if approval.state == "pending"
        for label, verb in (("to decide:", "approve"), ("or", "deny"))
    ]
    return Group(table, *commands)


def hold_section(turn_id: str, holds: Sequence[StandingHold]) -> Group:
    """One line a hold that stands, and how to release it."""
    table = PageTable(key("hold"), fact("kind", 1), words("ends", 3), words("reason", 2))
    for hold in holds:
        left = f"in {duration(hold.ends_in_ms)}" if hold.ends_in_ms > 0 else "now"
        table.add(
            hold.id, hold.kind, f"{left}, {_AT_TIMEOUT[hold.on_timeout]}", Text(short(hold.reason, 80), "dim")
        )
    commands = [
        Text("to let it go: ", "yellow").append(f"brainq release {turn_id} {hold.id}", "bold")
        for hold in holds
    ]
    return Group(table, *commands)


def input_section(inputs: Sequence[tuple[InputRow, Receipt]]) -> PageTable:
    """One line an input, in the order they were accepted."""
    table = PageTable(key("input"), words("text", 3), fact("ready", 2), words("receipt", 4), fact("sent", 1))
    for row, receipt in inputs:
        ready = "" if row.readiness is None else "yes" if row.readiness else "no"
        table.add(
            row.client_message_id,
            short(row.text, TEXT_WIDTH),
            ready,
            Text(receipt_in_words(receipt), STATUS_STYLES.get(receipt.state, "")),
            Text(ago(row.accepted_at), "dim"),
        )
    return table


def receipt_in_words(receipt: Receipt) -> str:
    """`was read by step 2`, after the input's name."""
    match receipt.state:
        case "accepted":
            return "waits for the turn's next step"
        case "consumed":
            return f"was read by step {receipt.step}"
        case "bounced":
            return f"became turn {receipt.bounced_turn_id}"
        case "refused":
            return "was refused: its turn was over"


PARKED_FOR = {
    "approval": "waits for an approval",
    "hold": "waits for a hold to be released",
    "outside": "waits for a result from outside",
    "child": "waits for its child turn",
    "client": "waits for the client's result",
}


def waits_for(entry: ToolTraceEntry | TurnCall) -> str:
    """What a parked call waits for, in words; empty for a call that is not parked."""
    return PARKED_FOR.get(entry.park, "")


def awaited_lines(turn_id: str, trace: Sequence[ToolTraceEntry]) -> list[Text]:
    """How calls that wait for a result from outside, or for a child turn, come to go on."""
    lines: list[Text] = []
    for entry in trace:
        if entry.park == "outside":
            line = Text(f"to end {entry.call_id}: ", "yellow").append("brainq complete TOKEN JSON", "bold")
            line.append("  or  ").append("brainq fail TOKEN ERROR", "bold")
            lines.append(line.append("  with the token that the tool gave away", "dim"))
        elif entry.park == "child":
            child = child_turn_id(turn_id, entry.call_id)
            lines.append(
                Text(f"{entry.call_id} waits for: ", "yellow").append(f"brainq show {child}", "bold")
            )
    return lines


def _arguments(approval: Approval) -> str:
    if approval.arguments is None:
        return "(not kept)"
    return short(json.dumps(approval.arguments, ensure_ascii=False), ARGUMENTS_WIDTH)


def _when(approval: Approval) -> Text:
    if approval.state == "pending":
        left_ms = (approval.expires_at - datetime.now(UTC)).total_seconds() * 1000
        return Text(f"expires in {duration(max(0.0, left_ms))}")
    if approval.state == "expired":
        return Text(ago(approval.expires_at), "dim")
    by = f" by {short(approval.decided_by, 30)}" if approval.decided_by else ""
    when = f"{ago(approval.decided_at)}" if approval.decided_at else ""
    return Text((when + by).strip(), "dim")

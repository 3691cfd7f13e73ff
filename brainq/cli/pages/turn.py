"""Print the page of `brainq show`: a turn, or one of its calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from brainq.cli.output import EFFECT_STYLES, ago, clean, duration, short, status_text, styled
from brainq.cli.pages.layout import PageTable, fact, key, print_head, print_section, words
from brainq.cli.pages.people import approval_section, hold_section, input_section, parked_reason, resume_hints
from brainq.cli.pages.turn_record import (
    cost_section,
    decision_section,
    dollars,
    judgement_section,
    memory_section,
    step_section,
)
from brainq.client.turn_facts import CallFacts, TurnFacts
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.event import TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.rows import CallRow
from brainq.contracts.status import Awaits, Ending, TurnState
from brainq.contracts.view import BudgetSnapshot, TurnSnapshot

VALUE_WIDTH = 300  # The most characters of a call's arguments or result; --json has all.
BAR_WIDTH = 20
TEXT_LINES = 12


def call_section(calls: Sequence[TurnCall]) -> PageTable | None:
    """Return the section of calls with their arguments and results. Returns None if no call's content is kept."""
    stored = [call for call in calls if call.is_kept]
    table, name, what = PageTable(header=False), key("call"), words("what", 1)
    for call in stored:
        line = Text(call.tool, "cyan").append(f"({_call_arguments(call)})", "default")
        table.add({name: call.call_id, what: line})
        if call.result is not None:
            result = short(call.result, VALUE_WIDTH)
            table.add({what: Text("→ ", "dim").append(result, "red" if call.is_error else "default")})
    return table if stored else None


def _call_arguments(call: TurnCall) -> str:
    arguments = call.arguments
    return short(arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False), VALUE_WIDTH)


def print_call(console: Console, facts: CallFacts) -> None:
    """Print a call's status, its complete arguments and result, and each of its attempts."""
    call, arguments = facts.call, facts.arguments
    status = status_text(call.status.value)
    if reason := parked_reason(call) or call.detail:
        status.append(f"  {clean(reason, lines=False)}", "default")
    head = [
        ("call", Text(call.id, "bold")),
        ("session", Text(call.session_id)),
        ("tool", Text(call.tool)),
        ("effect", styled(call.effect.value, EFFECT_STYLES)),
        ("status", status),
        ("made by", Text(f"step {call.step}, in wave {call.wave}, attempt {call.attempt}")),
    ]
    if call.started_at_ms:
        started = datetime.fromtimestamp(call.started_at_ms / 1000, UTC)
        head.append(("started", Text(f"{started:%Y-%m-%d %H:%M:%S} UTC, {ago(started)}")))
    if call.latency_ms:  # The latency of a call that ended `unknown` is not measured.
        head.append(("took", Text(duration(call.latency_ms))))
    if keys := {intent.idempotency_key: None for intent in facts.intents if intent.idempotency_key}:
        head.append(("key", Text(", ".join(keys))))
    print_head(console, head)
    if arguments is None:
        print_section(console, "arguments", Text("not kept", "dim"))
    else:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, indent=2, ensure_ascii=False)
        print_section(console, "arguments", Text(clean(text)))
    if call.result is not None:
        print_section(console, "result", Text(clean(call.result), "red" if call.is_error else ""))
    if facts.intents:
        print_section(console, "intents, from SQL", _intents(facts.intents))


def print_turn(console: Console, facts: TurnFacts) -> None:
    """Print each section that has content."""
    _print_turn_head(console, facts)
    snapshot = facts.snapshot
    if snapshot is not None:
        print_section(console, "budget", _budget(snapshot.budget, ended=snapshot.state.is_final))
        if snapshot.trace:
            awaited = resume_hints(snapshot.turn_id, snapshot.trace)
            print_section(console, "calls", _trace(snapshot.trace, snapshot.now_ms), *awaited)
    elif facts.calls:
        print_section(console, "calls, from SQL", _trace(facts.calls, 0))
    section = call_section(facts.calls)
    if section is not None:
        print_section(console, "arguments and results", section)
    elif facts.no_messages:
        print_section(console, "arguments and results", Text(facts.no_messages, "dim"))
    if facts.retries:
        print_section(console, "retries of the model", _retries(facts.retries))
    if facts.approvals:
        print_section(console, "approvals", approval_section(facts.approvals))
    if facts.holds:
        print_section(console, "holds", hold_section(facts.row.turn_id, facts.holds))
    if facts.inputs:
        print_section(console, "inputs", input_section(facts.inputs))
    if facts.spends:
        print_section(console, "cost", cost_section(facts.spends))
    if facts.intents:
        print_section(console, "intents of writes, from SQL", _intents(facts.intents))
    if facts.steps:
        print_section(console, "finalizer, from SQL", step_section(facts.row.turn_id, facts.steps))
    if facts.decision:
        print_section(console, "decision", decision_section(facts.decision))
    if facts.judgements:
        print_section(console, "judgements", judgement_section(facts.row.turn_id, facts.judgements))
    if facts.memories or facts.observations:
        print_section(console, "remembered", memory_section(facts.memories, facts.observations))
    if facts.result and facts.result.text:
        lines = clean(facts.result.text).strip().splitlines()
        more = [f"... {len(lines) - TEXT_LINES} more lines; --json has them all"] if len(lines) > TEXT_LINES else []
        print_section(console, "answer", Text("\n".join(lines[:TEXT_LINES] + more)))


def _print_turn_head(console: Console, facts: TurnFacts) -> None:
    row, snapshot = facts.row, facts.snapshot
    state = status_text(facts.state)
    if row.stop_reason and row.stop_reason.value != facts.state:
        state.append(f"  {row.stop_reason.value}", "default")
    if snapshot and snapshot.cancel_requested and not snapshot.state.is_final:
        state.append("  cancel requested", "yellow")
    accepted = f"{row.accepted_at:%Y-%m-%d %H:%M:%S} UTC, {ago(row.accepted_at)}"
    if row.ended_at:
        accepted += f"; ended after {duration((row.ended_at - row.accepted_at).total_seconds() * 1000)}"
    head = [
        ("turn", Text(row.turn_id, "bold")),
        ("session", Text(row.session_id)),
        ("state", state),
        ("next", Text(facts.next)),
        *(("trouble", Text(f"{each.text}; {each.remedy}", "red")) for each in facts.troubles),
        ("accepted", Text(accepted)),
    ]
    if row.request_key != row.turn_id:
        head.append(("key", Text(row.request_key)))
    if facts.request and facts.request.brain:
        head.append(("brain", Text(facts.request.brain)))
    if facts.request:
        head.append(("message", Text(short(facts.request.message_with_files, 100))))
    if snapshot and snapshot.state in (TurnState.ACTIVE, TurnState.PARKED):
        head.append(("lease", _lease(snapshot)))
    if reason := clean(row.error or row.reject_reason or "", lines=False):
        wanted = row.ending is Ending.CANCELLED  # For a cancelled turn, the text is a person's reason, not an error.
        head.append(("reason", Text(reason, "yellow")) if wanted else ("error", Text(reason, "red")))
    for warning in facts.result.warnings if facts.result else ():
        head.append(("warning", Text(clean(warning, lines=False), "yellow")))
    print_head(console, head)


def _lease(snapshot: TurnSnapshot) -> Text:
    fence = f"fence {snapshot.fence}"
    if not snapshot.owner:
        return Text(
            f"{'no coordinator is needed' if snapshot.awaits is Awaits.CALLS else 'no coordinator owns it'}, {fence}"
        )
    left = duration(snapshot.lease_remaining_ms) + " left" if snapshot.lease_remaining_ms else "lapsed"
    return Text(f"{snapshot.owner}, {left}, {fence}")


def _budget(budget: BudgetSnapshot, *, ended: bool) -> PageTable:
    table = PageTable(header=False)
    what, bar, spent, limits = key("what"), fact("bar", 1), fact("used", 3, right=True), fact("most", 2)
    rows: list[tuple[str, float, float | None, str]] = [
        ("steps", budget.steps_used, budget.steps_max, ""),
        ("tool calls", budget.tool_calls_used, budget.tool_calls_max, ""),
        ("reflections", budget.reflections_used, budget.reflections_max, ""),
        ("tokens", budget.tokens_used, budget.tokens_max, ""),
        ("cost", budget.cost_usd, budget.cost_max_usd, "$"),
    ]
    for name, used, limit, unit in rows:
        amount = _cost_text(used) if unit else f"{used:g}"
        of_limit = "no limit" if limit is None else f"of {unit}{limit:g}"
        table.add({what: name, bar: _bar(used, limit), spent: amount, limits: Text(of_limit, "dim")})
    if not ended:
        table.add({what: "time", spent: duration(budget.remaining_s * 1000), limits: Text("left", "dim")})
    return table


def _cost_text(used: float) -> str:
    """Return the cost, or "" if it is 0, because the model may have no known price; the section `cost` shows which."""
    return dollars(used) if used else ""


def _bar(used: float, limit: float | None) -> Text:
    if not limit:
        return Text("")
    share = min(1.0, used / limit)
    full = round(share * BAR_WIDTH)
    style = "red" if share >= 1 else "yellow" if share >= 0.75 else "green"
    return Text("█" * full, style).append("░" * (BAR_WIDTH - full), "dim")


def _trace(trace: Sequence[ToolTraceEntry | TurnCall], now_ms: int) -> PageTable:
    table = PageTable()
    for entry in trace:
        parked = parked_reason(entry)
        owner, lanes = (entry.owner, entry.lanes) if isinstance(entry, ToolTraceEntry) else ("", ())
        detail = parked or entry.detail or (owner if not entry.status.is_settled else "")
        table.add(
            {
                key("call"): entry.call_id,
                words("tool", 9, 24): entry.tool,
                fact("effect", 4): styled(entry.effect.value, EFFECT_STYLES),
                fact("wave", 1): f"{entry.step}.{entry.wave}",
                key("status"): status_text(entry.status.value),
                fact("took", 5): _duration_text(entry, now_ms),
                fact("attempt", 6): Text(str(entry.attempt) if entry.attempt > 1 else "", "yellow"),
                words("lane", 3): short(", ".join(lanes), 40),
                words("detail", 8): Text(short(detail, 60), "yellow" if parked else "dim"),
            }
        )
    return table


def _duration_text(entry: ToolTraceEntry | TurnCall, now_ms: int) -> str:
    if entry.status.is_settled:
        return duration(entry.latency_ms) if entry.started_at_ms else ""
    since = entry.started_at_ms or entry.dispatched_at_ms
    return f"{duration(max(0, now_ms - since))} so far" if since else ""


def _retries(retries: Sequence[TurnEvent]) -> PageTable:
    return PageTable(
        {
            key("step"): str(data["step"]),
            fact("attempt", 1): str(data["attempt"]),
            words("kind", 2): clean(str(data["kind"]), lines=False),
            fact("waited", 3): duration(float(str(data["wait_ms"]))),
        }
        for data in (event.data for event in retries)
    )


def _intents(intents: Sequence[CallRow]) -> PageTable:
    return PageTable(
        {
            key("call"): row.call_id,
            fact("attempt", 5): str(row.attempt),
            words("tool", 9, 24): row.tool,
            fact("effect", 3): styled(row.effect.value, EFFECT_STYLES),
            key("state"): status_text(row.state),
            fact("outcome", 6): (row.outcome_kind or "") + (", late" if row.late else ""),
            fact("started", 2): ago(row.started_at),
            words("by", 1): Text(short(row.owner, 40), "dim"),
        }
        for row in intents
    )

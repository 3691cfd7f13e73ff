"""Contracts as the scripts take them.

`FORMS` has Python for whole arguments, by their types or names. `FIELDS` has Python for the fields of contracts, by the
names that the headers give them. `{}` stands for the parameter. `script_methods.py` writes calls with both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from brainq.adapters.redis.keys import Keys
from brainq.contracts.budgets import MoneyHold
from brainq.contracts.cell import tenant_key
from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.model import Spend
from brainq.contracts.people import EditedCall, HoldSpec, RestoredState, readiness_hold_id
from brainq.contracts.turn import ParentCall, TurnRequest, TurnResult
from brainq.runtime.observe.tracing import traceparent_of, turn_context

__all__ = ["tenant_key"]  # for the expressions below
MAX_CLIENT_ARGUMENT_CHARS = 500  # of a client call's arguments: kept for as long as its result may come late


def as_json(value: BaseModel) -> str:
    """Return a value as JSON without its default fields."""
    return value.model_dump_json(exclude_defaults=True)


def json_or_none(value: BaseModel | None) -> str:
    """Return a value as JSON, or "" for None."""
    return as_json(value) if value is not None else ""


def spends_json(spends: Sequence[Spend] | None) -> str:
    """Return spends as a JSON array, or "" if they are not known."""
    return "" if spends is None else f"[{','.join(map(as_json, spends))}]"


def running_attempt_argument(claim: TurnClaim) -> str:
    """Return the state of the claim's model call, after its step and attempt, or "" without one."""
    attempt = claim.under_way
    if attempt.spends is None:
        return ""
    return f"{attempt.step}:{attempt.attempt} {spends_json(attempt.spends())}"


def plan_json(plan: Sequence[PlannedCall]) -> str:
    """Return the argument `calls`, a JSON array in the model's order."""
    calls: list[dict[str, Any]] = []
    for call in plan:
        fields: dict[str, Any] = {
            "id": call.id,
            "tool": call.tool,
            "effect": call.effect.value,
            "wave": call.wave,
            "spec": call.arguments_json,
            "hash": call.args_hash,
            "fp": call.fingerprint,
            "cap_ms": call.cap_ms,
            "lanes": json.dumps(call.lanes),
            "denied": call.denied,
            "message": call.message_json,
        }
        if call.idempotent:
            fields["again"] = "1"
        if call.repairs:
            fields["repairs"] = call.repairs
        if call.ask is not None:
            fields |= {"ask_ms": int(call.ask.timeout_s * 1000), "ask_reason": call.ask.reason}
        if call.client is not None:
            fields |= {
                "client_ms": int(call.client.timeout_s * 1000),
                "client_args": call.client.arguments_json,
                "client_said": call.client.arguments_json[:MAX_CLIENT_ARGUMENT_CHARS],
            }
        calls.append(fields)
    return json.dumps(calls)


def hold_ms(hold: HoldSpec) -> int:
    """Return the duration of a hold in ms."""
    return int(hold.timeout_s * 1000)


def readiness_argument(word: HoldSpec | str) -> str:
    """Return the readiness argument of scripts: `ready`, a hold as JSON with its id, or ""."""
    if not isinstance(word, HoldSpec):
        return word
    return json.dumps({"id": word.id, "timeout_ms": hold_ms(word), "policy": word.on_timeout, "reason": word.reason})


def readiness_at_submit(readiness: bool | None, key: str) -> HoldSpec | str:
    """Return the readiness of a submit with this key."""
    if readiness is None:
        return ""
    return "ready" if readiness else HoldSpec(id=readiness_hold_id(key), reason="it was submitted as not ready")


def restored_state_json(kept: RestoredState) -> str:
    """Return the argument `kept`, or "" if SQL kept nothing."""
    if not kept.brakes and not kept.inputs:
        return ""
    brakes = [
        {
            "id": brake.id,
            "kind": brake.kind,
            "taken": brake.turn_id is not None,
            "timeout_ms": int(brake.timeout_s * 1000),
            "left_ms": int(brake.remaining_s * 1000),
            "policy": brake.on_timeout,
            "reason": brake.reason,
        }
        for brake in kept.brakes
    ]
    inputs = [{"id": item.client_message_id, "item": as_json(item)} for item in kept.inputs]
    return json.dumps({"brakes": brakes, "inputs": inputs})


def rows_json(rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows as a JSON array of JSON texts. Returns "" for no rows."""
    return json.dumps([json.dumps(row) for row in rows]) if rows else ""


def edited_call_json(edited: EditedCall | None) -> str:
    """Return the argument `edit`: the parts of a planned call that a person replaced."""
    if edited is None:
        return ""
    return json.dumps(
        {
            "spec": edited.arguments_json,
            "hash": edited.args_hash,
            "fp": edited.fingerprint,
            "lanes": json.dumps(edited.lanes),
        }
    )


def child_spend_json(spend: Spend | None) -> str:
    """Return the argument `spent`: what a child turn used."""
    if spend is None:
        return ""
    return json.dumps(
        {
            "input_tokens": spend.input_tokens,
            "output_tokens": spend.output_tokens,
            "cache_read_tokens": spend.cache_read_tokens,
            "cache_creation_tokens": spend.cache_creation_tokens,
            # A text: a number would lose what it has beyond 14 digits.
            "cost": "" if spend.cost_usd is None else repr(spend.cost_usd),
            "spend": as_json(spend),
        }
    )


def result_event_json(result: TurnResult) -> str:
    """Return the data of a turn's final event."""
    return json.dumps(
        {"ending": result.ending.value, "stop_reason": result.stop_reason.value, "elapsed_ms": result.elapsed_ms}
    )


def trace_parent(request: TurnRequest) -> str:
    """Return the traceparent for the spans of a turn. Returns "" if its producer did not trace the request."""
    if request.traceparent is None:
        return ""
    return traceparent_of(turn_context(request.turn_id, request.traceparent, lambda trace_id: False))


def parent_holder(parent: ParentCall | None) -> str:
    """Return the call that started a turn, as `SESSION TURN CALL`. Returns "" for a turn of a user."""
    return "" if parent is None else f"{parent.session_id} {parent.turn_id} {parent.call_id}"


def money_json(keys: Keys, hold: MoneyHold | None) -> str:
    """Return the argument `money` of scripts. Returns "" if no budget applies."""
    if hold is None:
        return ""
    windows = [
        {
            "key": keys.money("w", window.name) + ":",
            "name": window.name,
            "trust": keys.money("trust", window.scope),
            "starts": window.starts,
            "room": 2 if hold.leaves_room and window.budget.at_cap == "finish" else 1,
        }
        for window in hold.windows
    ]
    return json.dumps({"usd": hold.usd, "blind": hold.is_blind, "windows": windows})


FORMS = {
    "EditedCall | None": "edited_call_json({})",
    "HoldSpec": "{}.id",
    "Mapping[str, JsonValue]": "json.dumps(dict({}))",
    "Mapping[str, int]": "json.dumps(dict({}))",
    "Message": "as_json({})",
    "Message | None": "json_or_none({})",
    "MoneyHold": "money_json(keys, {})",
    "MoneyHold | None": "money_json(keys, {})",
    "Progress": "as_json({})",
    "QueueTicket": "{}.holder",
    "QueueTicket | None": 'str({} or "")',
    "RestoredState": "restored_state_json({})",
    "Sequence[Mapping[str, str]]": "rows_json({})",
    "Sequence[Message]": "[*map(as_json, {})]",
    "Sequence[PlannedCall]": "plan_json({})",
    "Sequence[Spend]": "spends_json({})",
    "Sequence[Spend] | None": "spends_json({})",
    "Spend": "as_json({})",
    "Spend | None": "json_or_none({})",
    "StayRequest": "{}.queues",
    "ToolOutcome | None": '"" if {0} is None else {0}.model_dump_json()',
    "TurnInput": "as_json({})",
    "under_way: Sequence[Spend]": "spends_json({} or None)",
}

_SPEND = {
    "input": "{}.input_tokens",
    "output": "{}.output_tokens",
    "cache_read": "{}.cache_read_tokens",
    "cache_creation": "{}.cache_creation_tokens",
}
_IN_TURN = {"session_id": "{}.session_id", "turn_id": "{}.turn_id"}
_OF_CALL = {**_IN_TURN, "call": "{}.call_id"}

FIELDS: dict[str, dict[str, str]] = {
    "CallClaim": {**_OF_CALL, "owner": "{}.owner", "attempt": "{}.attempt"},
    "CallRef": {**_OF_CALL, "holder": "{}.holder"},
    "CallReport": {
        "status": "{}.status",
        "message": "as_json({}.message)",
        "detail": "{}.detail",
        "latency_ms": "{}.latency_ms",
        "retryable": "{}.retryable",
        "found": "rows_json({}.sources)",
        "block": "{}.block_tool",
        "notice": "json_or_none({}.notice)",
        "changed": "rows_json({}.changes)",
    },
    "FinalStepClaim": {
        **_IN_TURN,
        "fence": "{}.fence",
        "step": "{}.step",
        "chain_step": "{}.chain_step",
        "owner": '{}.owner if stay else ""',
    },
    "HoldSpec": {
        "timeout_ms": "hold_ms({})",
        "policy": "{}.on_timeout",
        "reason": "{}.reason",
    },
    "Limits": {
        "timeout_ms": "int({}.timeout_s * 1000)",
        "max_wait_ms": "(None if {0}.max_wait_s is None else int({0}.max_wait_s * 1000))",
        "max_steps": "{}.max_steps",
        "max_tool_calls": "{}.tool_calls",
        "max_reflections": "{}.max_reflections",
        "max_context_tokens": "{}.max_context_tokens",
        "max_total_tokens": "{}.max_total_tokens",
        "max_cost_usd": "{}.max_cost_usd",
    },
    "ModelRetry": {"kind": "{}.kind", "wait_ms": "round({}.wait_s * 1000)", "model": "{}.model"},
    "MoneyGrant": {
        "granted": "{}.granted_usd",
        "spent": "{}.spent_before",
        "is_full": "{}.is_all",
        "returned": "{}.returned_usd",
    },
    "QueueTicket": {"model": "{}.queue"},
    "ShareReport": {"model": "{}.model", "mark": "{}.mark"},
    "TokenCount": {"used": "{}.used", "estimated": "{}.estimated", "counted": "{}.counted"},
    "ServerTaskWatch": {
        "session_id": "{}.ref.session_id",
        "turn_id": "{}.ref.turn_id",
        "call": "{}.ref.call_id",
        "owner": "{}.owner",
        "attempt": "{}.attempt",
    },
    "Spend": {**_SPEND, "cost": "{}.cost_usd"},
    "Spend | None": {
        **{name: f"({source} if {{0}} else 0)".replace("{}", "{0}") for name, source in _SPEND.items()},
        "cost": "({0}.cost_usd if {0} else None)",
    },
    "StepStart": {
        "estimate": "{}.estimate",
        "tokens": "{}.most_tokens",
        "estimate_usd": "{}.max_usd",
        "shown": "{}.shown",
        "lost": "spends_json({}.lost)",
        "drain": "{}.drained",
        "ready": "readiness_argument({}.readiness)",
        "full": "{}.full",
        "money": "money_json(keys, {}.money)",
        "items": "[*map(as_json, {}.inputs)]",
    },
    "StayRequest": {"visit": "{}.text"},
    "TokenUsage": _SPEND,
    "TurnClaim": {
        **_IN_TURN,
        "owner": "{}.owner",
        "fence": "{}.fence",
        "TurnInput": "as_json({})",
        "under_way": "running_attempt_argument({})",
    },
    "TurnEnd": {
        **{
            name: f"{{}}.{name}" for name in ("ending", "stop_reason", "text", "open_status", "open_text", "first_step")
        },
        **{name: f"{{}}.{name}" for name in ("tail", "last", "diff", "n_changes")},
        **{name: f"json_or_none({{}}.{name})" for name in ("marker", "outcome", "spend")},
        **{name: f"({source} if {{0}}.spend else 0)".replace("{}", "{0}.spend") for name, source in _SPEND.items()},
        "failure": "{}.error",
        "item": "json_or_none({}.answer)",
        "lost": "spends_json({}.lost)",
        "cost": "({0}.spend.cost_usd if {0}.spend else None)",
    },
    "TurnInput": {"message_id": "{}.client_message_id"},
    "TurnRequest": {
        **_IN_TURN,
        "spec_json": "as_json({})",
        "turn_kind": "{}.kind",
        "isolated": '{}.kind == "review"',
        "brain": '{}.brain or ""',
        "parent": "parent_holder({}.parent)",
        "mode": "{}.on_busy",
        "priority": "{}.priority",
        "readiness_word": "readiness_argument(readiness_at_submit({0}.readiness, {0}.key))",
        "trace": "trace_parent({})",
    },
    "TurnResult": {**_IN_TURN, "body": "{}.model_dump_json()", "data": "result_event_json({})"},
    "TurnStart": {
        "prompt_hash": "{}.prompt_hash",
        "earlier": "{}.earlier",
        "items": "[*map(as_json, {}.messages)]",
    },
}

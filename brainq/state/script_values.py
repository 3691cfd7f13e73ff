"""Values as the scripts take them: what a model call used, and a plan of calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypedDict

from pydantic import BaseModel

from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.model import Spend
from brainq.contracts.people import HoldSpec, RestoredState, readiness_hold_id

MAX_CLIENT_ARGUMENT_CHARS = 500  # of a client call's arguments: kept for as long as its result may come late


def as_json(value: BaseModel) -> str:
    """As it is kept: without what it has by default."""
    return value.model_dump_json(exclude_defaults=True)


def json_or_none(value: BaseModel | None) -> str:
    """As it is kept; "" for nothing."""
    return as_json(value) if value is not None else ""


class UsageArguments(TypedDict):
    """What a model call used, as the arguments of these names."""

    input: int
    output: int
    cache_read: int
    cache_creation: int
    cost: float | None
    spend: str


def usage_arguments(spend: Spend | None) -> UsageArguments:
    """Zeros, None and "" for nothing."""
    if spend is None:
        return {"input": 0, "output": 0, "cache_read": 0, "cache_creation": 0, "cost": None, "spend": ""}
    return {
        "input": spend.input_tokens,
        "output": spend.output_tokens,
        "cache_read": spend.cache_read_tokens,
        "cache_creation": spend.cache_creation_tokens,
        "cost": spend.cost_usd,
        "spend": as_json(spend),
    }


def spends_json(spends: Sequence[Spend] | None) -> str:
    """Spends as a JSON array; "" where they are not known."""
    return "" if spends is None else f"[{','.join(map(as_json, spends))}]"


def running_attempt_argument(claim: TurnClaim) -> str:
    """What the claim's model call has come to, after its step and attempt; "" where no model is asked."""
    attempt = claim.under_way
    if attempt.spends is None:
        return ""
    return f"{attempt.step}:{attempt.attempt} {spends_json(attempt.spends())}"


def plan_json(plan: Sequence[PlannedCall]) -> str:
    """The argument `calls`: a JSON array in the model's order."""
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
    """How long a hold lasts, in ms."""
    return int(hold.timeout_s * 1000)


def readiness_argument(word: HoldSpec | str) -> str:
    """A word about readiness as scripts read it: `ready`, a hold as JSON with its id, or "" for none."""
    if not isinstance(word, HoldSpec):
        return word
    return json.dumps({"id": word.id, "timeout_ms": hold_ms(word), "policy": word.on_timeout, "reason": word.reason})


def readiness_at_submit(readiness: bool | None, key: str) -> HoldSpec | str:
    """What a submit with this key says of its turn's readiness."""
    if readiness is None:
        return ""
    return "ready" if readiness else HoldSpec(id=readiness_hold_id(key), reason="it was submitted as not ready")


def restored_state_json(kept: RestoredState) -> str:
    """The argument `kept`: "" where SQL kept nothing."""
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

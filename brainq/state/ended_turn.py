"""An ended turn as the finalizer's steps see it, read from Redis by plain commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from brainq.contracts.status import ENDS_OF_A_REPLY, Ending, StopReason
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import Spend
from brainq.contracts.view import EndedTurn
from brainq.state.connection import Command, as_mapping
from brainq.state.turn_view import opening_of, opening_reads, usage_of
from brainq.tools.opening import context_hash, opened_pack

OPENING_CALLS = "c0-"
PROBLEM = "problem:"  # begins the fields that count replies on which the turn could not act


def ended_reads(turn_key: str) -> list[Command]:
    """The commands whose replies `ended_turn` reads."""
    return [
        ("HGETALL", turn_key),
        ("HGETALL", turn_key + ":budget"),
        ("GET", turn_key + ":spec"),
        ("LRANGE", turn_key + ":sources", 0, -1),
        ("HGETALL", turn_key + ":trace"),
        ("LRANGE", turn_key + ":spends", 0, -1),
        *opening_reads(turn_key),
    ]


def ended_turn(found: Sequence[Any], complete: Callable[[TurnRequest], TurnRequest]) -> EndedTurn | None:
    """The turn that these replies tell of; None for one that has not ended, or that Redis does not know.

    `complete` adds to its request what the brain says where it says nothing.
    """
    turn, budget, spec, sources, trace, spends, *opening = found
    turn, budget, trace = as_mapping(turn), as_mapping(budget), as_mapping(trace)
    if not turn.get("ending") or not spec:
        return None
    tools = {field.split(":")[0]: tool for field, tool in trace.items() if field.endswith(":tool")}
    # What was loaded before the first step is not a tool use of the model's.
    ran = [
        tool
        for call, tool in tools.items()
        if f"{call}:started_at" in trace and not call.startswith(OPENING_CALLS)
    ]
    brought = opening_of(opening)
    created = int(turn["created_at"])
    started = int(turn.get("active_at") or created)
    return EndedTurn(
        request=complete(TurnRequest.model_validate_json(spec)),
        ending=Ending(turn["ending"]),
        stop_reason=StopReason(turn["stop_reason"]),
        text=turn.get("text", ""),
        error=turn.get("error", ""),
        steps=int(turn.get("step") or 0) + (turn.get("stop_reason") in ENDS_OF_A_REPLY),
        tool_calls=int(budget.get("tool_calls_used") or 0),
        tools=tuple(dict.fromkeys(ran)),
        usage=usage_of(budget),
        cost_usd=float(budget.get("cost_usd") or 0),
        cost_known="cost_usd" in budget,
        sources=tuple(json.loads(source) for source in sources),
        context_hash=context_hash(brought),
        prompt_hash=turn.get("prompt_hash", ""),
        turn_number=int(turn.get("number") or 0),
        elapsed_ms=int(turn["closing_at"]) - started,
        failing_error=turn.get("fin_error", "") if int(turn.get("fin_failing_since") or 0) else "",
        problems={
            field.removeprefix(PROBLEM): int(count)
            for field, count in turn.items()
            if field.startswith(PROBLEM)
        },
        context_full=int(turn.get("context_full") or 0),
        spends=tuple(Spend.model_validate_json(spend) for spend in spends),
        opening_failed={
            tool: trace.get(f"{call}:status", "")
            for call, tool in tools.items()
            if call.startswith(OPENING_CALLS) and trace.get(f"{call}:status") != "completed"
        },
        context_pack_json=opened_pack(brought),
        last_agent_message=turn.get("last_agent_message"),
        diff=turn.get("diff"),
        parked_ms=int(turn.get("parked_ms") or 0),
        created_at_ms=int(turn["created_at"]),
        ended_at_ms=int(turn["closing_at"]),
        wait_ms=int(turn.get("active_at") or turn["closing_at"]) - created,
    )

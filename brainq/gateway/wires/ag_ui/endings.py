"""How a run of AG-UI ends: with its turn, with requests to the client, or cut off. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TokenUsage,
)

from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat.fold import ApprovalRequested, ClientCallRequested

DECISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "description": "Arguments in place of the model's, all of them."},
        "reason": {"type": "string", "description": "Why not; the model reads it."},
    },
    "required": ["approved"],
}
"""The schema of an answer to an approval."""


def interrupt_event(
    thread_id: str, run_id: str, waiting: Mapping[str, ApprovalRequested | ClientCallRequested]
) -> BaseEvent:
    """The run's turn waits for its reader: for approvals, or for results of the client's own calls."""
    interrupts = [_interrupt(ask) for ask in waiting.values() if isinstance(ask, ApprovalRequested)]
    outcome = (
        RunFinishedInterruptOutcome(interrupts=interrupts)
        if interrupts
        else RunFinishedSuccessOutcome(pending_tool_call_ids=list(waiting))
    )
    return RunFinishedEvent(thread_id=thread_id, run_id=run_id, outcome=outcome)


def cut_events(why: str) -> list[BaseEvent]:
    """Ends a run whose turn goes on: the client reconnects."""
    return [RunErrorEvent(message=why, code="come_again")]


def end_event(thread_id: str, run_id: str, result: TurnResult) -> BaseEvent:
    """The run's turn is over."""
    usage = _usage(result)
    if result.ending is Ending.FAILED or result.stop_reason is StopReason.INVALID_OUTPUT:
        return RunErrorEvent(message=result.error or "the turn failed", code=result.stop_reason.value, usage=usage)
    outcome = (
        RunFinishedCancelledOutcome()
        if result.ending is Ending.CANCELLED
        else RunFinishedSuccessOutcome(pending_tool_call_ids=[])
    )
    return RunFinishedEvent(
        thread_id=thread_id,
        run_id=run_id,
        outcome=outcome,
        usage=usage,
        result=None if result.ending is Ending.CANCELLED else _render_result(result),
    )


def _render_result(result: TurnResult) -> dict[str, Any]:
    return {
        "turnId": result.turn_id,
        "text": result.text,
        "ending": result.ending.value,
        "stopReason": result.stop_reason.value,
        "costUsd": result.cost_usd,
        "steps": result.steps,
        "toolCalls": result.tool_calls,
    }


def _usage(result: TurnResult) -> list[TokenUsage]:
    """One entry a model."""
    models = list(dict.fromkeys(spend.model for spend in result.spends))
    return [
        TokenUsage(
            model=model,
            input_tokens=sum(spend.input_tokens for spend in spends),
            output_tokens=sum(spend.output_tokens for spend in spends),
            total_tokens=sum(spend.input_tokens + spend.output_tokens for spend in spends),
            cached_input_tokens=sum(spend.cache_read_tokens for spend in spends),
            cache_write_input_tokens=sum(spend.cache_creation_tokens for spend in spends),
        )
        for model in models
        for spends in [[spend for spend in result.spends if spend.model == model]]
    ]


def _interrupt(ask: ApprovalRequested) -> Interrupt:
    expires = datetime.fromtimestamp(ask.expires_at_ms / 1000, UTC)
    return Interrupt(
        id=ask.id,
        reason="tool_call",
        message=ask.reason or f"{ask.tool} needs an approval",
        tool_call_id=ask.id,
        response_schema=DECISION_SCHEMA,
        expires_at=expires.isoformat(timespec="milliseconds"),
    )

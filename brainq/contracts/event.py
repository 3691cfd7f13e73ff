"""Events of a turn: one Redis Stream, numbered 1, 2, 3 ... without gaps."""

from __future__ import annotations

from enum import StrEnum

from pydantic import JsonValue

from brainq.contracts.base import Wire


class EventKind(StrEnum):
    """What an event tells. Behind each: the fields of its `data`."""

    TURN_QUEUED = "turn.queued"
    TURN_ACTIVE = "turn.active"
    TURN_OPENING = "turn.opening"  # plan (call, tool, effect of each): memory and the context pack are read
    STEP_STARTED = "step.started"  # step, attempt: a higher attempt replaces the text of the lower
    STEP_RETRIED = (
        "step.retried"  # step, attempt, kind, wait_ms: the model failed and is asked again after the wait
    )
    TEXT_DELTA = "text.delta"  # step, attempt, text
    # step, calls, plan (call, tool, effect of each), input_tokens, output_tokens; problem, where the reply could not be
    # acted on: length, filtered, broken or output
    STEP_ENDED = "step.ended"
    CALL_WAITING = "call.waiting"  # call: for its lanes
    CALL_DISPATCHED = "call.dispatched"  # call, attempt
    CALL_RUNNING = "call.running"  # call, tool, attempt
    CALL_PARKED = "call.parked"  # call, why: approval, hold, outside or child
    CALL_ENDED = "call.ended"  # call, tool, status, latency_ms, detail
    APPROVAL_REQUESTED = "approval.requested"  # call, tool, effect, reason, expires_in_ms
    APPROVAL_DECIDED = "approval.decided"  # call, decision (approved, denied, expired), edited
    HOLD_PLACED = "hold.placed"  # hold, reason, kind: hold or readiness
    HOLD_RELEASED = "hold.released"  # hold
    INPUT_ACCEPTED = "input.accepted"  # input
    INPUT_CONSUMED = "input.consumed"  # input, step
    INPUT_BOUNCED = "input.bounced"  # input
    TURN_PARKED = "turn.parked"  # awaits: people or outside; the deadline stands still
    TURN_RESUMED = "turn.resumed"  # parked_ms
    TURN_CANCELLING = "turn.cancelling"  # a cancel was asked for
    BUDGET = "budget"  # spent: steps, tokens or cost
    REFLECTION = "reflection"  # step, stub: why there was none
    COMPACTION = "compaction"  # dropped, method, tokens_before, tokens_after
    NOTICE = "notice"  # context_full, step: how much of the context a step fills, in per cent, from 70 on; once a turn
    TURN_DIFF = "turn.diff"  # diff: one unified diff of all changes; once, before the ending
    TURN_CLOSING = "turn.closing"  # ending, stop_reason
    RESULT = "result"  # the one final event; after it nothing comes


class TurnEvent(Wire):
    """One event. `data` never holds prompts, arguments or results; text deltas are the model's words, and
    a turn's diff is what its tools changed."""

    seq: int
    kind: EventKind
    at_ms: int
    data: dict[str, JsonValue]

    @property
    def is_final(self) -> bool:
        return self.kind is EventKind.RESULT

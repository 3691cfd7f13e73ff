"""What can be seen of a turn at one moment."""

from __future__ import annotations

from brainq.contracts.base import Wire
from brainq.contracts.queue_place import QueuePlace
from brainq.contracts.status import Awaits, Ending, StopReason, TurnState
from brainq.contracts.trace import ToolTraceEntry


class BudgetSnapshot(Wire):
    """What a turn may use and has used, at one moment."""

    remaining_s: float
    expired: bool
    steps_used: int
    steps_max: int
    tool_calls_used: int
    tool_calls_max: int
    reflections_used: int
    reflections_max: int
    max_context_tokens: int
    tokens_used: int
    tokens_max: int | None
    cost_usd: float
    cost_max_usd: float | None


class TurnSnapshot(Wire):
    """A turn as Redis knows it.

    awaits      who is to act
    waiting_behind   of a queued turn: how many of its session are before it, the live one included; where it awaits
                     room or its brain, how many of its tenant's sessions are before its own, and how many turns of
                     its own
    queue       of a queued turn: why it has not begun
    parked_ms   how long it has waited for people and outside results so far
    brain       the one that the turn names; None in a deployment of one
    waits_for   the limit of its model that it waits for, such as `openai:gpt-5: 60 requests a minute`, and for how
                long still (`waits_ms`)
    text        the turn's answer; while it lives the newest text of its model, as far as readers were told of it
    """

    turn_id: str
    session_id: str
    state: TurnState
    awaits: Awaits
    step: int
    attempt: int
    fence: int
    owner: str
    lease_remaining_ms: int
    ending: Ending | None
    stop_reason: StopReason | None
    cancel_requested: bool
    budget: BudgetSnapshot
    trace: tuple[ToolTraceEntry, ...]
    finalizer_step: str = ""
    finalizer_tries: int = 0
    text: str = ""
    kind: str = "chat"
    parked_ms: int = 0
    waiting_behind: int = 0
    queue: QueuePlace | None = None
    created_at_ms: int = 0
    now_ms: int = 0
    brain: str | None = None
    waits_for: str = ""
    waits_ms: int = 0

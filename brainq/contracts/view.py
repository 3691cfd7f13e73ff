"""All that is known of a turn at one moment: what decisions are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason, TurnState
from brainq.contracts.turn import TurnRequest
from brainq.contracts.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class TurnView:
    """A live turn as its owner sees it. Instants are Redis time in ms.

    lost_attempts   attempts at a step whose worker died or was cut off
    succeeded       fingerprints of calls that succeeded -> the write epoch they did so in
    steps_max       the budget's; a step that was begun (`thinking_step`) is already paid for
    """

    request: TurnRequest
    state: TurnState
    awaits: str
    now_ms: int
    deadline_ms: int
    created_at_ms: int
    active_at_ms: int
    step: int
    thinking_step: int
    steps_used: int
    steps_max: int
    lost_attempts: int
    cancel: bool
    cancel_reason: str
    begun: bool
    turn_number: int
    write_epoch: int
    succeeded: Mapping[str, int]
    blocked: frozenset[str]
    history: tuple[Message, ...]
    usage: TokenUsage
    cost_usd: float
    open_calls: bool
    lost_reason: str = ""

    @property
    def remaining_ms(self) -> int:
        return self.deadline_ms - self.now_ms


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn whose ending stands, as the finalizer sees it."""

    request: TurnRequest
    ending: Ending
    stop_reason: StopReason
    text: str
    error: str
    steps: int
    tool_calls: int
    tools: tuple[str, ...]
    usage: TokenUsage
    cost_usd: float
    cost_known: bool
    sources: tuple[Mapping[str, str], ...]
    context_hash: str
    turn_number: int
    elapsed_ms: int
    failing_error: str
    notes: tuple[str, ...] = ()

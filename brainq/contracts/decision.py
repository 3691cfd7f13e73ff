"""The record of what a turn decided, kept for audits and evaluation."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

from brainq.contracts.base import Wire
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.usage import TokenUsage

DECISION_KEY = "support.chat.turn"
Strategy = Literal["direct_answer", "web_augmented", "retrieval_augmented", "tool_assisted"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class RuntimeDecisionRecord(Wire):
    """One row a turn, with key `support.chat.turn`.

    turn_number    which of its session's turns it was, from 1
    strategy       how the turn came to its answer, by the tools that ran; see docs/after-the-answer.md
    tools          names of those that ran, in the order of their first call
    context_hash   of memory and context pack that the answer stood on, 16 hex digits; "" where there was neither
    prompt_hash    of the system prompt as rendered for the turn; "" for a turn that never began
    """

    key: str = DECISION_KEY
    turn_id: str
    session_id: str
    turn_number: int
    strategy: Strategy
    tools: tuple[str, ...]
    context_hash: str
    prompt_hash: str = ""
    elapsed_ms: int
    usage: TokenUsage
    ending: Ending
    stop_reason: StopReason
    prompt_id: str | None = None
    prompt_version: str | None = None
    prompt_tags: tuple[str, ...] = ()


class DecisionStore(Protocol):
    """Where a brain's decision records are kept, in place of SQL: `Brain(decisions=...)`. Any process may call it."""

    def write(self, record: RuntimeDecisionRecord, step_key: str) -> None:
        """Keep the record of a turn, in a finalizer worker, within a minute. After a crash it may be called again with
        the same `step_key` and record. What it raises is tried again, as any finalizer step."""
        ...

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        """The record of a turn; None where there is none."""
        ...

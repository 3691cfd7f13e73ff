"""The record of what a turn decided, kept for audits and evaluation."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.usage import TokenUsage

DECISION_KEY = "support.chat.turn"
Strategy = Literal["direct_answer", "web_augmented", "retrieval_augmented", "tool_assisted"]


class RuntimeDecisionRecord(Wire):
    """One row a turn, with key `support.chat.turn`.

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

"""TurnPreparer: the messages of one model call, in a fixed order.

    system prompt · runtime metadata · session history · skill context · the user's message · this turn so far

What does not fit `max_context_tokens` is left out from the oldest turn on, a whole turn at a time, so that no
call is parted from its result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from brainq.contracts.message import Message
from brainq.contracts.turn import TurnRequest
from brainq.providers.estimate import estimate_messages


@dataclass(frozen=True, slots=True)
class TurnPreparation:
    """What one model call is asked with.

    render_hash   sha256 of the system prompt as rendered for this turn, 16 hex digits
    estimate      tokens of the messages, estimated
    left_out      messages of older turns that did not fit
    """

    messages: tuple[Message, ...]
    render_hash: str
    estimate: int
    left_out: int


def render_hash(system_prompt: str) -> str:
    return hashlib.sha256(system_prompt.encode("utf-8", "replace")).hexdigest()[:16]


class TurnPreparer:
    """Puts a model call together. Pure, given the date."""

    def prepare(
        self,
        request: TurnRequest,
        history: Sequence[Message],
        *,
        system_prompt: str,
        provider: str,
        model: str,
        today: datetime,
        max_context_tokens: int,
    ) -> TurnPreparation:
        begin = next(
            (i for i, message in enumerate(history) if message.turn == request.turn_id), len(history)
        )
        before, own = history[:begin], history[begin:]
        head: list[Message] = []
        if system_prompt:
            head.append(Message(role="system", content=system_prompt))
        head.append(Message(role="system", content=_metadata(request, provider, model, today)))
        skill = (
            [Message(role="system", content=f"Skill context:\n{request.skill_context}")]
            if request.skill_context
            else []
        )
        fixed = estimate_messages([*head, *skill, *own])
        kept = _newest_turns(before, max_context_tokens - fixed)
        messages = (*head, *kept, *skill, *own)
        return TurnPreparation(
            messages=messages,
            render_hash=render_hash(system_prompt),
            estimate=estimate_messages(messages),
            left_out=len(before) - len(kept),
        )


def _metadata(request: TurnRequest, provider: str, model: str, today: datetime) -> str:
    lines = [f"Session: {request.session_id}", f"Model: {provider}/{model}", f"Date: {today:%A, %d %B %Y}"]
    if request.cwd:
        lines.append(f"Working directory: {request.cwd}")
    return "\n".join(lines)


def _newest_turns(history: Sequence[Message], budget: int) -> Sequence[Message]:
    """The newest whole turns that fit. Messages at the very start whose turn was trimmed away are dropped."""
    starts = [
        i
        for i, message in enumerate(history)
        if message.role == "user" and (i == 0 or history[i - 1].turn != message.turn)
    ]
    cut, used = len(history), 0
    for start in reversed(starts):
        used += estimate_messages(history[start:cut])
        if used > budget:
            break
        cut = start
    return history[cut:]

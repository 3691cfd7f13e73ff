"""What of a message's reasoning is sent back."""

from __future__ import annotations

from brainq.contracts.message import Message
from brainq.contracts.reasoning import Reasoning

EARLIER = "earlier reasoning"
"""What a request is sent without, once, where its service does not take it back: it was signed for another account,
or the conversation before it has changed."""


def replayed(message: Message, wire: str, model: str | None) -> tuple[Reasoning, ...]:
    """What `model`, asked on `wire`, thought for this message; nothing of another's. None: nothing goes back."""
    if model is None or not message.reasoning:
        return ()
    return tuple(thought for thought in message.reasoning if thought.wire == wire and thought.model == model)

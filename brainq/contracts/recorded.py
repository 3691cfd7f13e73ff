"""An ended turn as the finalizer's parts see it: extractors, learners, judges."""

from __future__ import annotations

from brainq.contracts.base import Wire
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import Citation


class RecordedTurn(Wire):
    """A turn with its whole conversation.

    messages            the turn's own messages in order, tool calls and results included, the user's first
    context_pack_json   the pack the turn began with, merged with the preferences found in memory
    tools               names of the tools the model used, in the order of their first use
    system_prompt       as the turn had it; "" where it cannot be told any more
    history             what was said in the session's last turns before this one, oldest first
    step_key            the same for every try of the finalizer step that asks: an idempotency key
    traceparent         of the turn's request
    """

    turn_id: str
    session_id: str
    user_message: str
    text: str
    ending: Ending
    stop_reason: StopReason
    messages: tuple[Message, ...] = ()
    context_pack_json: str | None = None
    tools: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    turn_number: int = 1
    system_prompt: str = ""
    history: tuple[Message, ...] = ()
    step_key: str = ""
    traceparent: str | None = None

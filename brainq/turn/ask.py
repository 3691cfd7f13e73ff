"""Asking the model: one attempt at a step, its text told to readers as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from brainq.contracts.model import ModelReply, ModelRequest, ModelRetry
from brainq.errors import ProviderError
from brainq.providers.base import Provider
from brainq.providers.watched import watched

DELTA_EVERY_S = 0.05  # at most about 20 text events a second a turn


@dataclass(slots=True)
class TextTail:
    """Groups text deltas. What is left when the reply is whole goes out with the step's commit."""

    tell: Callable[[str], bool]
    tell_retry: Callable[[ModelRetry], object] | None = None
    started: float = field(default_factory=time.monotonic)
    _parts: list[str] = field(default_factory=list[str])

    def add(self, text: str) -> bool:
        """False when the turn is no longer ours."""
        self._parts.append(text)
        now = time.monotonic()
        if now - self.started < DELTA_EVERY_S:
            return True
        self.started = now
        return self.tell(self.rest())

    def rest(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text


class TurnLost(Exception):
    """The turn went to another owner while the model was answering."""


def ask(
    provider: Provider,
    request: ModelRequest,
    tail: TextTail,
    lost: Callable[[], bool],
    on_chunk: Callable[[str], None] | None,
) -> ModelReply:
    """Stream one reply. Raises ProviderError, or TurnLost when nobody wants the answer any more."""
    reply: ModelReply | None = None
    for chunk in watched(provider, request):
        if chunk.text:
            if lost() or not tail.add(chunk.text):
                raise TurnLost
            if on_chunk is not None:
                on_chunk(chunk.text)
        if chunk.retry is not None and tail.tell_retry is not None:
            tail.tell_retry(chunk.retry)
        if chunk.reply is not None:
            reply = chunk.reply
    if reply is None:
        raise ProviderError(
            f"provider {provider.name!r} ended its stream without a reply", kind="stream", retryable=True
        )
    return reply

"""Asking the model: one attempt at a step, its text told to readers as it comes.

What comes out of the provider is the model's; what telling readers brings is ours, and never the model's failure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, ModelRetry
from brainq.errors import ProviderError
from brainq.observe.logs import logger
from brainq.providers.base import Provider
from brainq.providers.places import chunks_of
from brainq.turn.text_tail import TextTail

log = logger("brainq.turn")


class TurnLost(Exception):
    """The turn went to another owner while the model was answering."""


Ask = Callable[[Provider, ModelRequest], Generator[ModelChunk]]
"""The chunks of one attempt, the last of which has the reply. Raises ProviderError alone."""


def stream_reply(
    ask: Ask,
    provider: Provider,
    request: ModelRequest,
    tail: TextTail,
    tell_retry: Callable[[ModelRetry], None],
    lost: Callable[[], bool],
    on_chunk: Callable[[str], None] | None,
) -> ModelReply:
    """Stream one reply. Raises ProviderError, or TurnLost when nobody wants the answer any more."""
    reply: ModelReply | None = None
    with closing(ask(provider, request)) as chunks:
        for chunk in chunks:
            if chunk.reasoning and (lost() or not tail.add(chunk.reasoning, EventKind.REASONING_DELTA)):
                raise TurnLost
            if chunk.text:
                if lost() or not tail.add(chunk.text):
                    raise TurnLost
                if on_chunk is not None:
                    on_chunk(chunk.text)
            if chunk.retry is not None:
                tell_retry(chunk.retry)
            if chunk.reply is not None:
                reply = chunk.reply
    assert reply is not None
    return reply


def of_the_model(provider: Provider, request: ModelRequest) -> Generator[ModelChunk]:
    """The provider's chunks. Whatever it raises becomes a ProviderError; kind `raised` for what it should not raise."""
    replied = False
    try:
        for chunk in chunks_of(provider, request):
            if not isinstance(chunk, ModelChunk):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"generate_stream must yield ModelChunk, got {type(chunk).__name__}")
            replied = replied or chunk.reply is not None
            yield chunk
    except ProviderError:
        raise
    except Exception as failure:
        log.error("provider raised", failure=failure, turn_id=request.turn_id, step=request.step)
        raise ProviderError(
            f"provider {provider.name!r} raised {type(failure).__name__}", kind="raised", retryable=False
        ) from failure
    if not replied:
        raise ProviderError(
            f"provider {provider.name!r} ended its stream without a reply", kind="stream", retryable=True
        )

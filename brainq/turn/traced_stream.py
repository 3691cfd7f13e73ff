"""A model's stream, with a span."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from brainq.contracts.model import ModelChunk, ModelRequest
from brainq.observe.model_spans import chat_span
from brainq.providers.base import Provider
from brainq.turn.stream import Ask, TurnLost


def traced_stream(ask: Ask) -> Ask:
    """As `ask`, each attempt in a span, which is open while its chunks are worked on."""

    def asked(provider: Provider, request: ModelRequest) -> Generator[ModelChunk]:
        chat = chat_span(provider, request)
        with chat.span, closing(ask(provider, request)) as chunks:
            for chunk in chunks:
                if chunk.text:
                    chat.chunk()
                if chunk.retry is not None:
                    chat.retry(chunk.retry)
                if chunk.reply is not None:
                    chat.reply(chunk.reply)
                try:
                    yield chunk
                except GeneratorExit:  # nobody reads on
                    if chunk.reply is None:
                        chat.span.fail(TurnLost.__name__)
                    raise

    return asked

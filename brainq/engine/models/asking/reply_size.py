"""The size limit of a model's reply in bytes. A service that never ends a reply would fill memory and Redis.

The limit counts the bytes of the text, the shown reasoning, and the names and arguments of calls. One event of a
stream, or an answer that is not streamed, may be a few times larger: JSON needs up to six bytes for a character, and
some services repeat the whole reply in their last event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelChunk, ModelReply
from brainq.errors import ProviderError

MAX_REPLY_BYTES = 4_000_000
"""About eight times the longest reply on offer: 128,000 tokens (GPT-5, model page) of about four characters each."""
REPLIES_A_TURN = 4  # replies of the largest size, with the results of their calls, are the most that one turn may hold
CARRIED = 4  # the factor for one event, or for an answer that is not streamed
STREAMED = 32  # the factor for all events of a stream: one for each token takes some 400 bytes
FRAME_BYTES = 4_000_000  # added for the parts of the request that a service repeats


class ReplyTooLarge(ProviderError):
    """The error of a reply, or of its envelope, that grew too large. It was not read to its end, and is not used."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the model's reply was cut off: it, or the answer that contains it, grew larger than {most:,} bytes "
            "(BRAINQ_MAX_REPLY_BYTES)",
            kind="too_large",
            retryable=False,
        )


def max_carried(most: int) -> int:
    """Return the maximum bytes of one event, or of one answer that is not streamed, for replies of `most` bytes."""
    return CARRIED * most + FRAME_BYTES


def max_streamed(most: int) -> int:
    """Return the maximum bytes of all events of a stream together, for replies of `most` bytes."""
    return STREAMED * most + FRAME_BYTES


def as_chunk(reply: ModelReply) -> ModelChunk:
    """Return a whole reply as a single chunk, to count it."""
    thought = "".join(one.text for one in reply.reasoning)
    return ModelChunk(text=reply.text, reasoning=thought, arguments="".join(map(_call_text, reply.calls)))


def reply_bytes(reply: ModelReply) -> int:
    """Return the bytes of a reply's text, reasoning and calls."""
    return text_bytes(reply.text) + _calls_bytes(reply.calls) + sum(text_bytes(one.text) for one in reply.reasoning)


def messages_bytes(messages: Iterable[Message]) -> int:
    """Return the bytes of the messages and calls of a conversation."""
    return sum(text_bytes(message.content) + _calls_bytes(message.calls) for message in messages)


def text_bytes(text: str) -> int:
    """Return the length of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _calls_bytes(calls: Iterable[ToolCall]) -> int:
    return sum(text_bytes(_call_text(call)) for call in calls)


def _call_text(call: ToolCall) -> str:
    return call.name + (call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments))


def bounded(pieces: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield the pieces of an answer. Raises ReplyTooLarge once they are more than `most` bytes together."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise ReplyTooLarge(most)
        yield piece

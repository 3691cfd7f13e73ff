"""Cutting tool results that do not fit: the last resort, for results the model has not read yet."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.message import Message
from brainq.text.estimate import estimate_text
from brainq.text.shorten import shortened_to_tokens

MIN_RESULT_TOKENS = 40  # of a result stay, however little room there is


def with_shorter_results(messages: Sequence[Message], save_tokens: int) -> tuple[Message, ...]:
    """The messages with their longest tool results cut to one length, so that about `save_tokens` are saved.

    Calls and results stay paired; what is cut says so in the text.
    """
    sizes = sorted(
        (estimate_text(message.content) for message in messages if message.role == "tool"), reverse=True
    )
    limit = _limit(sizes, save_tokens)
    return tuple(
        message.model_copy(update={"content": shortened_to_tokens(message.content, limit)})
        if message.role == "tool" and estimate_text(message.content) > limit
        else message
        for message in messages
    )


def _limit(sizes: Sequence[int], save: int) -> int:
    """The length to which everything longer is cut: `sizes` (longest first) then sum up to `save` less."""
    total = 0
    for count, size in enumerate(sizes, 1):
        total += size
        following = sizes[count] if count < len(sizes) else 0
        limit = (total - save) // count
        if limit >= following:
            return max(MIN_RESULT_TOKENS, limit)
    return MIN_RESULT_TOKENS

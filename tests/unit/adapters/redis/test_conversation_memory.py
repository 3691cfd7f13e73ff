"""Histories take no more memory than their bound, as Python holds them."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from brainq.adapters.redis.conversations import EMPTY_HISTORY, Conversations
from brainq.contracts.message import Message, ToolCall
from tests.support.stand_in import stand_in

BOUND = 300_000
HISTORIES = 120
ROWS = {"rows": [{"at": number, "name": f"n{number}"} for number in range(60)]}


def said(text: str) -> Message:
    return Message(role="user", content=text)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(said("plain " * 1_000), id="one byte a character"),
        pytest.param(said("字" * 6_000), id="two bytes a character"),
        pytest.param(said("plain " * 1_000 + "😀"), id="four bytes a character"),
        pytest.param(Message(role="assistant", calls=(ToolCall(id="c0-0", name="put", arguments=ROWS),)), id="rows"),
    ],
)
def test_histories_take_no_more_than_their_bound(message: Message) -> None:
    """A character takes up to four bytes, and a short object of a call's arguments ten times its JSON."""
    item = message.model_dump_json(exclude_defaults=True).encode()
    histories = Conversations(stand_in(None), max_bytes=BOUND)
    histories.conversation("warm", EMPTY_HISTORY, "1", 0, [item.decode()])
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(HISTORIES):
            histories.conversation(f"h{number}", EMPTY_HISTORY, "1", 0, [item.decode()])
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert BOUND / 4 < held < BOUND * 1.2

"""Names of calls on the wire. A service refuses the whole request over one that no tool can have."""

from __future__ import annotations

import re

import pytest

from brainq.adapters.models.anthropic.wire import to_messages as to_anthropic
from brainq.adapters.models.openai.chat_wire import to_messages as to_openai
from brainq.contracts.message import Message, ToolCall

TAKEN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@pytest.mark.parametrize(
    ("made_up", "sent"),
    [
        ("count", "count"),
        ("", "unnamed"),
        ("functions.count apples", "functions_count_apples"),
        ("zähle", "z_hle"),
        ("count" * 40, ("count" * 40)[:64]),
    ],
)
def test_a_name_that_a_model_made_up_can_be_sent_back(made_up: str, sent: str) -> None:
    said = [
        Message(role="user", content="Count."),
        Message(role="assistant", calls=(ToolCall(id="c1-0", name=made_up, arguments={}),)),
        Message(role="tool", call_id="c1-0", name=made_up, content="There is no such tool."),
    ]
    _, anthropic = to_anthropic(said)

    assert TAKEN.fullmatch(sent)
    assert to_openai(said)[1]["tool_calls"][0]["function"]["name"] == sent
    assert anthropic[1]["content"][0]["name"] == sent

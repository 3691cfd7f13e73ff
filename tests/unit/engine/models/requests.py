"""Requests and messages that the provider tests build on."""

from __future__ import annotations

from typing import Any

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelRequest
from brainq.contracts.tool import ToolSpec

WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def system(text: str) -> Message:
    return Message(role="system", content=text)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    return Message(role="assistant", content=text, calls=calls)


def call(call_id: str, arguments: dict[str, Any] | str, name: str = "weather") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    return Message(role="tool", content=text, call_id=call_id, name="weather", is_error=is_error)


def request(*messages: Message, **changes: Any) -> ModelRequest:
    fields: dict[str, Any] = {"model": "m", "messages": messages or (user("hi"),), "timeout_s": 60.0, "step": 1}
    return ModelRequest(**(fields | changes))

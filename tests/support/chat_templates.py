"""The rules of chat templates of open models for a request. Pure, with the messages that servers pass on.

Each rule raises the error of such a template. All of them check `tool` results and their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Messages = Sequence[dict[str, Any]]
Template = Callable[[Messages], None]


class TemplateError(Exception):
    """The error that `raise_exception` of a template raises."""


def qwen(messages: Messages) -> None:
    """Require at most one system message, at the beginning, and a user message."""
    _check_calls(messages)
    if any(message["role"] == "system" for message in messages[1:]):
        raise TemplateError("System message must be at the beginning.")
    if all(message["role"] != "user" for message in messages):
        raise TemplateError("No user query found in messages.")


def mistral(messages: Messages) -> None:
    """Require users and assistant to alternate after an optional system message, and call ids of nine letters and
    digits."""
    _check_calls(messages)
    said = messages[1:] if messages[0]["role"] == "system" else messages
    _check_turns(said, "After the optional system message, conversation roles must alternate user/assistant/...")
    for message in messages:
        ids = [call["id"] for call in message.get("tool_calls", ())]
        ids += [message["tool_call_id"]] if message["role"] == "tool" else []
        if not all(len(found) == 9 and found.isalnum() for found in ids):
            raise TemplateError("Tool call IDs should be alphanumeric strings with length 9!")


def gemma(messages: Messages) -> None:
    """Require user and model to alternate, without a system message."""
    _check_calls(messages)
    if messages[0]["role"] == "system":
        raise TemplateError("System role not supported")
    _check_turns(messages, "Conversation roles must alternate user/assistant/user/assistant/...")


def _check_turns(messages: Messages, words: str) -> None:
    said = [message for message in messages if message["role"] != "tool" and not message.get("tool_calls")]
    for place, message in enumerate(said):
        if message["role"] not in ("user", "assistant"):
            raise TemplateError("Only user, assistant and tool roles are supported!")
        if (message["role"] == "user") != (place % 2 == 0):
            raise TemplateError(words)
        if not message["content"].strip():
            raise TemplateError("Messages may not be empty.")


def _check_calls(messages: Messages) -> None:
    """Require the results of calls directly after the calls, in order, and nowhere else."""
    wanted: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not wanted or message["tool_call_id"] != wanted.pop(0):
                raise TemplateError("Unexpected tool result.")
            continue
        if wanted:
            raise TemplateError("Not the same number of function calls and responses.")
        wanted = [call["id"] for call in message.get("tool_calls", ())]
    if wanted:
        raise TemplateError("Not the same number of function calls and responses.")

"""The messages a model sees. One shape for every provider; providers translate it to their wire."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.attachment import Attachment
from brainq.contracts.base import Wire
from brainq.contracts.reasoning import Reasoning


class ToolCall(Wire):
    """One call the model asked for.

    `id` is ours (`c<step>-<index>`), unique in the turn. `arguments` is the parsed object, or the raw text
    when it could not be parsed (the validation gate repairs or denies it).
    """

    id: str
    name: str
    arguments: dict[str, Any] | str
    provider_id: str = ""


class Message(Wire):
    """One entry of a conversation.

    role        what the entry is; `tool` answers the call named by `call_id`
    content     text; for `tool` the text the model reads as the call's result
    calls       for `assistant`: the calls of this reply, in the model's order
    turn, step  where it came from; empty and 0 for what a preparer adds
    attachments images and files, for `user` and `tool`
    reasoning   for `assistant`: what the model thought, in its order
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    is_error: bool = False
    turn: str = ""
    step: int = 0
    extra: dict[str, JsonValue] | None = None
    attachments: tuple[Attachment, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()

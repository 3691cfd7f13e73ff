"""Bodies that `useChat` sends, and their meaning: a question, the history before it, answers to calls. Pure."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from brainq.contracts.file import File
from brainq.contracts.ids import split_call_id
from brainq.contracts.tool import MAX_CLIENT_TOOLS
from brainq.gateway.edge.dependencies import ID
from brainq.gateway.rest.submission import ClientToolBody
from brainq.gateway.wires.chat.files import decode_file
from brainq.gateway.wires.chat.requests import ApprovalDecision, CallAnswer, ClientResult, Question

MAX_MESSAGES = 10_000


class CamelBody(BaseModel):
    """A part of the body. Unknown fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel, validate_by_name=False)


class PartApproval(CamelBody):
    """The page's approval of a call."""

    id: str = Field(max_length=200)
    approved: bool | None = None
    reason: str | None = None


class MessagePart(CamelBody):
    """A part of a message: its text, a file, or a tool's call by its state."""

    type: str
    text: str | None = None
    state: str | None = None
    approval: PartApproval | None = None
    tool_call_id: str | None = Field(default=None, max_length=200)
    provider_executed: bool | None = None
    output: JsonValue = None
    error_text: str | None = None
    url: str | None = None
    media_type: str | None = Field(default=None, max_length=200)
    filename: str | None = None


class UiMessage(CamelBody):
    """A message as the client holds it."""

    id: str = Field(max_length=500)
    role: Literal["system", "user", "assistant"]
    parts: list[MessagePart]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.type == "text" and part.text)

    def files(self, field: str) -> tuple[File, ...]:
        """Those of a user's. Raises InvalidInput."""
        return tuple(
            decode_file(f"{field}.parts[{at}].url", part.url, part.media_type, part.filename)
            for at, part in enumerate(self.parts)
            if part.type == "file" and self.role == "user"
        )


class ChatBody(CamelBody):
    """`id` is the chat's, and the session's; the last message is what is new.

    tools   tools that the page runs itself, in `onToolCall`
    brain   whose turn it is; left out: the default one's
    """

    id: str = Field(pattern=ID)
    messages: list[UiMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = Field(default=None, max_length=500)
    tools: list[ClientToolBody] = Field(default=[], max_length=MAX_CLIENT_TOOLS)
    brain: str | None = Field(default=None, pattern=ID)


def read_question(body: ChatBody, newest_turn: str | None) -> Question | None:
    """The last message where it is the user's; else None. Each request for another answer is a question of its own,
    by the session's newest turn."""
    last = body.messages[-1]
    if last.role != "user":
        return None
    again = f" again {body.message_id or newest_turn}" if body.trigger == "regenerate-message" else ""
    return Question(last.text, f"{last.id}{again}", last.files(f"messages[{len(body.messages) - 1}]"))


def read_chat_history(body: ChatBody) -> list[dict[str, Any]]:
    """The messages before the last one, as text and the user's files: a new session begins with them."""
    history: list[dict[str, Any]] = [
        {"role": message.role, "content": message.text, "attachments": message.files(f"messages[{at}]")}
        for at, message in enumerate(body.messages[:-1])
        if message.role != "system"
    ]
    return [message for message in history if message["content"].strip() or message["attachments"]]


def read_answers(message: UiMessage) -> list[CallAnswer]:
    """The page's answers to the calls of the message's last step."""
    steps = [at for at, part in enumerate(message.parts) if part.type == "step-start"]
    answers = (_read_answer(part) for part in message.parts[steps[-1] if steps else 0 :])
    return [answer for answer in answers if answer is not None]


def _read_answer(part: MessagePart) -> CallAnswer | None:
    if part.state == "approval-responded" and part.approval is not None:
        approval = part.approval
        split_call_id(approval.id)
        return ApprovalDecision(approval.id, bool(approval.approved), approval.reason or "")
    if part.tool_call_id is None or part.provider_executed:
        return None
    match part.state:
        case "output-available":
            return ClientResult(_check_call_id(part.tool_call_id), part.output)
        case "output-error":
            return ClientResult(_check_call_id(part.tool_call_id), error=part.error_text or "the page's tool failed")
        case _:
            return None


def _check_call_id(call_id: str) -> str:
    split_call_id(call_id)
    return call_id

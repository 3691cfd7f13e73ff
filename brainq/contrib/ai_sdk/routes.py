"""`/api/chat`: the routes for `useChat` of the AI SDK, and their bodies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import Field, JsonValue

from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.contracts.file import File
from brainq.contracts.ids import split_call_id
from brainq.contracts.tool import MAX_CLIENT_TOOLS
from brainq.contrib.ai_sdk.chunks import MessageWriter
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.access import RequestDep, current_request
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.edge.request import ID, TURN_ID, GatewayRequest, HttpRequest
from brainq.gateway.rest.bodies import AffectedTurn, ClientToolBody
from brainq.gateway.wires.chat import requests
from brainq.gateway.wires.chat.stream import FROM_START, StreamPosition, chat_stream, read_position

MAX_MESSAGES = 10_000
VERBS = {
    "POST /api/chat": Verb.SUBMIT,
    "GET /api/chat/{session_id}/stream": Verb.READ,
    "POST /api/chat/{session_id}/stop": Verb.STEER,
}
router = APIRouter(prefix="/api/chat", tags=["AI SDK"], dependencies=[Depends(current_request)])
ChatId = Annotated[str, Path(alias="session_id", pattern=ID, description="The chat's id.")]
TurnQuery = Annotated[
    str | None, Query(pattern=TURN_ID, description="The turn, which is the message's id; by default the live turn.")
]


class PartApproval(requests.CamelBody):
    """The page's decision about a call."""

    id: str = Field(max_length=200)
    approved: bool | None = None
    reason: str | None = None


class MessagePart(requests.CamelBody):
    """A part of a message: text, a file, or a tool call in some state."""

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


class UiMessage(requests.CamelBody):
    """A message of the client."""

    id: str = Field(max_length=500)
    role: Literal["system", "user", "assistant"]
    parts: list[MessagePart]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.type == "text" and part.text)

    def files(self, field: str) -> tuple[File, ...]:
        """Return the files of a user's message. Raises InvalidInput."""
        return tuple(
            requests.decode_file(f"{field}.parts[{at}].url", part.url, part.media_type, part.filename)
            for at, part in enumerate(self.parts)
            if part.type == "file" and self.role == "user"
        )


class ChatBody(requests.CamelBody):
    """A chat, whose last message is new. `id` is the id of both the chat and its session.

    tools   the tools that the page runs itself in `onToolCall`
    brain   the brain of the turn; by default the default brain
    """

    id: str = Field(pattern=ID)
    messages: list[UiMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = Field(default=None, max_length=500)
    tools: list[ClientToolBody] = Field(default=[], max_length=MAX_CLIENT_TOOLS)
    brain: str | None = Field(default=None, pattern=ID)


def read_question(body: ChatBody, newest_turn: str | None) -> requests.Question | None:
    """Return the last message if it is the user's, or else None.

    Each request to regenerate an answer is a separate question, identified by the session's newest turn.
    """
    last = body.messages[-1]
    if last.role != "user":
        return None
    again = f" again {body.message_id or newest_turn}" if body.trigger == "regenerate-message" else ""
    return requests.Question(last.text, f"{last.id}{again}", last.files(f"messages[{len(body.messages) - 1}]"))


def read_chat_history(body: ChatBody) -> list[dict[str, Any]]:
    """Return the messages before the last one, as text and the user's files. A new session begins with them."""
    history: list[dict[str, Any]] = [
        {"role": message.role, "content": message.text, "attachments": message.files(f"messages[{at}]")}
        for at, message in enumerate(body.messages[:-1])
        if message.role != "system"
    ]
    return [message for message in history if message["content"].strip() or message["attachments"]]


def read_answers(message: UiMessage) -> list[requests.CallAnswer]:
    """Return the page's answers to the calls of the message's last step."""
    steps = [at for at, part in enumerate(message.parts) if part.type == "step-start"]
    answers = (_read_answer(part) for part in message.parts[steps[-1] if steps else 0 :])
    return [answer for answer in answers if answer is not None]


def _read_answer(part: MessagePart) -> requests.CallAnswer | None:
    if part.state == "approval-responded" and part.approval is not None:
        approval = part.approval
        split_call_id(approval.id)
        return requests.ApprovalDecision(approval.id, bool(approval.approved), approval.reason or "")
    if part.tool_call_id is None or part.provider_executed:
        return None
    match part.state:
        case "output-available":
            return requests.ClientResult(_check_call_id(part.tool_call_id), part.output)
        case "output-error":
            return requests.ClientResult(
                _check_call_id(part.tool_call_id), error=part.error_text or "the page's tool failed"
            )
        case _:
            return None


def _check_call_id(call_id: str) -> str:
    split_call_id(call_id)
    return call_id


STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The UI message stream, version 1, of the AI SDK: server-sent events whose `data` are chunks, "
        "then `[DONE]`. `Last-Event-ID` with the `id` of one continues the stream after it.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}

NO_STREAM_RESPONSE: dict[int | str, dict[str, Any]] = {204: {"description": "There is nothing to follow."}}


@router.post("", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(409, 410)})
async def chat(body: ChatBody, request: RequestDep) -> Response:
    """Stream the answer to the last message.

    A user's message begins a turn; if it is repeated, the same turn is streamed. An assistant's message contains
    decisions, or results of the page's own tools, and its turn resumes.

    Also needs `read`, `decide` for decisions, and `steer` for results.
    """
    request.require_own_prefix(body.id)
    newest = await _newest_turn(request, body.id) if body.trigger == "regenerate-message" else None
    question = read_question(body, newest)
    if question is not None:
        options: SubmitOptions = {"brain": body.brain, "client_tools": [tool.model_dump() for tool in body.tools]}
        handle = await requests.submit_question(request, body.id, question, options, read_chat_history(body))
        return await _stream_chat(request, handle)
    answers = read_answers(body.messages[-1])
    if not answers:
        raise InvalidInput(
            "messages", "the last message is the assistant's and has no answers; end with a user's message"
        )
    handle, behind = await requests.apply_answers(request, body.id, answers)
    return await _stream_chat(request, handle, behind, opens=True)


@router.get(
    "/{session_id}/stream",
    response_model=None,
    responses={**STREAM_RESPONSES, **NO_STREAM_RESPONSE, **problem_responses(410)},
)
async def resume(
    chat_id: ChatId,
    request: RequestDep,
    turn: TurnQuery = None,
    last_event_id: Annotated[str | None, Header(max_length=30, description="Begin after this piece.")] = None,
) -> Response:
    """Stream the chat's live turn, or the named turn, from its beginning. 204 if no turn is live."""
    request.require_session(chat_id)
    found = turn or await request.client.session(chat_id).live()
    if found is None:
        return Response(status_code=204)
    handle = await _turn_of_chat(request, chat_id, found)
    return await _stream_chat(request, handle, read_position(last_event_id))


@router.post("/{session_id}/stop")
async def stop(chat_id: ChatId, request: RequestDep, turn: TurnQuery = None) -> AffectedTurn:
    """Cancel the chat's live turn or the named turn. The client's own `stop()` only stops reading."""
    request.require_session(chat_id)
    if turn is None:
        return AffectedTurn(turn_id=await request.client.session(chat_id).interrupt("stopped in its chat"))
    handle = await _turn_of_chat(request, chat_id, turn)
    cancelled = await handle.cancel("stopped in its chat")
    return AffectedTurn(turn_id=None if cancelled == "ended" else handle.turn_id)


async def _stream_chat(
    request: HttpRequest, handle: AsyncTurnHandle, behind: StreamPosition = FROM_START, *, opens: bool = False
) -> Response:
    found = await chat_stream(request, handle, MessageWriter(handle.turn_id), behind, opens=opens)
    return Response(status_code=204) if found is None else found


async def _turn_of_chat(request: GatewayRequest, chat_id: str, turn_id: str) -> AsyncTurnHandle:
    handle = await request.client.handle(turn_id)
    if handle.session_id != chat_id:
        raise NotFound("the turn belongs to another chat")
    return handle


async def _newest_turn(request: GatewayRequest, session_id: str) -> str | None:
    turns = await request.client.session(session_id).history(1)
    return turns[-1].turn_id if turns else None

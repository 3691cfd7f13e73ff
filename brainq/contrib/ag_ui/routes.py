"""`/agui`: runs of AG-UI 1.0 and their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, cast

from ag_ui.core import AssistantMessage, DeveloperMessage, Message, SystemMessage, ToolMessage, UserMessage
from fastapi import APIRouter, Depends, Path, Response
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from brainq.app.access import Verb
from brainq.client.options import SubmitOptions
from brainq.contracts.base import first_problem
from brainq.contracts.file import File
from brainq.contracts.ids import split_call_id
from brainq.contracts.tool import MAX_CLIENT_TOOLS, MAX_DESCRIPTION_CHARS
from brainq.contracts.turn import MAX_EXTRA_CHARS
from brainq.contrib.ag_ui.events import RunWriter
from brainq.errors import InvalidInput
from brainq.gateway.edge.access import RequestDep, current_request
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.edge.request import ID, HttpRequest
from brainq.gateway.wires.chat import requests
from brainq.gateway.wires.chat.stream import FROM_START, chat_stream

MAX_MESSAGES = 10_000
MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
VERBS = {"POST /agui": Verb.SUBMIT, "POST /agui/{brain}": Verb.SUBMIT}
router = APIRouter(tags=["AG-UI"], dependencies=[Depends(current_request)])


class InterruptAnswer(requests.CamelBody):
    """An answer to an interrupt. A tool call's `payload` has `approved`, and optionally `editedArgs` and `reason`."""

    interrupt_id: str = Field(max_length=200)
    status: Literal["resolved", "cancelled"]
    payload: JsonValue = None


class ClientTool(requests.CamelBody):
    """A tool that the application runs itself."""

    name: str = Field(max_length=64)
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    parameters: dict[str, JsonValue] | None = None


class ContextItem(requests.CamelBody):
    """A piece of context for the model in this run."""

    description: str = Field(max_length=MAX_DESCRIPTION_CHARS)
    value: str = Field(max_length=MAX_EXTRA_CHARS)


class RunBody(requests.CamelBody):
    """The body `RunAgentInput` of AG-UI 1.0. Its thread is the session."""

    thread_id: str = Field(pattern=ID)
    run_id: str = Field(min_length=1, max_length=200)
    messages: list[dict[str, JsonValue]] = Field(max_length=MAX_MESSAGES)
    tools: list[ClientTool] | None = Field(default=None, max_length=MAX_CLIENT_TOOLS)
    context: list[ContextItem] | None = Field(default=None, max_length=100)
    state: JsonValue = None
    forwarded_props: JsonValue = None
    resume: list[InterruptAnswer] | None = None


def read_messages(body: RunBody) -> list[Message]:
    """Read the messages of a run. Raises InvalidInput for a message that the protocol does not define."""
    try:
        return MESSAGES.validate_python(body.messages)
    except ValidationError as wrong:
        raise first_problem(wrong.errors(include_url=False), body.messages, under="messages") from None


def read_question(messages: Sequence[Message]) -> requests.Question:
    """Return the user's last message. Raises InvalidInput if there is none, or if it has a file without its bytes."""
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return requests.Question(_text_of(message), message.id, _files_of(message))
    raise InvalidInput("messages", "no message is from the user; include the user's last message")


def read_run_history(messages: Sequence[Message], question: requests.Question) -> list[dict[str, Any]]:
    """Return the messages before the question, as text and the user's files. A new session begins with them."""
    history: list[dict[str, Any]] = []
    for message in messages:
        if message.id == question.message_id:
            break
        if isinstance(message, UserMessage):
            files = _files_of(message)
            history.append({"role": "user", "content": _text_of(message), "attachments": files})
        elif isinstance(message, AssistantMessage) and isinstance(message.content, str):
            history.append({"role": message.role, "content": message.content})
    return [message for message in history if message["content"].strip() or message.get("attachments")]


def submit_options(body: RunBody, messages: Sequence[Message], *, configures: bool) -> SubmitOptions:
    """Return the submit options of a run: the application's tools, its metadata and, if the caller `configures`, its
    additions to the prompt.

    Applications send additions with every run, so those of other callers are dropped rather than refused.
    """
    context_texts = [message.content for message in messages if isinstance(message, SystemMessage | DeveloperMessage)]
    context_texts += [f"{context.description}: {context.value}" for context in body.context or ()]
    metadata = {"state": body.state, "forwarded_props": body.forwarded_props}
    return {
        "client_tools": [tool.model_dump(exclude_none=True) for tool in body.tools or ()],
        "skill_context": "\n\n".join(context_texts) or None if configures else None,
        "metadata": {name: value for name, value in metadata.items() if value} or None,
    }


def read_answers(body: RunBody, messages: Sequence[Message]) -> list[requests.CallAnswer]:
    """Return the decisions about interrupts and the newest results of the application's own tools.

    Raises InvalidInput for an answer without a decision.
    """
    answers: list[requests.CallAnswer] = [_read_decision(entry) for entry in body.resume or ()]
    for message in reversed(messages):
        if not isinstance(message, ToolMessage) or message.id == f"{message.tool_call_id}-result":
            break
        split_call_id(message.tool_call_id)
        answers.append(requests.ClientResult(message.tool_call_id, _text_of(message), message.error or ""))
    return answers


def messages_before_turn(messages: Iterable[Message], turn_id: str) -> list[Message]:
    """Return the conversation without the turn's own messages."""
    return [message for message in messages if not is_of_turn(message, turn_id)]


def is_of_turn(message: Message, turn_id: str) -> bool:
    call_id: str = getattr(message, "tool_call_id", "")
    return message.id.startswith(f"{turn_id}-") or call_id.startswith(f"{turn_id}-")


def answered_calls(messages: Iterable[Message]) -> list[str]:
    return [message.tool_call_id for message in messages if message.role == "tool"]


def _text_of(message: UserMessage | ToolMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if part.type == "text")


def _files_of(message: UserMessage) -> tuple[File, ...]:
    if isinstance(message.content, str):
        return ()
    parts = [part.model_dump() for part in message.content]
    return tuple(_file(f"messages.content[{at}]", part) for at, part in enumerate(parts) if part["type"] != "text")


def _file(field: str, part: dict[str, Any]) -> File:
    """Return the file of an image, document, audio or video part."""
    source: dict[str, Any] = part.get("source") or {}
    return requests.decode_file(f"{field}.source", source.get("value"), source.get("mime_type"))


def _read_decision(entry: InterruptAnswer) -> requests.ApprovalDecision:
    split_call_id(entry.interrupt_id)
    if entry.status == "cancelled":
        return requests.ApprovalDecision(entry.interrupt_id, False, "the approval was cancelled")
    payload = entry.payload
    match payload:
        case {"approved": bool(approved)}:
            edited: Any = cast("dict[str, Any]", payload).get("editedArgs")
            reason: Any = cast("dict[str, Any]", payload).get("reason")
        case _:
            raise InvalidInput("resume.payload", 'send {"approved": true} or {"approved": false}')
    if edited is not None and not isinstance(edited, dict):
        raise InvalidInput("resume.payload.editedArgs", "it is not an object; send all arguments, or omit it")
    reason_text = reason if isinstance(reason, str) else ""
    return requests.ApprovalDecision(entry.interrupt_id, approved, reason_text, cast("dict[str, Any] | None", edited))


STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events whose `data` are events of AG-UI 1.0, from RUN_STARTED to RUN_FINISHED or "
        "RUN_ERROR.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "There is nothing to follow."},
}


@router.post("/agui", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(409, 410)})
async def run(body: RunBody, request: RequestDep) -> Response:
    """Run the default brain on a thread; see `/agui/{brain}`."""
    return await _run(body, None, request)


@router.post("/agui/{brain}", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(409, 410)})
async def run_brain(brain: Annotated[str, Path(pattern=ID)], body: RunBody, request: RequestDep) -> Response:
    """Run a brain on a thread.

    The user's last message begins a turn; if it is repeated, the same turn is streamed from its beginning. `resume` and
    results of the application's tools answer the requests with which a run stopped, and the rest of the turn is
    streamed.

    Also needs `read`, `decide` for `resume`, and `steer` for results.
    """
    return await _run(body, brain, request)


async def _run(body: RunBody, brain: str | None, request: HttpRequest) -> Response:
    request.require_own_prefix(body.thread_id)
    messages = read_messages(body)
    if answers := read_answers(body, messages):
        handle, behind = await requests.apply_answers(request, body.thread_id, answers)
        answered, takes_back = answered_calls(messages), ()
    else:
        question = read_question(messages)
        configures = Verb.CONFIGURE in request.caller.verbs
        options: SubmitOptions = {**submit_options(body, messages, configures=configures), "brain": brain}
        history = read_run_history(messages, question)
        handle, behind = await requests.submit_question(request, body.thread_id, question, options, history), FROM_START
        answered, takes_back = (), [message for message in messages if is_of_turn(message, handle.turn_id)]
    before = messages_before_turn(messages, handle.turn_id)
    writer = RunWriter(handle.turn_id, body.thread_id, body.run_id, before, answered=answered, takes_back=takes_back)
    found = await chat_stream(request, handle, writer, behind, opens=True)
    return Response(status_code=204) if found is None else found

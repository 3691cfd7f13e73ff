"""Requests of A2A's clients: JSON-RPC 2.0, and messages that begin a task, answer its requests or add input to it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from a2a.types.a2a_pb2 import Message, Part, SendMessageRequest
from a2a.utils import errors as a2a
from a2a.utils.error_handlers import build_error_details
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf import json_format
from google.protobuf.message import Message as AnyMessage
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from brainq.app.access import Caller, Verb, own_request_key
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.base import first_problem
from brainq.contracts.file import File
from brainq.contracts.ids import check_id, split_call_id
from brainq.contrib.a2a.tasks import read_task
from brainq.errors import (
    ApprovalDecided,
    BrainqError,
    InvalidInput,
    NotFound,
    ResultRefused,
    SessionBusy,
    StaleTurn,
    SubmitConflict,
    Unreachable,
)
from brainq.gateway.edge.request import CALL_ID, GatewayRequest
from brainq.gateway.rest.turn_control import decide
from brainq.runtime.text.surrogates import clean

VERSION = "1.0"
M = TypeVar("M", bound=AnyMessage)


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A JSON-RPC call. Its `id` is sent back with the result."""

    id: str | int | None
    method: str
    params: Any


def read_call(body: bytes) -> RpcCall:
    """Read a JSON-RPC 2.0 request. Raises A2AError if it is invalid."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise a2a.JSONParseError("the body is not JSON; send one JSON object, as UTF-8") from None
    if not isinstance(found, dict):
        raise a2a.InvalidRequestError("send one JSON object; batches are not supported")
    given = cast("dict[str, Any]", found)
    number = given.get("id")
    if given.get("jsonrpc") != "2.0" or not isinstance(given.get("method"), str):
        raise a2a.InvalidRequestError("jsonrpc must be '2.0', and method must be a text")
    if isinstance(number, bool) or not isinstance(number, str | int | None):
        raise a2a.InvalidRequestError("id must be a text, a whole number or null")
    if isinstance(number, str) and clean(number) != number:
        raise a2a.InvalidRequestError("id contains half of a surrogate pair; send whole characters")
    return RpcCall(number, given["method"], given.get("params", {}))


def check_version(version: str) -> None:
    """Raise VersionNotSupportedError for any version but 1.x. The protocol defines a missing version as 0.3."""
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        raise a2a.VersionNotSupportedError(
            f"A2A {version or '0.3'} is not supported; send the header `A2A-Version: {VERSION}`"
        )


def read_params(params: Any, message: M) -> M:
    """Read the params into `message`. Raises InvalidParamsError, which names the field if it can."""
    try:
        json_format.ParseDict(params, message, ignore_unknown_fields=True)
    except (json_format.ParseError, AttributeError, TypeError, RecursionError) as wrong:
        raise a2a.InvalidParamsError(f"params are not a {message.DESCRIPTOR.name}: {wrong}") from None
    validate_proto_required_fields(message)
    return message


def message_json(message: AnyMessage) -> Any:
    """Return a message as JSON, with whole numbers as integers: protobuf's numbers are floats, so 3 would become 3.0.

    Raises InvalidInput for NaN and Infinity.
    """
    try:
        return _with_whole_numbers(json_format.MessageToDict(message))
    except json_format.SerializeToJsonError:
        raise InvalidInput("message.parts.data", "NaN and Infinity are not JSON; omit them") from None


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if isinstance(value, dict):
        return {name: _with_whole_numbers(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_with_whole_numbers(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def rpc_result(call_id: str | int | None, message: AnyMessage) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": message_json(message)}


def rpc_error(call_id: str | int | None, error: a2a.A2AError) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": call_id,
        "error": {
            "code": a2a.JSON_RPC_ERROR_CODE_MAP[type(error)],
            "message": error.message,
            "data": build_error_details(error),
        },
    }


def to_a2a_error(error: BrainqError) -> a2a.A2AError | None:
    """Return A2A's error for one of brainq's errors.

    Returns None for an error that HTTP reports on every route, such as Unreachable.
    """
    match error:
        case NotFound():
            return a2a.TaskNotFoundError("this caller has no task with this id")
        case InvalidInput():
            return a2a.InvalidParamsError(str(error), {"errors": [{"field": error.field, "message": error.problem}]})
        case SubmitConflict():
            return a2a.InvalidParamsError("this messageId was already used with other content", {"errors": []})
        case ApprovalDecided() | ResultRefused() | SessionBusy() | StaleTurn():
            return a2a.UnsupportedOperationError(str(error))
        case _:
            return None


class ApprovalDecision(BaseModel):
    """A decision about an approval. `arguments` replace the model's and are approved."""

    model_config = ConfigDict(extra="forbid")

    call: str = Field(pattern=CALL_ID)
    decision: Literal["approve", "deny"]
    reason: str = Field(default="", max_length=2_000)
    args_hash: str | None = Field(default=None, max_length=200)
    arguments: dict[str, JsonValue] | None = None


class ClientResult(BaseModel):
    """The result of a call of the client's own tool, or the error in one line."""

    model_config = ConfigDict(extra="forbid")

    call: str = Field(pattern=CALL_ID)
    result: JsonValue = None
    error: str | None = Field(default=None, min_length=1)


CallAnswer = ApprovalDecision | ClientResult


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """The content of a message to a task: text, answers to the task's requests, and files."""

    text: str
    answers: tuple[CallAnswer, ...]
    files: tuple[File, ...] = ()

    @property
    def has_input(self) -> bool:
        """Return whether the message has text or files for the model."""
        return bool(self.text.strip() or self.files)


def message_text(message: Message) -> str:
    """Return the text of a message that begins a task, with data as JSON. Raises ContentTypeNotSupportedError."""
    return "\n\n".join(
        part.text if part.HasField("text") else json.dumps(_read_data(part), ensure_ascii=False)
        for part in message.parts
        if not part.HasField("raw")
    )


def message_files(message: Message) -> tuple[File, ...]:
    """Return the files that a message contains as bytes. Raises InvalidInput."""
    return tuple(File(part.raw, part.media_type, part.filename) for part in message.parts if part.HasField("raw"))


def read_task_message(message: Message) -> TaskMessage:
    """Read a message to a task. Raises ContentTypeNotSupportedError, and InvalidInput for data that is no answer."""
    return TaskMessage(
        "\n\n".join(part.text for part in message.parts if part.HasField("text")),
        tuple(
            _read_answer(_read_data(part))
            for part in message.parts
            if not part.HasField("text") and not part.HasField("raw")
        ),
        message_files(message),
    )


def _read_data(part: Part) -> Any:
    if not part.HasField("data"):
        raise a2a.ContentTypeNotSupportedError(
            "text, data and raw bytes are supported; send a file's bytes, because URLs are not fetched"
        )
    return message_json(part.data)


def _read_answer(data: Any) -> CallAnswer:
    kind = ClientResult if isinstance(data, dict) and ("result" in data or "error" in data) else ApprovalDecision
    try:
        return kind.model_validate(data)
    except ValidationError as wrong:
        problem = first_problem(wrong.errors(include_url=False), data, under="message.parts.data")
        raise InvalidInput(
            problem.field,
            f"{problem.problem}; send {{call, decision: approve or deny}}, or {{call, result}} for your own tool",
        ) from None


async def send_message(request: GatewayRequest, brain: str, params: SendMessageRequest) -> AsyncTurnHandle:
    """Return the turn of `brain` that the message began, or the one that it was sent to. Idempotent.

    Raises A2AError, BrainqError, and RequestRejected if the caller lacks a verb.
    """
    if params.configuration.HasField("task_push_notification_config"):
        raise a2a.PushNotificationNotSupportedError("push notifications are not supported; use SubscribeToTask")
    if params.message.task_id:
        return await _send_to_task(request, params.message)
    return await _begin_task(request, brain, params)


async def _begin_task(request: GatewayRequest, brain: str, params: SendMessageRequest) -> AsyncTurnHandle:
    request.require_verb(Verb.SUBMIT)
    message = params.message
    context_id = message.context_id or default_context(request.caller, message.message_id)
    check_id("message.contextId", context_id)
    request.require_own_prefix(context_id)
    words = message_text(message)
    key = own_request_key(request.caller, context_id, hashed_id(context_id, message.message_id))
    options: dict[str, Any] = {"request_key": key, "brain": brain, "attachments": message_files(message)}
    if params.HasField("metadata"):
        options["metadata"] = message_json(params.metadata)
    try:
        return await request.client.submit(context_id, words, **options)
    except Unreachable as error:
        raise Unreachable(str(error)) from error  # no request key is needed: the message's id makes a retry safe


async def _send_to_task(request: GatewayRequest, message: Message) -> AsyncTurnHandle:
    handle = await request.own_turn(message.task_id)
    if message.context_id not in ("", handle.session_id):
        raise InvalidInput("message.contextId", "the task belongs to another context; omit contextId")
    content = read_task_message(message)
    _check_message(request, handle, content)
    if content.has_input and (await read_task(handle)).is_over:
        raise a2a.UnsupportedOperationError("the task has ended; send the message without a taskId")
    for answer in content.answers:
        if isinstance(answer, ApprovalDecision):
            given = answer.model_dump(include={"reason", "arguments", "args_hash"})
            await decide(request, answer.call, approves=answer.decision == "approve", **given)
        else:
            await _give_result(handle, answer)
    if content.has_input:
        await handle.steer(
            content.text.strip() and content.text,
            client_message_id=hashed_id(handle.turn_id, message.message_id),
            attachments=content.files,
        )
    return handle


def _check_message(request: GatewayRequest, handle: AsyncTurnHandle, content: TaskMessage) -> None:
    """Check all of a message before any of it is applied. Raises RequestRejected and InvalidInput."""
    for answer in content.answers:
        request.require_verb(Verb.DECIDE if isinstance(answer, ApprovalDecision) else Verb.STEER)
        if split_call_id(answer.call)[0] != handle.turn_id:
            raise InvalidInput("message.parts.data.call", "the call belongs to another task")
    if content.has_input:
        request.require_verb(Verb.STEER)
        request.require_verb(Verb.SUBMIT)  # input that arrives as the task ends becomes a task of its own
    elif not content.answers:
        raise InvalidInput("message.parts", "the parts are empty; send a text, or an answer to the task's requests")


async def _give_result(handle: AsyncTurnHandle, answer: ClientResult) -> None:
    try:
        if answer.error is not None:
            await handle.give_error(answer.call, answer.error)
        else:
            await handle.give_result(answer.call, answer.result)
    except ResultRefused as refusal:
        if not refusal.was_given:
            raise


def default_context(caller: Caller, message_id: str) -> str:
    """Return the context of a message that names none. It has the caller's prefix, and is the same for a repeat."""
    prefix = (caller.prefixes or ("",))[0]
    return f"{prefix}{hashed_id(caller.counted_as, message_id)}"


def hashed_id(scope: str, message_id: str) -> str:
    """Return an id for a message's id, which may be any text."""
    return f"a2a-{hashlib.sha256(f'{scope} {message_id}'.encode()).hexdigest()[:40]}"

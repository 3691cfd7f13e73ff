"""JSON-RPC 2.0 as A2A uses it: reading a call, and encoding its result or error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from a2a.types.a2a_pb2 import StreamResponse
from a2a.utils.error_handlers import build_error_details
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from fastapi.sse import format_sse_event
from google.protobuf import json_format
from google.protobuf.message import Message

from brainq.errors import (
    ApprovalDecided,
    BrainqError,
    InvalidInput,
    NotFound,
    ResultRefused,
    SessionBusy,
    StaleTurn,
    SubmitConflict,
)
from brainq.text.surrogates import clean

VERSION = "1.0"
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A call. `id` is sent back with its result."""

    id: str | int | None
    method: str
    params: Any


def read_call(body: bytes) -> RpcCall:
    """Raises A2AError for an invalid request of JSON-RPC 2.0."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise JSONParseError("the body is not JSON; send one JSON object, as UTF-8") from None
    if not isinstance(found, dict):
        raise InvalidRequestError("send one JSON object; batches are not supported")
    given = cast("dict[str, Any]", found)
    number = given.get("id")
    if given.get("jsonrpc") != "2.0" or not isinstance(given.get("method"), str):
        raise InvalidRequestError("jsonrpc has to be '2.0', and method a text")
    if isinstance(number, bool) or not isinstance(number, str | int | None):
        raise InvalidRequestError("id has to be a text, a whole number or null")
    if isinstance(number, str) and clean(number) != number:
        raise InvalidRequestError("id has half of a character; send whole ones")
    return RpcCall(number, given["method"], given.get("params", {}))


def check_version(version: str) -> None:
    """Raise VersionNotSupportedError for any but 1.x. By the protocol, a missing version is 0.3."""
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        raise VersionNotSupportedError(
            f"A2A {version or '0.3'} is not supported; send the header `A2A-Version: {VERSION}`"
        )


def read_params(params: Any, message: M) -> M:
    """The params as this message. Raises InvalidParamsError, which names the field where it can."""
    try:
        json_format.ParseDict(params, message, ignore_unknown_fields=True)
    except (json_format.ParseError, AttributeError, TypeError, RecursionError) as wrong:
        raise InvalidParamsError(f"params are not a {message.DESCRIPTOR.name}: {wrong}") from None
    validate_proto_required_fields(message)
    return message


def message_json(message: Message) -> Any:
    """As JSON, with whole numbers as such: the protocol's own are all floats, and `3` would come back as `3.0`.

    Raises InvalidInput for NaN and Infinity.
    """
    try:
        return _with_whole_numbers(json_format.MessageToDict(message))
    except json_format.SerializeToJsonError:
        raise InvalidInput("message.parts.data", "NaN and Infinity are not JSON; leave them out") from None


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if isinstance(value, dict):
        return {name: _with_whole_numbers(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_with_whole_numbers(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def rpc_result(call_id: str | int | None, message: Message) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": message_json(message)}


def rpc_error(call_id: str | int | None, error: A2AError) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": call_id,
        "error": {
            "code": JSON_RPC_ERROR_CODE_MAP[type(error)],
            "message": error.message,
            "data": build_error_details(error),
        },
    }


def rpc_frame(call_id: str | int | None, update: StreamResponse) -> bytes:
    """One update of a stream."""
    return format_sse_event(data_str=json.dumps(rpc_result(call_id, update)))


def to_a2a_error(error: BrainqError) -> A2AError | None:
    """A2A's error for one of brainq's. None for those that HTTP reports as on every route, such as Unreachable."""
    match error:
        case NotFound():
            return TaskNotFoundError("no task of yours has this id")
        case InvalidInput():
            return InvalidParamsError(str(error), {"errors": [{"field": error.field, "message": error.problem}]})
        case SubmitConflict():
            return InvalidParamsError("this messageId was used before, with other content", {"errors": []})
        case ApprovalDecided() | ResultRefused() | SessionBusy() | StaleTurn():
            return UnsupportedOperationError(str(error))
        case _:
            return None

"""`/v1/chat/completions` and `/v1/models`. A completion is a turn, or the part of one that follows a client's calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Path, Response
from pydantic import Field, JsonValue
from starlette.responses import JSONResponse

from brainq.contracts.model_options import Effort
from brainq.errors import InvalidInput
from brainq.gateway.edge.access import GatewayDep, RequestDep
from brainq.gateway.edge.request import ID
from brainq.gateway.wires.chat.fold import ClientCallRequested
from brainq.gateway.wires.openai import errors, parameters, part_fold
from brainq.gateway.wires.openai.messages import (
    InputMessage,
    ToolResults,
    give_results,
    read_content,
    read_messages,
    submit_request,
)
from brainq.gateway.wires.openai.part_reader import read_part, select_part, stream_part
from brainq.gateway.wires.openai.retries import request_key

router = APIRouter(tags=["openai"])
DONE = b"data: [DONE]\n\n"
UNSUPPORTED: parameters.Unsupported = {
    **parameters.COMMON_UNSUPPORTED,
    "n": (1,),
    "logprobs": (False,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "prediction": (),
    "web_search_options": (),
}


class StreamOptions(parameters.OpenAiBody):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class ChatCompletionBody(parameters.AnswerRequestBody):
    """A request for a chat completion."""

    model: str
    messages: list[dict[str, JsonValue]] = Field(min_length=1, max_length=2_000)
    stream_options: StreamOptions | None = None
    response_format: dict[str, JsonValue] | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    # Options of the model for callers that may configure turns.
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: JsonValue = None
    reasoning_effort: Effort | None = None
    # Accepted without effect.
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    verbosity: str | None = None
    # Rejected, except for values that change nothing.
    n: JsonValue = None
    logprobs: JsonValue = None
    logit_bias: JsonValue = None
    modalities: JsonValue = None
    audio: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    prediction: JsonValue = None
    web_search_options: JsonValue = None


@router.post(
    "/v1/chat/completions",
    response_model=None,
    responses=errors.answer_responses("A chat completion, or with `stream` its chunks as events.", 409, streams=True),
)
async def chat_completions(
    body: ChatCompletionBody,
    request: RequestDep,
    session: Annotated[str | None, Header(alias=parameters.SESSION_HEADER, pattern=ID)] = None,
) -> Response:
    """Answer a conversation with the brain that `model` names, as OpenAI's chat completions do.

    Needs the verbs `submit` and `read`; results of the client's own tools also need `steer`.
    """
    brain = parameters.check_request(request.gateway, body, body.model, UNSUPPORTED)
    given_input = read_messages("messages", [read_message(i, message) for i, message in enumerate(body.messages)])
    if isinstance(given_input, ToolResults):
        handle, selector = await give_results(request, given_input)
    else:
        schema = parameters.read_output_schema("response_format", body.response_format)
        limits = parameters.read_limits(brain, request.caller, body.max_completion_tokens or body.max_tokens)
        options = parameters.submit_options(brain, request.caller, body, schema, limits)
        named = session or (body.metadata or {}).get(parameters.SESSION_KEY)
        key = await request_key(request, body.model_dump(exclude_unset=True))
        handle = await submit_request(request, given_input, named, key, options)
        selector = await select_part(request.gateway, handle)
    if body.stream:
        fold = ChunkWriter(
            handle.turn_id, brain.name, body.stream_options is not None and body.stream_options.include_usage
        )
        return await stream_part(request, handle, selector, fold.write, lambda: STOPPING_FRAME)
    part_events, last = await read_part(request, handle, selector)
    if isinstance(last, part_fold.PartFailed):
        return errors.failure_response(last)
    began = next((event.at_s for event in part_events if isinstance(event, part_fold.PartStarted)), 0)
    return JSONResponse(render_completion(handle.turn_id, brain.name, began, last))


def read_message(at: int, message: dict[str, JsonValue]) -> InputMessage:
    """Read a message of the request. Raises InvalidInput that names it."""
    field, role = f"messages[{at}]", message.get("role")
    content = message.get("content")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise InvalidInput(f"{field}.role", "the role is not one of system, developer, user, assistant, tool")
    kinds = ("text", "refusal") if role == "assistant" else ("text",)
    text, files = read_content(f"{field}.content", content, kinds, with_files=role == "user")
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str):
            raise InvalidInput(f"{field}.tool_call_id", "it is missing; send the id of the call with this result")
        return InputMessage(field, role, text, call_id=call_id)
    if role == "assistant":
        return InputMessage(field, role, text, calls=_read_calls(field, message.get("tool_calls")))
    return InputMessage(field, str(role), text, files=files)


def _read_calls(field: str, given: JsonValue) -> tuple[tuple[str, str, str], ...]:
    calls: list[tuple[str, str, str]] = []
    for at, call in enumerate(cast("list[Any]", given) if isinstance(given, list) else ()):
        made: Any = call.get("function") if isinstance(call, dict) else None
        try:
            calls.append((str(call["id"]), str(made["name"]), str(made.get("arguments") or "{}")))
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput(
                f"{field}.tool_calls[{at}]", "it must be a function call with id, name and arguments"
            ) from None
    return tuple(calls)


@dataclass(slots=True)
class ChunkWriter:
    """A fold of part events to the chunks of a stream."""

    turn_id: str
    model: str
    with_usage: bool
    at_s: int = 0
    span: int = 1

    def write(self, event: part_fold.PartEvent) -> bytes:
        match event:
            case part_fold.PartStarted():
                self.at_s = event.at_s
                return self._chunk({"role": "assistant", "content": ""})
            case part_fold.PartText():
                return self._chunk({"content": event.text})
            case part_fold.PartReasoning():
                lead, self.span = part_fold.SEPARATOR if event.span > self.span else "", event.span
                return self._chunk({"reasoning_content": lead + event.text})
            case part_fold.ToolCallsRequested():
                calls = b"".join(
                    self._chunk({"tool_calls": [{"index": at, **render_call(call)}]})
                    for at, call in enumerate(event.calls)
                )
                return calls + self._end(event.finish, event.usage)
            case part_fold.PartCompleted():
                return self._end(event.finish, event.usage)
            case part_fold.PartFailed():
                return _frame(errors.failure_body(event))

    def _end(self, finish: str, usage: part_fold.Usage) -> bytes:
        end = self._chunk({}, finish)
        if self.with_usage:
            end += _frame({**self._head(), "choices": [], "usage": render_usage(usage)})
        return end + DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        more = {"usage": None} if self.with_usage else {}
        return _frame({**self._head(), "choices": [choice], **more})

    def _head(self) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.turn_id}",
            "object": "chat.completion.chunk",
            "created": self.at_s,
            "model": self.model,
        }


def render_completion(
    turn_id: str, model: str, at_s: int, last: part_fold.ToolCallsRequested | part_fold.PartCompleted
) -> dict[str, Any]:
    """Return the body of a part that was answered, or that requests calls of the client."""
    message: dict[str, Any] = {"role": "assistant", "content": last.text, "refusal": None}
    if last.thoughts:
        message["reasoning_content"] = part_fold.SEPARATOR.join(last.thoughts)
    if isinstance(last, part_fold.ToolCallsRequested):
        message["content"] = last.text or None
        message["tool_calls"] = [render_call(call) for call in last.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": last.finish}
    return {
        "id": f"chatcmpl-{turn_id}",
        "object": "chat.completion",
        "created": at_s,
        "model": model,
        "choices": [choice],
        "usage": render_usage(last.usage),
    }


def render_call(call: ClientCallRequested) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}


def render_usage(usage: part_fold.Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _frame(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


STOPPING_FRAME = _frame(
    errors.openai_error(
        "the gateway is stopping and the turn continues; send the request again to get the rest", 503, "stopping"
    )
)
"""The last frame of a stream that is closed before its turn has ended."""


@router.get("/v1/models", response_model=None, responses=errors.error_responses())
async def models(gateway: GatewayDep) -> dict[str, Any]:
    """List the brains that a request may name as its model."""
    return {"object": "list", "data": [_render_model(name) for name in gateway.brains.names]}


@router.get("/v1/models/{model}", response_model=None, responses=errors.error_responses())
async def model(model: Annotated[str, Path(min_length=1, max_length=200)], gateway: GatewayDep) -> dict[str, Any]:
    """Show a brain."""
    return _render_model(parameters.require_brain(gateway, model).name)


def _render_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "brainq"}

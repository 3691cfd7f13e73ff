"""`/v1/responses`: a response is a part of a turn. It can be streamed, read later, cancelled and deleted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field, JsonValue
from starlette.responses import JSONResponse

from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.ids import background_turn_id
from brainq.contracts.status import Ending
from brainq.engine.brain.brain import Brain
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.edge.request import ID, GatewayRequest, HttpRequest
from brainq.gateway.rest.bodies import MAX_NUMBER
from brainq.gateway.rest.event_stream import wait_for_result
from brainq.gateway.wires.openai import messages, parameters
from brainq.gateway.wires.openai.earlier_responses import ResponseId, find_part, follow_response, require_not_deleted
from brainq.gateway.wires.openai.errors import answer_responses, failure_response, failure_status
from brainq.gateway.wires.openai.part_fold import PartEnded, PartFailed
from brainq.gateway.wires.openai.part_reader import PartSelector, read_part, read_part_so_far, select_part, stream_part
from brainq.gateway.wires.openai.response_fold import ResponseFold, render_response
from brainq.gateway.wires.openai.response_items import resolve_references
from brainq.gateway.wires.openai.retries import request_key

router = APIRouter(tags=["openai"])
CANCEL_S = 3.0
"""The seconds to wait for a cancel. It takes at most its grace of two seconds if workers are running."""

UNSUPPORTED: parameters.Unsupported = {
    **parameters.COMMON_UNSUPPORTED,
    "include": ([], ["reasoning.encrypted_content"]),
    "prompt": (),
    "context_management": ([],),
    "background_options": (),
    "access_programs": (),
    "image": (),
}
RESPONSE_TEXT = "A response, or with `stream` its events as server-sent events."


class ResponseBody(parameters.AnswerRequestBody):
    """A request for a response."""

    model: str | None = None
    input: str | list[dict[str, JsonValue]]
    instructions: str | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, str] | None = None
    text: dict[str, JsonValue] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=0, le=100_000)
    # Options of the model for callers that may configure turns.
    reasoning: dict[str, JsonValue] | None = None
    # Accepted without effect.
    stream_options: dict[str, JsonValue] | None = None
    truncation: str | None = None
    # Rejected, except for values that change nothing.
    include: JsonValue = None
    prompt: JsonValue = None
    context_management: JsonValue = None
    background_options: JsonValue = None
    access_programs: JsonValue = None
    image: JsonValue = None


@router.post("/v1/responses", response_model=None, responses=answer_responses(RESPONSE_TEXT, 409, streams=True))
async def create(
    body: ResponseBody,
    request: RequestDep,
    session: Annotated[str | None, Header(alias=parameters.SESSION_HEADER, pattern=ID)] = None,
) -> Response:
    """Answer with the brain that `model` names, as OpenAI's responses do.

    Needs the verbs `submit` and `read`; results of the client's own tools also need `steer`.
    """
    brain = parameters.check_request(request.gateway, body, body.model, UNSUPPORTED)
    given_input = messages.read_messages("input", _input_messages(body, await resolve_references(request, body.input)))
    if isinstance(given_input, messages.ToolResults):
        handle, selector = await messages.give_results(request, given_input)
    else:
        handle = await _submit(body, brain, request, given_input, session)
        selector = await select_part(request.gateway, handle)
    if not handle.created:
        await require_not_deleted(handle)
    fold = ResponseFold(handle.turn_id, brain.name, handle.session_id)
    if body.stream:
        return await stream_part(request, handle, selector, fold.write, fold.cut)
    if body.background:
        return JSONResponse(await _current_response(handle, selector, fold))
    part_events, last = await read_part(request, handle, selector)
    if (
        isinstance(last, PartFailed)
        and failure_status(last.ending, last.message)[0] < 500
        and last.ending is Ending.FAILED
    ):
        return failure_response(last)
    return JSONResponse(render_response(fold, part_events))


@router.get(
    "/v1/responses/{response_id}", response_model=None, responses=answer_responses(RESPONSE_TEXT, 410, streams=True)
)
async def retrieve(
    response_id: ResponseId,
    request: RequestDep,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0, le=MAX_NUMBER, description="Begin after this event.")] = None,
    include_obfuscation: bool | None = None,
    include: Annotated[list[str] | None, Query(description="Has no effect.")] = None,
) -> Response:
    """Return a response in its current state, or with `stream` its events after `starting_after`."""
    handle, selector, fold = await _find_response(request, response_id)
    if not stream:
        return JSONResponse(await _current_response(handle, selector, fold))
    if starting_after is not None:
        fold.seen = starting_after
    return await stream_part(request, handle, selector, fold.write, fold.cut, is_continued=starting_after is not None)


@router.post(
    "/v1/responses/{response_id}/cancel",
    response_model=None,
    responses=answer_responses(RESPONSE_TEXT, 410, streams=True),
)
async def cancel(response_id: ResponseId, request: RequestDep) -> Response:
    """Cancel the turn of a response, and return the response. Needs the verbs `steer` and `read`."""
    request.require_verb(Verb.READ)
    handle, selector, fold = await _find_response(request, response_id)
    await handle.cancel("cancelled over HTTP")
    await wait_for_result(request, handle, CANCEL_S)
    return JSONResponse(await _current_response(handle, selector, fold))


@router.delete(
    "/v1/responses/{response_id}", response_model=None, responses=answer_responses("The response was deleted.")
)
async def delete(response_id: ResponseId, request: RequestDep) -> dict[str, Any]:
    """Delete all parts of a turn's response, and cancel the turn if it is live. Needs the verbs `steer` and `read`."""
    request.require_verb(Verb.READ)
    handle, _ = await find_part(request, response_id)
    # Cancel first, so that a request which breaks in between can be repeated.
    await handle.cancel("its response was deleted over HTTP")
    await handle.delete_response()
    return {"id": response_id, "object": "response", "deleted": True}


async def _find_response(request: HttpRequest, response_id: str) -> tuple[AsyncTurnHandle, PartSelector, ResponseFold]:
    handle, part = await find_part(request, response_id)
    fold = ResponseFold(
        handle.turn_id, await parameters.brain_name(request.gateway, handle), handle.session_id, part=part
    )
    return handle, await select_part(request.gateway, handle, part), fold


async def _submit(
    body: ResponseBody, brain: Brain, request: HttpRequest, question: messages.TurnInput, session: str | None
) -> AsyncTurnHandle:
    previous = await _previous_turn(body, request)
    text: Any = (body.text or {}).get("format")
    options = parameters.submit_options(
        brain,
        request.caller,
        body,
        parameters.read_output_schema("text.format", text),
        parameters.read_limits(brain, request.caller, body.max_output_tokens, body.max_tool_calls),
        effort=(body.reasoning or {}).get("effort"),
    )
    key = await request_key(request, body.model_dump(exclude_unset=True))
    if previous is not None:
        named, question = await follow_response(request, previous, question, key)
    else:
        named = _conversation_id(body) or session or (body.metadata or {}).get(parameters.SESSION_KEY)
    turn_id = background_turn_id() if body.background else None
    return await messages.submit_request(request, question, named, key, options, turn_id)


async def _previous_turn(body: ResponseBody, request: GatewayRequest) -> AsyncTurnHandle | None:
    """Return the turn of the response that the question follows, if it names one."""
    if body.previous_response_id is None:
        return None
    if body.conversation is not None:
        raise InvalidInput("conversation", "previous_response_id already determines it; send only one of the two")
    return (await find_part(request, body.previous_response_id))[0]


def _conversation_id(body: ResponseBody) -> str | None:
    if isinstance(body.conversation, dict):
        if "id" not in body.conversation:
            raise InvalidInput("conversation", "its id is missing")
        return body.conversation["id"]
    return body.conversation


async def _current_response(handle: AsyncTurnHandle, selector: PartSelector, fold: ResponseFold) -> dict[str, Any]:
    part_events = await read_part_so_far(handle, selector)
    if selector.part > 1 and not part_events:
        raise NotFound("the turn has no such part, at least not yet")
    body = render_response(fold, part_events)
    if part_events and not isinstance(part_events[-1], PartEnded) and await _is_queued(handle):
        body["status"] = "queued"
    return body


async def _is_queued(handle: AsyncTurnHandle) -> bool:
    snapshot = await handle.snapshot()
    return snapshot is not None and snapshot.state == "queued"


def _input_messages(body: ResponseBody, items: str | list[dict[str, JsonValue]]) -> list[messages.InputMessage]:
    begun = [messages.InputMessage("instructions", "system", body.instructions)] if body.instructions else []
    return begun + messages.read_items(items)

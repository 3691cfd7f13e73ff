"""`/api/chat`: the routes of `useChat` of the AI SDK."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic_core import to_json

from brainq.client.async_handle import AsyncTurnHandle
from brainq.client.options import SubmitOptions
from brainq.errors import InvalidInput, NotFound
from brainq.gateway.edge.dependencies import ID, TURN_ID, Gateway, GatewayDep, Principal, PrincipalDep
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.rest.bodies import AffectedTurn
from brainq.gateway.wires.ai_sdk.bodies import ChatBody, read_answers, read_chat_history, read_question
from brainq.gateway.wires.ai_sdk.chunks import (
    Chunk,
    MessageState,
    cut_chunks,
    initial_state,
    render_event,
    rest_chunks,
    start_chunk,
)
from brainq.gateway.wires.chat.requests import apply_answers, submit_question
from brainq.gateway.wires.chat.stream import FROM_START, ChatWire, StreamPosition, chat_stream, read_position

router = APIRouter(prefix="/api/chat", tags=["AI SDK"])

WIRE: ChatWire[MessageState, Chunk] = ChatWire(
    render=render_event,
    chat=lambda state: state.chat,
    encode=lambda chunk: to_json(chunk, inf_nan_mode="null"),
    opening=lambda state: [start_chunk(state.chat.turn_id)],
    rest=rest_chunks,
    cut=cut_chunks,
    end=b"data: [DONE]\n\n",
    headers={"x-vercel-ai-ui-message-stream": "v1"},
)
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The UI message stream, version 1, of the AI SDK: server-sent events whose `data` are chunks, "
        "then `[DONE]`. Their `id` continues the stream, as `Last-Event-ID`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
NO_STREAM_RESPONSE: dict[int | str, dict[str, Any]] = {204: {"description": "There is nothing to follow."}}
ChatId = Annotated[str, Path(alias="session_id", pattern=ID, description="The chat's id.")]
TurnQuery = Annotated[
    str | None, Query(pattern=TURN_ID, description="This turn, as the message's id; without it the live one.")
]


@router.post("", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(409, 410)})
async def chat(body: ChatBody, request: Request, gateway: GatewayDep, principal: PrincipalDep) -> Response:
    """Answer the last message as a stream: a user's begins a turn, and repeated it is the same turn; an
    assistant's has decisions, or results of the page's own tools, and its turn goes on.

    Needs `read`, too; `decide` for decisions, `steer` for results.
    """
    principal.require_session(body.id)
    newest = await _newest_turn(gateway, body.id) if body.trigger == "regenerate-message" else None
    question = read_question(body, newest)
    if question is not None:
        options: SubmitOptions = {"brain": body.brain, "client_tools": [tool.model_dump() for tool in body.tools]}
        handle = await submit_question(gateway, principal, body.id, question, options, read_chat_history(body))
        return await _stream_chat(request, gateway, principal, handle)
    answers = read_answers(body.messages[-1])
    if not answers:
        raise InvalidInput("messages", "the last one is the assistant's, and answers nothing; send the user's last")
    handle, behind = await apply_answers(gateway, principal, body.id, answers)
    return await _stream_chat(request, gateway, principal, handle, behind, opens=True)


@router.get(
    "/{session_id}/stream",
    response_model=None,
    responses={**STREAM_RESPONSES, **NO_STREAM_RESPONSE, **problem_responses(410)},
)
async def resume(
    chat_id: ChatId,
    request: Request,
    gateway: GatewayDep,
    principal: PrincipalDep,
    turn: TurnQuery = None,
    last_event_id: Annotated[str | None, Header(max_length=30, description="Begin behind this piece.")] = None,
) -> Response:
    """Follow the chat's live turn, or the one that is named, from its beginning. 204 when nothing is live."""
    principal.require_session(chat_id)
    found = turn or await gateway.client.session(chat_id).live()
    if found is None:
        return Response(status_code=204)
    handle = await _turn_of_chat(gateway, chat_id, found)
    return await _stream_chat(request, gateway, principal, handle, read_position(last_event_id))


@router.post("/{session_id}/stop")
async def stop(chat_id: ChatId, gateway: GatewayDep, principal: PrincipalDep, turn: TurnQuery = None) -> AffectedTurn:
    """Cancel the chat's live turn, or the one that is named: `stop()` of the client only stops reading."""
    principal.require_session(chat_id)
    if turn is None:
        return AffectedTurn(turn_id=await gateway.client.session(chat_id).interrupt("stopped in its chat"))
    handle = await _turn_of_chat(gateway, chat_id, turn)
    cancelled = await handle.cancel("stopped in its chat")
    return AffectedTurn(turn_id=None if cancelled == "ended" else handle.turn_id)


async def _stream_chat(
    request: Request,
    gateway: Gateway,
    principal: Principal,
    handle: AsyncTurnHandle,
    behind: StreamPosition = FROM_START,
    *,
    opens: bool = False,
) -> Response:
    state = initial_state(handle.turn_id)
    found = await chat_stream(request, gateway, principal, handle, WIRE, state, behind, opens=opens)
    return Response(status_code=204) if found is None else found


async def _turn_of_chat(gateway: Gateway, chat_id: str, turn_id: str) -> AsyncTurnHandle:
    handle = await gateway.client.handle(turn_id)
    if handle.session_id != chat_id:
        raise NotFound("a turn of another chat")
    return handle


async def _newest_turn(gateway: Gateway, session_id: str) -> str | None:
    turns = await gateway.client.session(session_id).history(1)
    return turns[-1].turn_id if turns else None

"""`/agui`: runs of AG-UI 1.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ag_ui.core import BaseEvent, Message
from fastapi import APIRouter, Path, Request, Response

from brainq.access import Verb
from brainq.client.options import SubmitOptions
from brainq.gateway.edge.dependencies import ID, Gateway, GatewayDep, Principal, PrincipalDep
from brainq.gateway.edge.problems import problem_responses
from brainq.gateway.wires.ag_ui.bodies import (
    RunBody,
    answered_calls,
    is_of_turn,
    messages_before_turn,
    read_answers,
    read_messages,
    read_question,
    read_run_history,
    submit_options,
)
from brainq.gateway.wires.ag_ui.endings import cut_events
from brainq.gateway.wires.ag_ui.events import RunState, initial_state, opening_events, render_event, rest_events
from brainq.gateway.wires.chat.requests import apply_answers, submit_question
from brainq.gateway.wires.chat.stream import ChatWire, chat_stream

router = APIRouter(tags=["AG-UI"])

STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events of AG-UI 1.0: server-sent events whose `data` are events, from RUN_STARTED to "
        "RUN_FINISHED or RUN_ERROR.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "There is nothing to follow."},
}


@router.post("/agui", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(409, 410)})
async def run(body: RunBody, request: Request, gateway: GatewayDep, principal: PrincipalDep) -> Response:
    """Run the default brain on a thread. See `/agui/{brain}`."""
    return await _run(body, None, request, gateway, principal)


@router.post("/agui/{brain}", response_model=None, responses={**STREAM_RESPONSES, **problem_responses(409, 410)})
async def run_brain(
    brain: Annotated[str, Path(pattern=ID)],
    body: RunBody,
    request: Request,
    gateway: GatewayDep,
    principal: PrincipalDep,
) -> Response:
    """Run a brain on a thread: the user's last message begins a turn, and repeated it is the same turn from its
    beginning; `resume`, and results of the application's tools, answer what a run stopped for, and stream the rest.

    Needs `read`, too; `decide` for `resume`, `steer` for results.
    """
    return await _run(body, brain, request, gateway, principal)


async def _run(body: RunBody, brain: str | None, request: Request, gateway: Gateway, principal: Principal) -> Response:
    principal.require_session(body.thread_id)
    messages = read_messages(body)
    if answers := read_answers(body, messages):
        handle, behind = await apply_answers(gateway, principal, body.thread_id, answers)
        before = messages_before_turn(messages, handle.turn_id)
        state = initial_state(handle.turn_id, body.thread_id, body.run_id, before, answered_calls(messages))
        found = await chat_stream(request, gateway, principal, handle, _make_wire(), state, behind, opens=True)
    else:
        question = read_question(messages)
        configures = Verb.CONFIGURE in principal.caller.verbs
        options: SubmitOptions = {**submit_options(body, messages, configures=configures), "brain": brain}
        history = read_run_history(messages, question)
        handle = await submit_question(gateway, principal, body.thread_id, question, options, history)
        before = messages_before_turn(messages, handle.turn_id)
        state = initial_state(handle.turn_id, body.thread_id, body.run_id, before)
        takes_back = [message for message in messages if is_of_turn(message, handle.turn_id)]
        found = await chat_stream(request, gateway, principal, handle, _make_wire(takes_back), state, opens=True)
    return Response(status_code=204) if found is None else found


def _make_wire(takes_back: Sequence[Message] = ()) -> ChatWire[RunState, BaseEvent]:
    return ChatWire(
        render=render_event,
        chat=lambda state: state.chat,
        encode=lambda event: event.model_dump_json(by_alias=True).encode(),
        opening=lambda state: opening_events(state, takes_back),
        rest=rest_events,
        cut=cut_events,
    )

"""`/agui`: runs of AG-UI 1.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ag_ui.core import BaseEvent, Message
from fastapi import APIRouter, Path, Request, Response

from brainq.access import Verb
from brainq.client.options import SubmitOptions
from brainq.http.ag_ui.bodies import (
    RunBody,
    answered_in,
    answers_of,
    before_the_turn,
    history_of,
    is_of,
    messages_of,
    options_of,
    question_of,
)
from brainq.http.ag_ui.endings import cut
from brainq.http.ag_ui.events import RunState, begin, opening, rest, tell
from brainq.http.chat_stream import Wire, chat_stream
from brainq.http.chat_turns import answer, ask
from brainq.http.gateway import ID, Asker, By, Gateway, Here
from brainq.http.problems import documented

router = APIRouter(tags=["AG-UI"])

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events of AG-UI 1.0: server-sent events whose `data` are events, from RUN_STARTED to "
        "RUN_FINISHED or RUN_ERROR.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "There is nothing to follow."},
}


@router.post("/agui", response_model=None, responses={**STREAM, **documented(409, 410)})
async def run(body: RunBody, request: Request, here: Here, by: By) -> Response:
    """Run the default brain on a thread. See `/agui/{brain}`."""
    return await _run(body, None, request, here, by)


@router.post("/agui/{brain}", response_model=None, responses={**STREAM, **documented(409, 410)})
async def run_brain(
    brain: Annotated[str, Path(pattern=ID)], body: RunBody, request: Request, here: Here, by: By
) -> Response:
    """Run a brain on a thread: the user's last message begins a turn, and sent again it is the same turn, told from
    its beginning; `resume`, and results of the application's tools, answer what a run stopped for, and tell the rest.

    Needs `read`, too; `decide` for `resume`, `steer` for results.
    """
    return await _run(body, brain, request, here, by)


async def _run(body: RunBody, brain: str | None, request: Request, here: Gateway, by: Asker) -> Response:
    by.require(body.thread_id)
    messages = messages_of(body)
    if answers := answers_of(body, messages):
        handle, behind = await answer(here, by, body.thread_id, answers)
        before = before_the_turn(messages, handle.turn_id)
        state = begin(handle.turn_id, body.thread_id, body.run_id, before, answered_in(messages))
        found = await chat_stream(request, here, by, handle, _wire(), state, behind, opens=True)
    else:
        question = question_of(messages)
        configures = Verb.CONFIGURE in by.caller.verbs
        options: SubmitOptions = {**options_of(body, messages, configures=configures), "brain": brain}
        history = history_of(messages, question)
        handle = await ask(here, by, body.thread_id, question, options, history)
        before = before_the_turn(messages, handle.turn_id)
        state = begin(handle.turn_id, body.thread_id, body.run_id, before)
        takes_back = [message for message in messages if is_of(message, handle.turn_id)]
        found = await chat_stream(request, here, by, handle, _wire(takes_back), state, opens=True)
    return Response(status_code=204) if found is None else found


def _wire(takes_back: Sequence[Message] = ()) -> Wire[RunState, BaseEvent]:
    return Wire(
        tell=tell,
        chat=lambda state: state.chat,
        encode=lambda event: event.model_dump_json(by_alias=True).encode(),
        opening=lambda state: opening(state, takes_back),
        rest=rest,
        cut=cut,
    )

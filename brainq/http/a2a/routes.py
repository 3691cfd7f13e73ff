"""The routes of A2A: cards, and one route for all that JSON-RPC asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    SendMessageRequest,
    SendMessageResponse,
    SubscribeToTaskRequest,
    Task,
)
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from google.protobuf import json_format
from google.protobuf.message import Message

from brainq.access import Verb
from brainq.brain import Brain
from brainq.client.async_handle import AsyncTurnHandle
from brainq.errors import BrainqError
from brainq.http.a2a.card import extended_card, public_card
from brainq.http.a2a.fold import Told, task_of
from brainq.http.a2a.rpc import Call, answer, as_a2a, check_version, read_call, read_params, refusal
from brainq.http.a2a.sending import send
from brainq.http.a2a.tasks import TaskStream, history_of, task_now, task_when
from brainq.http.event_stream import Reading, stream
from brainq.http.gateway import Asker, By, Gateway, Here, asker
from brainq.http.problems import Refused
from brainq.http.verbs import CARD

router = APIRouter(include_in_schema=False)  # its document is the card

CARD_KEPT_S = 300
CANCELLED_WITHIN_S = 2.0
"""How long a cancel is waited for: a call that runs is given time to stop by itself."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: of whom, by whom, what."""

    here: Gateway
    by: Asker
    request: Request
    brain: Brain
    call: Call

    def answer(self, message: Message) -> Response:
        return JSONResponse(answer(self.call.id, message))

    async def task(self, task_id: str) -> AsyncTurnHandle:
        """A task of the caller's own."""
        handle = await self.here.client.handle(task_id)
        self.by.require(handle.session_id)
        return handle


@router.get(CARD)
async def default_card(here: Here) -> Response:
    """The card of the default agent."""
    return _card(here, here.brains.default)


@router.get(f"/a2a/{{brain}}{CARD}")
async def card(brain: str, here: Here) -> Response:
    """The card of one agent."""
    return _card(here, _brain(here, brain))


@router.post("/a2a/{brain}", dependencies=[Depends(asker)])
async def ask(brain: str, request: Request, here: Here, by: By) -> Response:
    """Everything else. What a method needs beside the verb `read` is in its function."""
    found, call_id = _brain(here, brain), None
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise InvalidRequestError("send it with Content-Type: application/json")
        call = read_call(await request.body())
        call_id = call.id
        check_version(request.headers.get("a2a-version") or request.query_params.get("A2A-Version", ""))
        method = METHODS.get(call.method)
        if method is None:
            raise MethodNotFoundError(f"the methods are {', '.join(METHODS)}")
        return await method(Asked(here, by, request, found, call))
    except A2AError as error:
        return JSONResponse(refusal(call_id, error))
    except BrainqError as error:
        told = as_a2a(error)
        if told is None:
            raise
        return JSONResponse(refusal(call_id, told))


async def _send(asked: Asked) -> Response:
    given = read_params(asked.call.params, SendMessageRequest())
    history = _history_length(given.configuration)
    handle = await send(asked.here, asked.by, asked.brain.name, given)
    told = await task_now(handle)
    if not given.configuration.return_immediately:
        wait_s = asked.here.settings.http_wait_s
        # Who cannot wait just now is told how it stands: the message was taken all the same.
        with suppress(Refused), asked.here.streams.enter(asked.by.caller.counted_as) as place:
            told = await task_when(_wants_an_answer, handle, told, wait_s, place, asked.request.receive)
    return asked.answer(SendMessageResponse(task=await _task(handle, told, history)))


async def _send_streaming(asked: Asked) -> Response:
    given = read_params(asked.call.params, SendMessageRequest())
    handle = await send(asked.here, asked.by, asked.brain.name, given)
    told = await task_now(handle)
    return await _streamed(asked, handle, told, is_whole=_wants_an_answer(told))


async def _subscribe(asked: Asked) -> Response:
    handle = await asked.task(read_params(asked.call.params, SubscribeToTaskRequest()).id)
    told = await task_now(handle)
    if told.is_over:
        raise UnsupportedOperationError("the task has ended; GetTask has it whole")
    return await _streamed(asked, handle, told, is_whole=False)


async def _get(asked: Asked) -> Response:
    given = read_params(asked.call.params, GetTaskRequest())
    history = _history_length(given)
    handle = await asked.task(given.id)
    return asked.answer(await _task(handle, await task_now(handle), history))


async def _cancel(asked: Asked) -> Response:
    asked.by.require_verb(Verb.STEER)
    handle = await asked.task(read_params(asked.call.params, CancelTaskRequest()).id)
    if await handle.cancel("by an A2A client") == "ended":
        raise TaskNotCancelableError("the task has ended")
    told = await task_now(handle)
    with suppress(Refused), asked.here.streams.enter(asked.by.caller.counted_as) as place:
        told = await task_when(_is_over, handle, told, CANCELLED_WITHIN_S, place, asked.request.receive)
    return asked.answer(task_of(told))


async def _extended_card(asked: Asked) -> Response:
    read_params(asked.call.params, GetExtendedAgentCardRequest())
    here = asked.here
    return asked.answer(
        extended_card(asked.brain, here.settings.http_a2a, asks_for_tokens=not here.who.is_open)
    )


async def _list(asked: Asked) -> Response:
    """A2A wants them counted, and by their last change; nothing here knows either without reading every turn."""
    raise UnsupportedOperationError("tasks are not listed here; GET /v1/turns lists them, the newest first")


async def _no_push(asked: Asked) -> Response:
    raise PushNotificationNotSupportedError("there are none; follow the task by SubscribeToTask")


METHODS: dict[str, Callable[[Asked], Awaitable[Response]]] = {
    "SendMessage": _send,
    "SendStreamingMessage": _send_streaming,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "SubscribeToTask": _subscribe,
    "GetExtendedAgentCard": _extended_card,
    "CreateTaskPushNotificationConfig": _no_push,
    "GetTaskPushNotificationConfig": _no_push,
    "ListTaskPushNotificationConfigs": _no_push,
    "DeleteTaskPushNotificationConfig": _no_push,
}


def _is_over(told: Told) -> bool:
    return told.is_over


def _wants_an_answer(told: Told) -> bool:
    """Whether it is the client's turn: to read the end, or to answer."""
    return told.is_over or told.is_interrupted


async def _streamed(asked: Asked, handle: AsyncTurnHandle, told: Told, *, is_whole: bool) -> Response:
    """The task, and what follows unless that was all."""
    wire = TaskStream(handle, told, asked.call.id)

    async def begin() -> Reading | None:
        return None if is_whole else Reading(handle.events(told.seq))

    found = await stream(asked.request, asked.here, asked.by, begin, wire.write, wire.opening)
    return found or Response(wire.opening, media_type="text/event-stream")


async def _task(handle: AsyncTurnHandle, told: Told, history: int) -> Task:
    task = task_of(told)
    if history:
        task.history.extend(await history_of(handle, history))
    return task


def _history_length(given: Message) -> int:
    length = int(getattr(given, "history_length", 0))
    if length < 0:
        raise InvalidParamsError("historyLength has to be 0 or more")
    return length


def _card(here: Gateway, brain: Brain) -> Response:
    made = public_card(brain, here.settings.http_a2a, asks_for_tokens=not here.who.is_open)
    return JSONResponse(
        json_format.MessageToDict(made), headers={"Cache-Control": f"public, max-age={CARD_KEPT_S}"}
    )


def _brain(here: Gateway, name: str) -> Brain:
    found = here.brains.of(name)
    if found is None:
        raise Refused("no-such-route", "no agent has this name; the card at the gateway's root names one")
    return found

"""The routes of A2A: agent cards, and one route for all JSON-RPC methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    SendMessageResponse,
    StringList,
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

from brainq import __version__
from brainq.access import Verb
from brainq.brain.brain import Brain
from brainq.client.async_handle import AsyncTurnHandle
from brainq.errors import BrainqError
from brainq.gateway.edge.dependencies import Gateway, GatewayDep, Principal, PrincipalDep, current_principal
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.verbs import AGENT_CARD_PATH
from brainq.gateway.rest.event_stream import EventReader, stream_events
from brainq.gateway.wires.a2a.messages import send_message
from brainq.gateway.wires.a2a.rpc import (
    VERSION,
    RpcCall,
    check_version,
    read_call,
    read_params,
    rpc_error,
    rpc_result,
    to_a2a_error,
)
from brainq.gateway.wires.a2a.task_fold import JSON_TYPE, FoldedTask, render_task
from brainq.gateway.wires.a2a.tasks import TaskStream, read_task, task_history, wait_for_task

# Agent cards: who an agent is, where it is asked and how one is let in; and, for who is let in, what its tools are.

OUTPUT_MODES = ("text/plain", JSON_TYPE)

INPUT_MODES = (*OUTPUT_MODES, "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")

TOKEN_SCHEME = "token"


def public_card(brain: Brain, url: str, *, asks_for_tokens: bool) -> AgentCard:
    """For everybody: of the tools it says nothing. `url` is where the gateway is reached."""
    card = AgentCard(
        name=brain.name,
        description=_description(brain),
        version=__version__,
        supported_interfaces=[
            AgentInterface(url=f"{url}/a2a/{brain.name}", protocol_binding="JSONRPC", protocol_version=VERSION)
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=True),
        default_input_modes=INPUT_MODES,
        default_output_modes=OUTPUT_MODES,
        skills=[AgentSkill(id="chat", name=brain.name, description=_description(brain), tags=["chat"])],
    )
    if asks_for_tokens:
        bearer = HTTPAuthSecurityScheme(scheme="bearer", description="`brainq token create` makes one")
        card.security_schemes[TOKEN_SCHEME].CopyFrom(SecurityScheme(http_auth_security_scheme=bearer))
        card.security_requirements.append(SecurityRequirement(schemes={TOKEN_SCHEME: StringList()}))
    return card


def extended_card(brain: Brain, url: str, *, asks_for_tokens: bool) -> AgentCard:
    """For who is let in: each tool is a skill, tagged with what it does to the world."""
    card = public_card(brain, url, asks_for_tokens=asks_for_tokens)
    for name in brain.tools:
        spec = brain.tools[name].spec
        card.skills.append(
            AgentSkill(id=name, name=name, description=spec.description or name, tags=[spec.effect.value.lower()])
        )
    return card


def _description(brain: Brain) -> str:
    return brain.description or f"The agent {brain.name}."


# The routes of A2A: cards, and one route for all that JSON-RPC asks.

router = APIRouter(include_in_schema=False)  # its document is the card

CARD_MAX_AGE_S = 300

CANCEL_WAIT_S = 2.0

"""How long a cancel is waited for: a call that runs is given time to stop by itself."""


@dataclass(frozen=True, slots=True)
class A2aRequest:
    """One request: of whom, by whom, what."""

    here: Gateway
    by: Principal
    request: Request
    brain: Brain
    call: RpcCall

    def answer(self, message: Message) -> Response:
        return JSONResponse(rpc_result(self.call.id, message))

    async def task(self, task_id: str) -> AsyncTurnHandle:
        """A task of the caller's own."""
        handle = await self.here.client.handle(task_id)
        self.by.require(handle.session_id)
        return handle


@router.get(AGENT_CARD_PATH)
async def default_card(here: GatewayDep) -> Response:
    """The card of the default agent."""
    return _card_response(here, here.brains.default)


@router.get(f"/a2a/{{brain}}{AGENT_CARD_PATH}")
async def card(brain: str, here: GatewayDep) -> Response:
    """The card of one agent."""
    return _card_response(here, _require_brain(here, brain))


@router.post("/a2a/{brain}", dependencies=[Depends(current_principal)])
async def call_method(brain: str, request: Request, here: GatewayDep, by: PrincipalDep) -> Response:
    """Everything else. What a method needs beside the verb `read` is in its function."""
    found, call_id = _require_brain(here, brain), None
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise InvalidRequestError("send it with Content-Type: application/json")
        call = read_call(await request.body())
        call_id = call.id
        check_version(request.headers.get("a2a-version") or request.query_params.get("A2A-Version", ""))
        method = METHODS.get(call.method)
        if method is None:
            raise MethodNotFoundError(f"the methods are {', '.join(METHODS)}")
        return await method(A2aRequest(here, by, request, found, call))
    except A2AError as error:
        return JSONResponse(rpc_error(call_id, error))
    except BrainqError as error:
        told = to_a2a_error(error)
        if told is None:
            raise
        return JSONResponse(rpc_error(call_id, told))


async def _send(asked: A2aRequest) -> Response:
    given = read_params(asked.call.params, SendMessageRequest())
    history = _history_length(given.configuration)
    handle = await send_message(asked.here, asked.by, asked.brain.name, given)
    told = await read_task(handle)
    if not given.configuration.return_immediately:
        wait_s = asked.here.settings.http_wait_s
        # Who cannot wait just now is told how it stands: the message was taken all the same.
        with suppress(RequestRejected), asked.here.streams.enter(asked.by.caller.counted_as) as place:
            told = await wait_for_task(_is_clients_turn, handle, told, wait_s, place, asked.request.receive)
    return asked.answer(SendMessageResponse(task=await _task_with_history(handle, told, history)))


async def _send_streaming(asked: A2aRequest) -> Response:
    given = read_params(asked.call.params, SendMessageRequest())
    handle = await send_message(asked.here, asked.by, asked.brain.name, given)
    told = await read_task(handle)
    return await _stream_task(asked, handle, told, is_whole=_is_clients_turn(told))


async def _subscribe(asked: A2aRequest) -> Response:
    handle = await asked.task(read_params(asked.call.params, SubscribeToTaskRequest()).id)
    told = await read_task(handle)
    if told.is_over:
        raise UnsupportedOperationError("the task has ended; GetTask has it whole")
    return await _stream_task(asked, handle, told, is_whole=False)


async def _get(asked: A2aRequest) -> Response:
    given = read_params(asked.call.params, GetTaskRequest())
    history = _history_length(given)
    handle = await asked.task(given.id)
    return asked.answer(await _task_with_history(handle, await read_task(handle), history))


async def _cancel(asked: A2aRequest) -> Response:
    asked.by.require_verb(Verb.STEER)
    handle = await asked.task(read_params(asked.call.params, CancelTaskRequest()).id)
    if await handle.cancel("by an A2A client") == "ended":
        raise TaskNotCancelableError("the task has ended")
    told = await read_task(handle)
    with suppress(RequestRejected), asked.here.streams.enter(asked.by.caller.counted_as) as place:
        told = await wait_for_task(_has_ended, handle, told, CANCEL_WAIT_S, place, asked.request.receive)
    return asked.answer(render_task(told))


async def _extended_card(asked: A2aRequest) -> Response:
    read_params(asked.call.params, GetExtendedAgentCardRequest())
    here = asked.here
    return asked.answer(extended_card(asked.brain, here.settings.http_a2a, asks_for_tokens=not here.who.is_open))


async def _list(asked: A2aRequest) -> Response:
    """A2A wants them counted, and by their last change; nothing here knows either without reading every turn."""
    raise UnsupportedOperationError("tasks are not listed here; GET /v1/turns lists them, the newest first")


async def _no_push(asked: A2aRequest) -> Response:
    raise PushNotificationNotSupportedError("there are none; follow the task by SubscribeToTask")


METHODS: dict[str, Callable[[A2aRequest], Awaitable[Response]]] = {
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


def _has_ended(told: FoldedTask) -> bool:
    return told.is_over


def _is_clients_turn(told: FoldedTask) -> bool:
    """Whether it is the client's turn: to read the end, or to answer."""
    return told.is_over or told.is_interrupted


async def _stream_task(asked: A2aRequest, handle: AsyncTurnHandle, told: FoldedTask, *, is_whole: bool) -> Response:
    """The task, and what follows unless that was all."""
    wire = TaskStream(handle, told, asked.call.id)

    async def begin() -> EventReader | None:
        return None if is_whole else EventReader(handle.events(told.seq))

    found = await stream_events(asked.request, asked.here, asked.by, begin, wire.write, wire.opening)
    return found or Response(wire.opening, media_type="text/event-stream")


async def _task_with_history(handle: AsyncTurnHandle, told: FoldedTask, history: int) -> Task:
    task = render_task(told)
    if history:
        task.history.extend(await task_history(handle, history))
    return task


def _history_length(given: Message) -> int:
    length = int(getattr(given, "history_length", 0))
    if length < 0:
        raise InvalidParamsError("historyLength has to be 0 or more")
    return length


def _card_response(here: Gateway, brain: Brain) -> Response:
    made = public_card(brain, here.settings.http_a2a, asks_for_tokens=not here.who.is_open)
    return JSONResponse(json_format.MessageToDict(made), headers={"Cache-Control": f"public, max-age={CARD_MAX_AGE_S}"})


def _require_brain(here: Gateway, name: str) -> Brain:
    found = here.brains.of(name)
    if found is None:
        raise RequestRejected("no-such-route", "no agent has this name; the card at the gateway's root names one")
    return found

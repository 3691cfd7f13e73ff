"""The routes of A2A: agent cards, and one route for all JSON-RPC methods."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from a2a.types import a2a_pb2 as pb
from a2a.utils import errors as a2a
from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse
from fastapi.sse import format_sse_event
from google.protobuf import json_format
from google.protobuf.message import Message

from brainq import __version__
from brainq.app.access import Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contrib.a2a import requests, tasks
from brainq.engine.brain.brain import Brain
from brainq.errors import BrainqError
from brainq.gateway.edge.access import AGENT_CARD_PATH, GatewayDep, RequestDep, current_request
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.edge.request import Gateway, HttpRequest
from brainq.gateway.rest.event_stream import EncodedEvent, EventReader, StreamEncoding, stream_events

OUTPUT_MODES = ("text/plain", tasks.JSON_TYPE)
INPUT_MODES = (*OUTPUT_MODES, "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
TOKEN_SCHEME = "token"
VERBS: dict[str, Verb] = {"POST /a2a/{brain}": Verb.READ}
"""The verb that every request needs. Some methods need further verbs."""
router = APIRouter(include_in_schema=False)  # agent cards document it
CARD_MAX_AGE_S = 300
CANCEL_WAIT_S = 2.0
"""The seconds to wait for a cancel, so that a running call can stop by itself."""


def public_card(brain: Brain, url: str, *, needs_token: bool) -> pb.AgentCard:
    """Return the public card, which lists no tools. `url` is the gateway's public address."""
    card = pb.AgentCard(
        name=brain.name,
        description=_description(brain),
        version=__version__,
        supported_interfaces=[
            pb.AgentInterface(
                url=f"{url}/a2a/{brain.name}", protocol_binding="JSONRPC", protocol_version=requests.VERSION
            )
        ],
        capabilities=pb.AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=True),
        default_input_modes=INPUT_MODES,
        default_output_modes=OUTPUT_MODES,
        skills=[pb.AgentSkill(id="chat", name=brain.name, description=_description(brain), tags=["chat"])],
    )
    if needs_token:
        bearer = pb.HTTPAuthSecurityScheme(scheme="bearer", description="`brainq token create` makes one")
        card.security_schemes[TOKEN_SCHEME].CopyFrom(pb.SecurityScheme(http_auth_security_scheme=bearer))
        card.security_requirements.append(pb.SecurityRequirement(schemes={TOKEN_SCHEME: pb.StringList()}))
    return card


def extended_card(brain: Brain, url: str, *, needs_token: bool) -> pb.AgentCard:
    """Return the card for authenticated callers, in which each tool is a skill tagged with its effect."""
    card = public_card(brain, url, needs_token=needs_token)
    for name in brain.tools:
        spec = brain.tools[name].spec
        card.skills.append(
            pb.AgentSkill(id=name, name=name, description=spec.description or name, tags=[spec.effect.value.lower()])
        )
    return card


def _description(brain: Brain) -> str:
    return brain.description or f"The agent {brain.name}."


@dataclass(frozen=True, slots=True)
class A2aRequest(HttpRequest):
    """A JSON-RPC request to an agent."""

    brain: Brain
    call: requests.RpcCall

    def answer(self, message: Message) -> Response:
        return JSONResponse(requests.rpc_result(self.call.id, message))


@router.get(AGENT_CARD_PATH)
async def default_card(gateway: GatewayDep) -> Response:
    return _card_response(gateway, gateway.brains.default)


@router.get(f"/a2a/{{brain}}{AGENT_CARD_PATH}")
async def card(brain: str, gateway: GatewayDep) -> Response:
    return _card_response(gateway, _require_brain(gateway, brain))


@router.post("/a2a/{brain}", dependencies=[Depends(current_request)])
async def call_method(brain: str, request: RequestDep) -> Response:
    """Call a method. Its function checks the verbs that it needs in addition to `read`."""
    found, call_id = _require_brain(request.gateway, brain), None
    try:
        if request.http.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise a2a.InvalidRequestError("send it with Content-Type: application/json")
        call = requests.read_call(await request.http.body())
        call_id = call.id
        requests.check_version(
            request.http.headers.get("a2a-version") or request.http.query_params.get("A2A-Version", "")
        )
        method = METHODS.get(call.method)
        if method is None:
            raise a2a.MethodNotFoundError(f"the methods are {', '.join(METHODS)}")
        return await method(A2aRequest(request.gateway, request.caller, request.verb, request.http, found, call))
    except a2a.A2AError as error:
        return JSONResponse(requests.rpc_error(call_id, error))
    except BrainqError as error:
        a2a_error = requests.to_a2a_error(error)
        if a2a_error is None:
            raise
        return JSONResponse(requests.rpc_error(call_id, a2a_error))


async def _send(request: A2aRequest) -> Response:
    params = requests.read_params(request.call.params, pb.SendMessageRequest())
    history = _history_length(params.configuration)
    handle = await requests.send_message(request, request.brain.name, params)
    task = await tasks.read_task(handle)
    if not params.configuration.return_immediately:
        task = await tasks.wait_for_task(request, handle, task, _is_clients_turn, request.gateway.settings.http_wait_s)
    return request.answer(pb.SendMessageResponse(task=await _task_with_history(handle, task, history)))


async def _send_streaming(request: A2aRequest) -> Response:
    params = requests.read_params(request.call.params, pb.SendMessageRequest())
    handle = await requests.send_message(request, request.brain.name, params)
    task = await tasks.read_task(handle)
    return await _stream_task(request, handle, task, is_whole=_is_clients_turn(task))


async def _subscribe(request: A2aRequest) -> Response:
    handle = await request.own_turn(requests.read_params(request.call.params, pb.SubscribeToTaskRequest()).id)
    task = await tasks.read_task(handle)
    if task.is_over:
        raise a2a.UnsupportedOperationError("the task has ended; read it with GetTask")
    return await _stream_task(request, handle, task, is_whole=False)


async def _get(request: A2aRequest) -> Response:
    params = requests.read_params(request.call.params, pb.GetTaskRequest())
    history = _history_length(params)
    handle = await request.own_turn(params.id)
    return request.answer(await _task_with_history(handle, await tasks.read_task(handle), history))


async def _cancel(request: A2aRequest) -> Response:
    request.require_verb(Verb.STEER)
    handle = await request.own_turn(requests.read_params(request.call.params, pb.CancelTaskRequest()).id)
    if await handle.cancel("by an A2A client") == "ended":
        raise a2a.TaskNotCancelableError("the task has ended")
    task = await tasks.wait_for_task(
        request, handle, await tasks.read_task(handle), lambda task: task.is_over, CANCEL_WAIT_S
    )
    return request.answer(tasks.render_task(task))


async def _extended_card(request: A2aRequest) -> Response:
    requests.read_params(request.call.params, pb.GetExtendedAgentCardRequest())
    gateway = request.gateway
    return request.answer(
        extended_card(request.brain, gateway.settings.http_a2a, needs_token=not gateway.authenticator.is_loopback_only)
    )


async def _list(request: A2aRequest) -> Response:
    # A2A requires a count and an order by last change, both of which would have to read every turn.
    raise a2a.UnsupportedOperationError("tasks are not listed over A2A; GET /v1/turns lists them, newest first")


async def _no_push(request: A2aRequest) -> Response:
    raise a2a.PushNotificationNotSupportedError("push notifications are not supported; use SubscribeToTask")


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


def _is_clients_turn(task: tasks.FoldedTask) -> bool:
    """Return whether the client acts next: either the task has ended, or it waits for an answer."""
    return task.is_over or task.is_interrupted


async def _stream_task(
    request: A2aRequest, handle: AsyncTurnHandle, task: tasks.FoldedTask, *, is_whole: bool
) -> Response:
    """Stream the task, followed by its updates. With `is_whole` no updates follow, because the client acts next."""
    wire = TaskStream(handle, task, request.call.id)

    async def begin() -> EventReader | None:
        return None if is_whole else EventReader(handle.events(task.seq))

    found = await stream_events(request, begin, wire)
    return found or Response(wire.opening, media_type="text/event-stream")


async def _task_with_history(handle: AsyncTurnHandle, task: tasks.FoldedTask, history: int) -> pb.Task:
    rendered = tasks.render_task(task)
    if history:
        rendered.history.extend(await tasks.task_history(handle, history))
    return rendered


def _history_length(params: Message) -> int:
    length = int(getattr(params, "history_length", 0))
    if length < 0:
        raise a2a.InvalidParamsError("historyLength must be 0 or more")
    return length


def _card_response(gateway: Gateway, brain: Brain) -> Response:
    made = public_card(brain, gateway.settings.http_a2a, needs_token=not gateway.authenticator.is_loopback_only)
    return JSONResponse(json_format.MessageToDict(made), headers={"Cache-Control": f"public, max-age={CARD_MAX_AGE_S}"})


def _require_brain(gateway: Gateway, name: str) -> Brain:
    found = gateway.brains.of(name)
    if found is None:
        raise RequestRejected(
            "no-such-route", "no agent has this name; the card at the gateway's root names the default one"
        )
    return found


class TaskStream(StreamEncoding):
    """The encoding of a task's stream: first the task, then an update for each difference.

    The stream ends when the task ends or begins to wait for its client.
    """

    def __init__(self, handle: AsyncTurnHandle, task: tasks.FoldedTask, call_id: str | int | None) -> None:
        self._handle = handle
        self._task = task
        self._call_id = call_id
        self.opening = rpc_frame(call_id, pb.StreamResponse(task=tasks.render_task(task)))

    async def write(self, event: TurnEvent) -> EncodedEvent:
        before = self._task
        self._task = after = await tasks.fold_next(self._handle, before, event)
        body = b"".join(rpc_frame(self._call_id, update) for update in tasks.task_updates(before, after))
        return EncodedEvent(body, after.is_over or (after.is_interrupted and not before.is_interrupted))


def rpc_frame(call_id: str | int | None, update: pb.StreamResponse) -> bytes:
    return format_sse_event(data_str=json.dumps(requests.rpc_result(call_id, update)))

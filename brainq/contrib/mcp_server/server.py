"""The MCP server: the list of tools, turns as resources, failures, and the server over stdio."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult
from mcp.server.stdio import stdio_server
from pydantic import ValidationError

from brainq import __version__
from brainq.app.access import Caller, Verb
from brainq.client.async_handle import AsyncTurnHandle
from brainq.contracts.file import File
from brainq.contracts.ids import TURN_ID_PATTERN, check_turn_id, new_turn_id
from brainq.contracts.message import Message
from brainq.contracts.status import Effect
from brainq.contracts.turn import CONFIGURE_OPTIONS
from brainq.contrib.mcp_server.requests import CallsInFlight, McpContext, McpRequest, read_input
from brainq.contrib.mcp_server.tools import BRAIN_TOOL_VERBS, TURN_TOOLS, BrainToolInput, TurnTool, run_brain_tool
from brainq.contrib.mcp_server.turn_report import TurnReport, report_schema, report_turn, tool_error, tool_result
from brainq.engine.brain.brain import Brain
from brainq.engine.tools.mcp.sdk import keep_sdk_quiet
from brainq.errors import BrainqError, ContentNotKept, NotFound
from brainq.gateway.edge.authentication import LOCAL_CALLER
from brainq.gateway.edge.problems import NOT_FOUND, RequestRejected, problem_of
from brainq.gateway.edge.request import Gateway
from brainq.gateway.rest.bodies import DEFAULT_LIST_PAGE, DEFAULT_PAGE
from brainq.gateway.rest.turns import TranscriptPage
from brainq.runtime.observe.logs import logger

JSON_TYPE = "application/json"
_URI = re.compile(rf"brainq://turns/({TURN_ID_PATTERN[1:-1]})(/transcript|/files/([0-9a-f]{{64}}))?")
log = logger("brainq.gateway")
MAX_TOOL_NAME_CHARS = 64
INSTRUCTIONS = (
    "Each agent is a tool: call it with a message, and it answers. If you do not wait, it continues by itself, and "
    "`result` has the answer later. Pass the session of an answer to continue its conversation. If an agent waits for "
    "an approval, ask your user before you approve."
)


def turn_templates() -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                name="turn",
                uri_template="brainq://turns/{turn_id}",
                description="A turn's outcome or state.",
                mime_type=JSON_TYPE,
            ),
            types.ResourceTemplate(
                name="transcript",
                uri_template="brainq://turns/{turn_id}/transcript",
                description="A turn's messages: the user's, the model's with its calls, and the results of the calls.",
                mime_type=JSON_TYPE,
            ),
            types.ResourceTemplate(
                name="file",
                uri_template="brainq://turns/{turn_id}/files/{sha256}",
                description="A file of a turn's messages or tool results.",
            ),
        ]
    )


async def turn_resources(request: McpRequest, cursor: str | None) -> types.ListResourcesResult:
    """List the caller's turns, newest first. The list is empty if the caller lacks the verb."""
    if Verb.READ not in request.caller.verbs:
        return types.ListResourcesResult(resources=[])
    after = None if cursor is None else check_turn_id("cursor", cursor)
    found = await request.client.turns(limit=DEFAULT_LIST_PAGE, session_prefixes=request.caller.prefixes, after=after)
    return types.ListResourcesResult(
        resources=[
            types.Resource(
                name=turn.turn_id,
                title=turn.message or turn.turn_id,
                uri=f"brainq://turns/{turn.turn_id}",
                mime_type=JSON_TYPE,
            )
            for turn in found
        ],
        next_cursor=found[-1].turn_id if len(found) == DEFAULT_LIST_PAGE else None,
    )


async def read_resource(request: McpRequest, uri: str) -> types.ReadResourceResult:
    """Read a resource. Raises MCPError if it does not exist or is another caller's."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise MCPError(
            types.INVALID_PARAMS,
            f"the resources are brainq://turns/TURN_ID, its /transcript and /files/SHA256; {NOT_FOUND}",
        )
    try:
        handle = await request.own_turn(found[1])
        if found[3]:
            return _file_resource(uri, await handle.file(found[3]))
        if found[2]:
            messages = await _all_messages(handle)
            page = TranscriptPage(turn_id=handle.turn_id, session_id=handle.session_id, messages=messages)
            text = page.model_dump_json()
        else:
            text = (await report_turn(request, handle)).model_dump_json()
    except NotFound:
        raise MCPError(types.INVALID_PARAMS, NOT_FOUND) from None
    except ContentNotKept as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=JSON_TYPE, text=text)])


def _file_resource(uri: str, file: File) -> types.ReadResourceResult:
    blob = base64.b64encode(file.data).decode()
    return types.ReadResourceResult(
        contents=[types.BlobResourceContents(uri=uri, mime_type=file.media_type, blob=blob)]
    )


async def _all_messages(handle: AsyncTurnHandle) -> tuple[Message, ...]:
    """Return all messages, because a resource has no pages."""
    messages: tuple[Message, ...] = ()
    while page := await handle.transcript(DEFAULT_PAGE, len(messages)):
        messages += page
        if len(page) < DEFAULT_PAGE:
            break
    return messages


def brains_by_tool(brains: Iterable[Brain]) -> dict[str, Brain]:
    """Return the brains by the names of their tools: at most 64 letters, digits, _ and -, all different."""
    found: dict[str, Brain] = {}
    for brain in brains:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", brain.name)
        if name in TURN_TOOLS:
            name = f"ask_{name}"
        if len(name) > MAX_TOOL_NAME_CHARS or name in found:
            digest = hashlib.sha256(brain.name.encode()).hexdigest()[:8]
            name = f"{name[: MAX_TOOL_NAME_CHARS - len(digest) - 1]}_{digest}"
        found[name] = brain
    return found


def tools_for(caller: Caller, brains: dict[str, Brain]) -> list[types.Tool]:
    """Return the tools whose verbs the caller has, the brains' first."""
    world = _world_hints(brains.values())
    agents = [_brain_tool(name, brain) for name, brain in brains.items()]
    verbs = [_turn_tool(tool, caller, world) for tool in TURN_TOOLS.values() if tool.needs <= caller.verbs]
    return [*(agents if caller.verbs >= BRAIN_TOOL_VERBS else ()), *verbs]


def _brain_tool(name: str, brain: Brain) -> types.Tool:
    destructive, open_world = _world_hints([brain])
    return types.Tool(
        name=name,
        description=brain.description or f"Ask the agent {brain.name}.",
        input_schema=BrainToolInput.model_json_schema(),
        output_schema=report_schema(brain.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=destructive, idempotent_hint=False, open_world_hint=open_world
        ),
    )


def _turn_tool(tool: TurnTool, caller: Caller, world: tuple[bool, bool]) -> types.Tool:
    schema = tool.input.model_json_schema()
    if Verb.CONFIGURE not in caller.verbs:
        for option in CONFIGURE_OPTIONS & set(schema["properties"]):
            del schema["properties"][option]
    acts = tool.effect == "acts"
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        output_schema=report_schema(None)
        if tool.output is TurnReport
        else tool.output.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.effect == "looks",
            destructive_hint=tool.effect == "ends" or (acts and world[0]),
            idempotent_hint=tool.is_idempotent or tool.effect == "looks",
            open_world_hint=acts and world[1],
        ),
    )


def _world_hints(brains: Iterable[Brain]) -> tuple[bool, bool]:
    """Return whether the brains' tools may destroy something, and whether they may reach the outside world."""
    effects = {spec.effect for brain in brains for spec in brain.tools.specs.values()}
    return Effect.DESTRUCTIVE in effects, bool(effects - {Effect.LOCAL_WRITE})


def make_server(gateway: Gateway, calls: CallsInFlight, to_request: Callable[[McpContext], McpRequest]) -> Server[Any]:
    """Build the server. `to_request` adds the caller to the SDK's context of a request."""
    keep_sdk_quiet()
    handlers = _Handlers(brains_by_tool(gateway.brains), calls, to_request)
    server: Server[Any] = Server(
        "brainq",
        version=__version__,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda tool: None,  # no tool repeats its input in headers, so no schema is needed
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    server.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, handlers.cancelled)
    server.middleware.append(_report_failures)
    return server


async def _report_failures(ctx: McpContext, call_next: CallNext) -> HandlerResult:
    """Convert refusals to errors of the protocol, and log a bug under an id that its error contains."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except (BrainqError, RequestRejected) as refusal:
        problem = problem_of(refusal)
        raise MCPError(types.INVALID_REQUEST, f"{problem.title}: {problem.detail}") from None
    except Exception as failure:
        problem_id = new_turn_id()
        log.error("a request failed", failure=failure, problem_id=problem_id, route="mcp")
        raise MCPError(
            types.INTERNAL_ERROR, f"a bug in brainq; the details are in brainq's log under {problem_id}"
        ) from None


@dataclass(frozen=True, slots=True)
class _Handlers:
    brains: dict[str, Brain]
    calls: CallsInFlight
    to_request: Callable[[McpContext], McpRequest]

    async def list_tools(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools_for(self.to_request(context).caller, self.brains))

    async def call_tool(
        self, context: McpContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            return await self._call(self.to_request(context), params)
        except (BrainqError, RequestRejected) as refusal:
            return tool_error(refusal)

    async def _call(
        self, request: McpRequest, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        brain, tool = self.brains.get(params.name), TURN_TOOLS.get(params.name)
        if brain is not None and request.caller.verbs >= BRAIN_TOOL_VERBS:
            return await run_brain_tool(request, brain, params, self.calls)
        if tool is not None and request.caller.verbs >= tool.needs:
            args = read_input(tool.input, "arguments", params.arguments or {})
            return tool_result(request, await tool.run(request, args, self.calls))
        raise MCPError(types.INVALID_PARAMS, "there is no such tool; tools/list lists all tools")

    async def list_resources(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await turn_resources(self.to_request(context), params.cursor if params else None)

    async def list_templates(
        self, context: McpContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return turn_templates()

    async def read_resource(
        self, context: McpContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await read_resource(self.to_request(context), params.uri)

    async def cancelled(self, context: McpContext, params: types.CancelledNotificationParams) -> None:
        if params.request_id is not None:
            self.calls.cancelled(self.to_request(context), params.request_id)


def serve_stdio(gateway: Gateway) -> None:
    """Serve the program that started this one until stdin ends, with all rights of the deployment's environment.

    Turns that have begun continue afterwards.
    """
    asyncio.run(_serve_stdio(gateway))


async def _serve_stdio(gateway: Gateway) -> None:
    calls = CallsInFlight(gateway.client)
    server = make_server(gateway, calls, connection_requests(gateway, LOCAL_CALLER))
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        await calls.close()
    finally:
        gateway.long_work.shutdown(wait=False, cancel_futures=True)
        await gateway.client.close()


def connection_requests(gateway: Gateway, caller: Caller) -> Callable[[McpContext], McpRequest]:
    """Return a function that makes the requests of one connection, within which their ids are unique."""
    scope = f"connection {secrets.token_hex(16)}"
    return lambda context: McpRequest(gateway, caller, Verb.READ, context, scope)

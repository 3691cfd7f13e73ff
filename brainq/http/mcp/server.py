"""The server that the SDK drives: its handlers, and what becomes of their failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp import MCPError
from mcp.server import Server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotificationParams,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from brainq import __version__
from brainq.access import Caller
from brainq.contracts.ids import new_turn_id
from brainq.errors import BrainqError
from brainq.http.gateway import Gateway
from brainq.http.mcp.asked import Asked, Context, read
from brainq.http.mcp.brain_tool import ask
from brainq.http.mcp.calls_in_flight import CallsInFlight
from brainq.http.mcp.resources import listed, read_resource, templates
from brainq.http.mcp.results import refusal_of, result_of
from brainq.http.mcp.tools import NEEDED_TO_ASK, brains_by_tool, tools_for
from brainq.http.mcp.turn_tools import TURN_TOOLS
from brainq.http.problems import Refused
from brainq.observe.logs import logger
from brainq.tools.mcp.sdk_logs import keep_sdk_quiet

INSTRUCTIONS = (
    "Each agent is a tool: call it with a message, and it answers. What it does goes on if you do not wait for it: "
    "`result` has the answer later. Give the session of an answer to go on with its conversation. Where an agent "
    "waits for an approval, ask your user before you approve."
)
R = TypeVar("R")
log = logger("brainq.http")


def make_server(here: Gateway, calls: CallsInFlight, asked_of: Callable[[Context], Asked]) -> Server[Any]:
    """asked_of: who asks, and what the SDK knows of the request."""
    keep_sdk_quiet()
    brains = brains_by_tool(here.brains)

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools_for(asked_of(context).caller, brains))

    async def call_tool(
        context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        asked = asked_of(context)
        try:
            return await _told(_call(asked, params))
        except (BrainqError, Refused) as refusal:
            return refusal_of(refusal)

    async def _call(asked: Asked, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        brain, tool = brains.get(params.name), TURN_TOOLS.get(params.name)
        if brain is not None and _has(asked.caller, NEEDED_TO_ASK):
            return await ask(asked, brain, params, calls)
        if tool is not None and _has(asked.caller, tool.needs):
            given = read(tool.input, "arguments", params.arguments or {})
            return result_of(asked, await tool.run(asked, given, calls))
        raise MCPError(INVALID_PARAMS, "there is no such tool; tools/list has those there are")

    async def list_resources(context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return await _refused(_told(listed(asked_of(context), params.cursor if params else None)))

    async def list_templates(
        context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return templates()

    async def resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await _refused(_told(read_resource(asked_of(context), params.uri)))

    async def cancelled(context: Context, params: CancelledNotificationParams) -> None:
        if params.request_id is not None:
            calls.cancelled(asked_of(context), params.request_id)

    def no_headers(tool: str) -> None:
        """No tool's input is repeated in headers, so nothing has to be looked up for them."""

    server: Server[Any] = Server(
        "brainq",
        version=__version__,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=no_headers,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=resource,
    )
    server.add_notification_handler("notifications/cancelled", CancelledNotificationParams, cancelled)
    return server


def _has(caller: Caller, needs: frozenset[Any]) -> bool:
    return needs <= caller.verbs


async def _told(made: Awaitable[R]) -> R:
    """A failure that nobody expected is told by an id, which its line of the log has."""
    try:
        return await made
    except (BrainqError, Refused, MCPError):
        raise
    except Exception as failure:
        problem_id = new_turn_id()
        log.error("a request failed", failure=failure, problem_id=problem_id, route="mcp")
        raise MCPError(INTERNAL_ERROR, f"a bug in brainq; its log says more under {problem_id}") from None


async def _refused(made: Awaitable[R]) -> R:
    """Refusals of what is no tool."""
    try:
        return await made
    except (BrainqError, Refused) as refusal:
        told = refusal_of(refusal)
        raise MCPError(INVALID_REQUEST, str(getattr(told.content[0], "text", ""))) from None

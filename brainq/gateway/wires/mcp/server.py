"""The MCP server that the SDK drives: its handlers, and how their failures are reported."""

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
from brainq.gateway.edge.dependencies import Gateway
from brainq.gateway.edge.problems import RequestRejected
from brainq.gateway.wires.mcp.requests import CallsInFlight, McpContext, McpRequest, read_input
from brainq.gateway.wires.mcp.resources import read_resource, turn_resources, turn_templates
from brainq.gateway.wires.mcp.tools import BRAIN_TOOL_VERBS, brains_by_tool, run_brain_tool, tools_for
from brainq.gateway.wires.mcp.turn_report import tool_error, tool_result
from brainq.gateway.wires.mcp.turn_tools import TURN_TOOLS
from brainq.observe.logs import logger
from brainq.tools.mcp.sdk import keep_sdk_quiet

INSTRUCTIONS = (
    "Each agent is a tool: call it with a message, and it answers. What it does goes on if you do not wait for it: "
    "`result` has the answer later. Give the session of an answer to go on with its conversation. Where an agent "
    "waits for an approval, ask your user before you approve."
)

R = TypeVar("R")
log = logger("brainq.gateway")


def make_server(gateway: Gateway, calls: CallsInFlight, to_request: Callable[[McpContext], McpRequest]) -> Server[Any]:
    """`to_request` adds the caller to the SDK's context of a request."""
    keep_sdk_quiet()
    brains = brains_by_tool(gateway.brains)

    async def list_tools(context: McpContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools_for(to_request(context).caller, brains))

    async def call_tool(context: McpContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        request = to_request(context)
        try:
            return await _with_problem_id(_call(request, params))
        except (BrainqError, RequestRejected) as refusal:
            return tool_error(refusal)

    async def _call(request: McpRequest, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        brain, tool = brains.get(params.name), TURN_TOOLS.get(params.name)
        if brain is not None and _may_use(request.caller, BRAIN_TOOL_VERBS):
            return await run_brain_tool(request, brain, params, calls)
        if tool is not None and _may_use(request.caller, tool.needs):
            args = read_input(tool.input, "arguments", params.arguments or {})
            return tool_result(request, await tool.run(request, args, calls))
        raise MCPError(INVALID_PARAMS, "there is no such tool; tools/list has them all")

    async def list_resources(context: McpContext, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return await _as_mcp_error(
            _with_problem_id(turn_resources(to_request(context), params.cursor if params else None))
        )

    async def list_templates(context: McpContext, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return turn_templates()

    async def resource(context: McpContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await _as_mcp_error(_with_problem_id(read_resource(to_request(context), params.uri)))

    async def cancelled(context: McpContext, params: CancelledNotificationParams) -> None:
        if params.request_id is not None:
            calls.cancelled(to_request(context), params.request_id)

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


def _may_use(caller: Caller, needs: frozenset[Any]) -> bool:
    return needs <= caller.verbs


async def _with_problem_id(made: Awaitable[R]) -> R:
    """An unexpected failure is reported by an id, which is in the log, too."""
    try:
        return await made
    except (BrainqError, RequestRejected, MCPError):
        raise
    except Exception as failure:
        problem_id = new_turn_id()
        log.error("a request failed", failure=failure, problem_id=problem_id, route="mcp")
        raise MCPError(INTERNAL_ERROR, f"a bug in brainq; its log has the details under {problem_id}") from None


async def _as_mcp_error(made: Awaitable[R]) -> R:
    """Rejections of requests that are not tool calls."""
    try:
        return await made
    except (BrainqError, RequestRejected) as refusal:
        reported = tool_error(refusal)
        raise MCPError(INVALID_REQUEST, str(getattr(reported.content[0], "text", ""))) from None

"""Replacements for parts of MCP's SDK: logs without content, a bounded check of results, and the protocol's requests
about tasks (2025-11-25), for which the SDK has types but no methods."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import mcp
from mcp import ClientSession, MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    GetTaskResult,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    Task,
    TaskMetadata,
    Tool,
)
from pydantic import ValidationError

from brainq.contracts.base import first_problem
from brainq.engine.gates.arguments import explain_errors
from brainq.engine.gates.schema_check import UnresolvedReference, schema_problem
from brainq.engine.gates.schema_validator import SchemaValidator
from brainq.engine.tools.mcp.catalogue import ListedTool, PinnedServer

_SDK_FOLDER = str(Path(mcp.__file__).parent)


class _SdkLogFilter(logging.Filter):
    """A filter that drops the SDK's log lines about messages, because they contain content.

    The SDK's sessions log under a name that others may use, too.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.pathname.startswith(_SDK_FOLDER)


_filter = _SdkLogFilter()


def keep_sdk_quiet() -> None:
    """Add the filters. Calling it again changes nothing."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("client").addFilter(_filter)


class ResultCheck:
    """The replacement of the SDK's own check of results.

    The SDK matches a server's patterns against its results without a time limit, and blocks the process meanwhile.
    """

    def __init__(self, listed: PinnedServer) -> None:
        self._schemas = {tool.name: tool.output_schema for tool in listed.tools if tool.output_schema}
        self._validators: dict[str, SchemaValidator] = {}

    async def __call__(self, name: str, result: CallToolResult) -> None:
        """Check a result. Raises RuntimeError, like the SDK's, for a result that does not fit, or for an unusable
        schema."""
        schema = self._schemas.get(name)
        if schema is None:
            return
        if "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"the tool {name} has an output schema, and returned no structured content")
        if (validator := self._validators.get(name)) is None:
            try:
                problem = schema_problem(schema)
            except UnresolvedReference as reference:
                problem = f"it refers to {reference}, which is not in it"
            if problem:
                raise RuntimeError(f"the output schema of the tool {name} cannot be used: {problem}")
            validator = self._validators[name] = SchemaValidator(schema)
        if errors := validator.errors(result.structured_content):
            raise RuntimeError(f"the tool {name} returned what does not fit its schema: {explain_errors(errors)}")


async def list_tools(session: ClientSession, cursor: str | None) -> tuple[list[ListedTool], str | None]:
    """Return one page of the server's tools, each read by itself, and the cursor of the next page.

    The SDK's own `list_tools` refuses a whole page for one tool that does not fit the protocol. Raises MCPError.
    """
    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    data, options = request.model_dump(by_alias=True, mode="json", exclude_none=True), dict[str, Any]()
    getattr(session, "_stamp")(data, options)  # noqa: B009
    page: Any = await getattr(session, "_dispatcher").send_raw_request(data["method"], data.get("params"), options)  # noqa: B009
    entries: Any = page.get("tools") if isinstance(page, dict) else None
    if not isinstance(entries, list):
        raise MCPError(code=INTERNAL_ERROR, message="it answered tools/list without a list of tools")
    following: Any = cast("dict[str, Any]", page).get("nextCursor")
    listed = [_listed_tool(entry) for entry in cast("list[object]", entries)]
    return _without_invalid_headers(session, listed), following if isinstance(following, str) and following else None


def _listed_tool(entry: object) -> ListedTool:
    try:
        tool = Tool.model_validate(entry, by_name=False)
        return ListedTool(tool.model_dump(mode="json", by_alias=True, exclude_none=True))
    except ValidationError as error:
        problems = error.errors(include_url=False)
        return ListedTool(entry, str(first_problem(problems, entry, whole="the tool")))


def _without_invalid_headers(session: ClientSession, listed: list[ListedTool]) -> list[ListedTool]:
    """Record which arguments a call sends as headers (protocol 2026-07-28), as the SDK's `list_tools` does. The
    protocol forbids tools that name such headers wrongly."""
    tools = [Tool.model_validate(one.entry) for one in listed if not one.problem]
    kept = getattr(session, "_absorb_tool_listing")(ListToolsResult(tools=tools), complete=False).tools  # noqa: B009
    names = {tool.name for tool in kept}
    return [
        one
        if one.problem or cast("dict[str, Any]", one.entry)["name"] in names
        else replace(one, problem="its x-mcp-header annotations are invalid")
        for one in listed
    ]


def takes_tasks(session: ClientSession) -> bool:
    """Return whether the server supports calling tools as tasks."""
    capabilities = session.server_capabilities
    requests = capabilities.tasks.requests if capabilities is not None and capabilities.tasks is not None else None
    return requests is not None and requests.tools is not None and requests.tools.call is not None


async def create_task(
    session: ClientSession, tool: str, arguments: Mapping[str, Any], meta: Any, ttl_ms: int
) -> Task | CallToolResult:
    """Call a tool as a task. A server may answer with the result itself. Raises like `send_request`."""
    params = CallToolRequestParams(name=tool, arguments=dict(arguments), task=TaskMetadata(ttl=ttl_ms), _meta=meta)
    try:
        result = await session.send_request(CallToolRequest(params=params), CallToolResult)
    except ValidationError as refused:
        task = _task_of_error(refused)
        if task is None:
            raise
        return task
    return await _checked_result(session, tool, result)


async def get_task(session: ClientSession, task_id: str) -> Task:
    request = GetTaskRequest(params=GetTaskRequestParams(task_id=task_id))
    return await session.send_request(request, GetTaskResult)


async def get_result(session: ClientSession, tool: str, task_id: str) -> CallToolResult:
    """Return the result of a task that has ended. Raises like `send_request`, and RuntimeError for a result that does
    not fit the tool's output schema."""
    request = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task_id))
    return await _checked_result(session, tool, await session.send_request(request, CallToolResult))


async def cancel_task(session: ClientSession, task_id: str) -> None:
    request = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task_id))
    await session.send_request(request, CancelTaskResult)


def _task_of_error(refused: ValidationError) -> Task | None:
    # The SDK takes every answer to tools/call for a CallToolResult, and refuses this one because its content is
    # missing.
    for problem in refused.errors():
        if problem["loc"] == ("content",) and problem["type"] == "missing":
            try:
                return CreateTaskResult.model_validate(problem["input"], by_name=False).task
            except ValidationError:
                return None
    return None


async def _checked_result(session: ClientSession, tool: str, result: CallToolResult) -> CallToolResult:
    if not result.is_error:
        await session.validate_tool_result(tool, result)
    return result

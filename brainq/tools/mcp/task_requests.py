"""The protocol's requests about tasks (2025-11-25), which the SDK has types for, and no methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import ClientSession
from mcp_types import (
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
    Task,
    TaskMetadata,
)
from pydantic import ValidationError


def takes_tasks(session: ClientSession) -> bool:
    """Whether the server says that tools can be called as tasks."""
    said = session.server_capabilities
    requests = said.tasks.requests if said is not None and said.tasks is not None else None
    return requests is not None and requests.tools is not None and requests.tools.call is not None


async def create_task(
    session: ClientSession, tool: str, arguments: Mapping[str, Any], meta: Any, ttl_ms: int
) -> Task | CallToolResult:
    """Call a tool as a task. A server may answer with the result itself. Raises as `send_request`."""
    params = CallToolRequestParams(
        name=tool, arguments=dict(arguments), task=TaskMetadata(ttl=ttl_ms), _meta=meta
    )
    try:
        result = await session.send_request(CallToolRequest(params=params), CallToolResult)
    except ValidationError as refused:
        task = _task_in(refused)
        if task is None:
            raise
        return task
    return await _checked(session, tool, result)


async def get_task(session: ClientSession, task_id: str) -> Task:
    request = GetTaskRequest(params=GetTaskRequestParams(task_id=task_id))
    return await session.send_request(request, GetTaskResult)


async def get_result(session: ClientSession, tool: str, task_id: str) -> CallToolResult:
    """The result of a task that has ended. Raises as `send_request`, and RuntimeError for one that does not fit the
    tool's output schema."""
    request = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task_id))
    return await _checked(session, tool, await session.send_request(request, CallToolResult))


async def cancel_task(session: ClientSession, task_id: str) -> None:
    request = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task_id))
    await session.send_request(request, CancelTaskResult)


def _task_in(refused: ValidationError) -> Task | None:
    # The SDK takes every answer to tools/call for a CallToolResult, and refuses this one for its missing content.
    for problem in refused.errors():
        if problem["loc"] == ("content",) and problem["type"] == "missing":
            try:
                return CreateTaskResult.model_validate(problem["input"], by_name=False).task
            except ValidationError:
                return None
    return None


async def _checked(session: ClientSession, tool: str, result: CallToolResult) -> CallToolResult:
    if not result.is_error:
        await session.validate_tool_result(tool, result)
    return result

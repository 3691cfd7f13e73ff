"""A server's tasks: polled by any process that watches one, cancelled when the call no longer waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from brainq.contracts.call import ServerTask
from brainq.tools.mcp.catalogue import PinnedServer
from brainq.tools.mcp.results import (
    CallNeverRan,
    ConnectionNotOpen,
    OutcomeInDoubt,
    RequestNotSent,
    ServerFailure,
    ServerReportedFailure,
    UnreadableAnswer,
    tool_result,
)
from brainq.tools.mcp.server import McpServer, SecretFilter
from brainq.tools.mcp.session import shared_session
from brainq.tools.results import OutcomeUnknown, ToolError
from brainq.tools.tool import ServerUnavailable, TaskEnd, TaskWorking

if TYPE_CHECKING:
    from mcp import ClientSession

    from brainq.tools.mcp.connection import Connection

TASK_REQUEST_S = 30.0
TASK_CANCEL_S = 5.0
Answer = TypeVar("Answer")


class _TaskLost(Exception):
    """The server does not know the task any more."""


@dataclass(frozen=True, slots=True)
class McpTasks:
    """The tasks of one tool of a server. Fits `tools.tool.TaskServer`."""

    key: Hashable
    server: McpServer
    pinned: PinnedServer
    tool: str
    secrets: SecretFilter

    async def poll(self, task: ServerTask) -> TaskWorking | TaskEnd:
        from brainq.tools.mcp.sdk import get_task

        try:
            try:
                state = await self._request(task, lambda session: get_task(session, task.task_id))
            except ServerReportedFailure as refusal:  # such as of a poll too many: the task may go on
                raise ServerUnavailable(self.secrets.hide(str(refusal))) from None
            if state.status == "working":
                return TaskWorking(self.secrets.hide(state.status_message or ""), state.poll_interval or 0)
            if state.status == "input_required":
                asks = f"The MCP server {self.server.name!r} asks for further input, which cannot be given."
                return self._end(task, ToolError(asks), goes_on=True)
            message = self.secrets.hide(state.status_message or "")
            return self._end(task, await self._result(task, state.status, message))
        except _TaskLost as lost:
            return self._end(task, OutcomeUnknown(self.secrets.hide(str(lost))))

    async def cancel(self, task: ServerTask) -> None:
        from brainq.tools.mcp.sdk import cancel_task

        with suppress(_TaskLost, ServerUnavailable, ServerFailure, TimeoutError):
            async with asyncio.timeout(TASK_CANCEL_S):
                await self._request(task, lambda session: cancel_task(session, task.task_id))
        self._forget(task)

    async def _result(self, task: ServerTask, status: str, message: str) -> Any:
        """What the tool returned, or how it failed in its own words."""
        from brainq.tools.mcp.sdk import get_result

        if status == "cancelled":
            return ToolError(message or f"The MCP server {self.server.name!r} cancelled the task.")
        try:
            result = await self._request(task, lambda session: get_result(session, self.tool, task.task_id))
            value = tool_result(result.model_dump(mode="json", by_alias=True, exclude_none=True), self.secrets)
        except ServerReportedFailure as words:
            return ToolError(self.secrets.hide(str(words)))
        except _TaskLost:
            if status == "failed":  # that much is known
                return ToolError(message or "The tool failed, and did not say why.")
            raise
        return ToolError(message or "The tool failed, and did not say why.") if status == "failed" else value

    async def _request(self, task: ServerTask, request: Callable[[ClientSession], Awaitable[Answer]]) -> Answer:
        """Raises _TaskLost, ServerUnavailable, and ServerReportedFailure for an error that is the task's own."""
        session = shared_session(self.key, self.server, self.pinned)
        connection = session.open_connection if task.held_by else None
        if task.held_by and (connection is None or connection.name != task.held_by):
            raise _TaskLost(f"The MCP server {self.server.name!r} ended before its task did.")
        try:
            connection = connection or await session.connection()
            async with asyncio.timeout(TASK_REQUEST_S):
                answer = await connection.request(request)
        except (ConnectionNotOpen, RequestNotSent, TimeoutError) as failure:
            if isinstance(failure, RequestNotSent) and connection is not None and not connection.asking:
                await self._drop(connection)
            raise ServerUnavailable(str(failure)) from None
        except (CallNeverRan, UnreadableAnswer) as failure:
            if not failure.retryable:
                raise _TaskLost(f"{failure} What became of its task cannot be found out.") from None
            await self._drop(connection)
            raise ServerUnavailable(str(failure)) from None
        except OutcomeInDoubt as failure:
            if failure.is_lost:
                await self._drop(connection)
            raise ServerUnavailable(str(failure)) from None
        session.reset_backoff()
        return answer

    async def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            await shared_session(self.key, self.server, self.pinned).drop(connection)

    def _end(self, task: ServerTask, result: Any, *, goes_on: bool = False) -> TaskEnd:
        if not goes_on:
            self._forget(task)
        return TaskEnd(result, goes_on)

    def _forget(self, task: ServerTask) -> None:
        held = shared_session(self.key, self.server, self.pinned).open_connection
        if held is not None:
            held.tasks.discard(task.task_id)

"""Calls of a server's tool: the function behind it, and the task that a server makes of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from brainq.contracts.call import ServerTask
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.mcp.catalogue import PinnedServer
from brainq.engine.tools.mcp.results import (
    CallNeverRan,
    ConnectionNotOpen,
    InvalidRequest,
    OutcomeInDoubt,
    RequestNotSent,
    RequestRefused,
    ServerFailure,
    ServerReportedFailure,
    UnreadableAnswer,
    may_repeat,
    tool_result,
)
from brainq.engine.tools.mcp.server import McpServer, SecretFilter
from brainq.engine.tools.mcp.session import Session, shared_session
from brainq.engine.tools.results import OutcomeUnknown, ToolError
from brainq.engine.tools.tool import Function, ServerUnavailable, TaskEnd, TaskWorking
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

    from brainq.engine.tools.mcp.connection import Connection

IDEMPOTENCY_KEY = "brainq/idempotency-key"
"""The key in a call's `_meta` that is the same for every attempt of the call."""
TASK_REQUEST_S = 30.0
TASK_CANCEL_S = 5.0
MAX_REPEATS = 2
"""How often a call is repeated, each time in a new session. The server may restart again meanwhile."""
Answer = TypeVar("Answer")
_SESSION_FAILURES = (RequestNotSent, RequestRefused, InvalidRequest)
"""Failures that say nothing about the task: the server may still know it."""


class _TaskLost(Exception):
    """The error of a task that the server no longer knows."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """The calls of one tool of a server, which is started if necessary, and the tasks that it makes of them.

    It runs on the process's event loop.

    key: the same for tools that may share a session.
    idempotent: whether a call without an answer can be repeated safely.
    key_argument: the argument that gets the idempotency key, whatever the model gives for it.
    task_s: how long a call waits for its task, or None if the tool is not called as a task.
    """

    key: Hashable
    server: McpServer
    pinned: PinnedServer
    tool: str
    is_read: bool
    idempotent: bool
    secrets: SecretFilter
    key_argument: str | None = None
    task_s: float | None = None

    def function(self) -> Function:
        """Return an async function of the tool's arguments."""

        async def read(*, _brainq_context: RunContext, **arguments: Any) -> Any:
            return await self._call(_brainq_context, arguments, {})

        async def change(*, _brainq_context: RunContext, **arguments: Any) -> Any:
            idempotency_key = _brainq_context.idempotency_key
            if self.key_argument is not None:
                arguments[self.key_argument] = idempotency_key
            return await self._call(_brainq_context, arguments, {IDEMPOTENCY_KEY: idempotency_key})

        function = read if self.is_read else change
        function.__module__, function.__qualname__ = "mcp", f"{self.server.name}.{self.tool}"
        return function

    async def _call(self, context: RunContext, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> Any:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            with suppress(InvalidInput):  # a server may report something other than a number
                context.progress(progress, total, self.secrets.hide(message or ""))

        try:
            return await self._sent(arguments, meta, on_progress)
        except ServerReportedFailure as failure:
            raise ToolError(self.secrets.hide(str(failure))) from None
        except (ConnectionNotOpen, CallNeverRan) as failure:
            raise ToolError(self.secrets.hide(str(failure)), retryable=failure.retryable) from None
        except OutcomeInDoubt as doubt:
            words = self.secrets.hide(str(doubt))
            if self.is_read:
                raise ToolError(words, retryable=True) from None
            raise OutcomeUnknown(words) from None

    async def _sent(
        self, arguments: Mapping[str, Any], meta: Mapping[str, Any], on_progress: ProgressFnT, repeats: int = 0
    ) -> Any:
        session = self._session()
        connection = await session.connection()
        connection.check(self.tool)
        try:
            result = await self._answer(connection, arguments, meta, on_progress)
        except ServerFailure as failure:
            if failure.ends_session:
                await session.drop(connection)
            most = MAX_REPEATS if failure.repeats == "any" else 1
            if repeats < most and may_repeat(failure, is_read=self.is_read, is_idempotent=self.idempotent):
                return await self._sent(arguments, meta, on_progress, repeats + 1)
            raise
        session.reset_backoff()
        return result if isinstance(result, ServerTask) else tool_result(result, self.secrets)

    async def _answer(
        self, connection: Connection, arguments: Mapping[str, Any], meta: Mapping[str, Any], on_progress: ProgressFnT
    ) -> dict[str, Any] | ServerTask:
        received = connection.messages_received
        connection.changing += not self.is_read
        try:
            if self.task_s is not None and connection.takes_tasks:
                return await connection.start_task(self.tool, arguments, meta, self.task_s)
            return await connection.call(self.tool, arguments, meta, on_progress)
        except asyncio.CancelledError:
            # The protocol's cancellation was sent, but a program may ignore it, and a change that continues in it must
            # not meet the next one of its lane. So the call ends with the program.
            if not self.is_read:
                await connection.retire()
            elif received is not None and connection.messages_received == received and not connection.is_needed:
                connection.close_soon()  # it may hang
            raise
        finally:
            connection.changing -= not self.is_read

    def _session(self) -> Session:
        return shared_session(self.key, self.server, self.pinned)

    async def poll(self, task: ServerTask) -> TaskWorking | TaskEnd:
        """Return the state of a task. Raises ServerUnavailable."""
        from brainq.engine.tools.mcp.sdk import get_task

        try:
            try:
                state = await self._request_task(task, lambda session: get_task(session, task.task_id))
            except ServerReportedFailure as refusal:  # such as of one poll too many: the task may continue
                raise ServerUnavailable(self.secrets.hide(str(refusal))) from None
            if state.status == "working":
                return TaskWorking(self.secrets.hide(state.status_message or ""), state.poll_interval or 0)
            if state.status == "input_required":
                asks = f"The MCP server {self.server.name!r} requests further input, which brainq cannot give."
                return self._end(task, ToolError(asks), goes_on=True)
            message = self.secrets.hide(state.status_message or "")
            return self._end(task, await self._result(task, state.status, message))
        except _TaskLost as lost:
            return self._end(task, OutcomeUnknown(self.secrets.hide(str(lost))))

    async def cancel(self, task: ServerTask) -> None:
        """Cancel a task if possible. Never raises."""
        from brainq.engine.tools.mcp.sdk import cancel_task

        with suppress(_TaskLost, ServerUnavailable, ServerFailure, TimeoutError):
            async with asyncio.timeout(TASK_CANCEL_S):
                await self._request_task(task, lambda session: cancel_task(session, task.task_id))
        self._forget(task)

    async def _result(self, task: ServerTask, status: str, message: str) -> Any:
        """Return what the tool returned, or its failure in its own words."""
        from brainq.engine.tools.mcp.sdk import get_result

        if status == "cancelled":
            return ToolError(message or f"The MCP server {self.server.name!r} cancelled the task.")
        try:
            result = await self._request_task(task, lambda session: get_result(session, self.tool, task.task_id))
            value = tool_result(result.model_dump(mode="json", by_alias=True, exclude_none=True), self.secrets)
        except ServerReportedFailure as words:
            return ToolError(self.secrets.hide(str(words)))
        except _TaskLost:
            if status == "failed":  # this much is known
                return ToolError(message or "The tool failed, and did not say why.")
            raise
        return ToolError(message or "The tool failed, and did not say why.") if status == "failed" else value

    async def _request_task(self, task: ServerTask, request: Callable[[ClientSession], Awaitable[Answer]]) -> Answer:
        """Send a request about a task. Raises _TaskLost, ServerUnavailable, and ServerReportedFailure for an error of
        the task itself."""
        session = self._session()
        connection = session.open_connection if task.held_by else None
        if task.held_by and (connection is None or connection.name != task.held_by):
            raise _TaskLost(f"The MCP server {self.server.name!r} ended before its task did.")
        try:
            connection = connection or await session.connection()
            async with asyncio.timeout(TASK_REQUEST_S):
                answer = await connection.request(request)
        except TimeoutError as failure:
            raise ServerUnavailable(str(failure)) from None
        except (ConnectionNotOpen, CallNeverRan, OutcomeInDoubt) as failure:
            if failure.ends_session and connection is not None:
                await session.drop(connection)
            if isinstance(failure, CallNeverRan | UnreadableAnswer) and not isinstance(failure, _SESSION_FAILURES):
                raise _TaskLost(f"{failure} What became of its task cannot be found out.") from None
            raise ServerUnavailable(str(failure)) from None
        session.reset_backoff()
        return answer

    def _end(self, task: ServerTask, result: Any, *, goes_on: bool = False) -> TaskEnd:
        if not goes_on:
            self._forget(task)
        return TaskEnd(result, goes_on)

    def _forget(self, task: ServerTask) -> None:
        held = self._session().open_connection
        if held is not None:
            held.tasks.discard(task.task_id)

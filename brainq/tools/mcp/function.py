"""The function behind a server's tool: one call, and what becomes of it when the connection does not hold."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brainq.contracts.call import ServerTask
from brainq.contracts.status import Effect
from brainq.errors import InvalidInput
from brainq.tools.context import RunContext
from brainq.tools.mcp.catalogue import PinnedServer, PinnedTool
from brainq.tools.mcp.results import (
    CallNeverRan,
    ConnectionNotOpen,
    OutcomeInDoubt,
    RequestNotSent,
    ServerFailure,
    ServerReportedFailure,
    tool_result,
)
from brainq.tools.mcp.server import McpServer, SecretFilter
from brainq.tools.mcp.session import shared_session
from brainq.tools.results import OutcomeUnknown, ToolError
from brainq.tools.tool import Function

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

    from brainq.tools.mcp.connection import Connection

IDEMPOTENCY_KEY = "brainq/idempotency-key"
"""In a call's `_meta`: the same for every attempt of it."""


def tool_function(
    key: Hashable,
    server: McpServer,
    pinned: PinnedServer,
    tool: PinnedTool,
    *,
    effect: Effect,
    idempotent: bool,
    key_argument: str | None = None,
    task_s: float | None = None,
) -> Function:
    """An async function of the tool's arguments. It starts the server if that does not run.

    key            the same for tools that may share a session
    key_argument   the argument that gets the idempotency key, whatever the model gives for it
    task_s         the tool is called as a task, for which a call waits so long; None: it is not
    """
    call = _ToolCaller(
        key,
        server,
        pinned,
        tool.name,
        effect.is_read,
        effect.is_read or idempotent,
        SecretFilter.for_server(server),
        task_s,
    )

    async def read(*, _brainq_context: RunContext, **arguments: Any) -> Any:
        return await call.run(_brainq_context, arguments, {})

    async def change(*, _brainq_context: RunContext, **arguments: Any) -> Any:
        idempotency_key = _brainq_context.idempotency_key
        if key_argument is not None:
            arguments[key_argument] = idempotency_key
        return await call.run(_brainq_context, arguments, {IDEMPOTENCY_KEY: idempotency_key})

    function = read if effect.is_read else change
    function.__module__, function.__qualname__ = "mcp", f"{server.name}.{tool.name}"
    return function


@dataclass(frozen=True, slots=True)
class _ToolCaller:
    """How calls of one tool are made. `may_repeat`: sending one again, whose answer was lost, changes nothing more."""

    key: Hashable
    server: McpServer
    pinned: PinnedServer
    tool: str
    is_read: bool
    may_repeat: bool
    secrets: SecretFilter
    task_s: float | None

    async def run(self, context: RunContext, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> Any:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            with suppress(InvalidInput):  # a server may report something else than a number
                context.progress(progress, total, self.secrets.hide(message or ""))

        try:
            return await self._sent(arguments, meta, on_progress, may_try_again=True)
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
        self, arguments: Mapping[str, Any], meta: Mapping[str, Any], on_progress: ProgressFnT, *, may_try_again: bool
    ) -> Any:
        session = shared_session(self.key, self.server, self.pinned)
        connection = await session.connection()
        connection.check(self.tool)
        try:
            result = await self._answer(connection, arguments, meta, on_progress)
        except ServerFailure as failure:
            never_ran = isinstance(failure, CallNeverRan) and failure.retryable
            was_lost = isinstance(failure, OutcomeInDoubt) and failure.is_lost
            is_in_use = isinstance(failure, RequestNotSent) and connection.asking > 0
            if (was_lost or never_ran) and not is_in_use:
                await session.drop(connection)
            may_repeat = isinstance(failure, OutcomeInDoubt) and failure.may_repeat and self.may_repeat
            if may_try_again and (never_ran or (was_lost and may_repeat)):
                return await self._sent(arguments, meta, on_progress, may_try_again=False)
            raise
        session.reset_backoff()
        return result if isinstance(result, ServerTask) else tool_result(result, self.secrets)

    async def _answer(
        self, connection: Connection, arguments: Mapping[str, Any], meta: Mapping[str, Any], on_progress: ProgressFnT
    ) -> dict[str, Any] | ServerTask:
        heard = connection.messages_received
        connection.changing += not self.is_read
        try:
            if self.task_s is not None and connection.takes_tasks:
                return await connection.start_task(self.tool, arguments, meta, self.task_s)
            return await connection.call(self.tool, arguments, meta, on_progress)
        except asyncio.CancelledError:
            # The protocol's cancellation has gone out. A server need not heed it, and a change that goes on in it
            # must not meet the next one of its lane: the call has ended when the server has.
            if not self.is_read:
                await connection.close()
            elif heard is not None and connection.messages_received == heard and not connection.is_needed:
                connection.close_soon()  # it hangs, for all that is known
            raise
        finally:
            connection.changing -= not self.is_read

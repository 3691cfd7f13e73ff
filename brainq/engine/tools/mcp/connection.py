"""One connection to a server, from its start to its end."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, TypeVar

from mcp import Client, ClientSession, MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    CallToolResult,
    Implementation,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from brainq.contracts.call import ServerTask
from brainq.engine.tools.mcp import http_answers
from brainq.engine.tools.mcp.catalogue import MAX_TOOLS, Drift, ListedTool, PinnedServer, find_drift, pinned_server
from brainq.engine.tools.mcp.http_transport import http_transport
from brainq.engine.tools.mcp.results import (
    CallNeverRan,
    ConnectionNotOpen,
    InvalidRequest,
    OutcomeInDoubt,
    RequestNotSent,
    RequestRefused,
    ServerFailure,
    ServerReportedFailure,
    SessionGone,
    UnreadableAnswer,
)
from brainq.engine.tools.mcp.sdk import ResultCheck, create_task, keep_sdk_quiet, list_tools, takes_tasks
from brainq.engine.tools.mcp.server import McpServer, SecretFilter
from brainq.engine.tools.mcp.stdio_transport import StdioTransport
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.failures import failure_name, failure_words, leaves
from brainq.runtime.text.shorten import beginning

MAX_PAGES = 100
CLOSE_S = 5.0
MAX_WORDS = 300
UNANSWERED_CODES = (-32700, -32603, -32001, -32000)
"""Codes that the SDK also uses for an answer that did not come, or could not be read: parse error, internal error,
timeout, connection closed."""
log = logger("brainq.mcp")
keep_sdk_quiet()


Answer = TypeVar("Answer")


class Connection:
    """A connection, which a separate task opens and closes, because the SDK's scopes require that.

    pinned: the list to compare the server with, or None if nothing was pinned yet.
    found: the server's list.
    changing: how many calls in flight may change something.
    asking: how many requests wait for their answer.
    tasks: the server's tasks that calls wait for.
    name: distinguishes it from other connections.
    """

    def __init__(self, server: McpServer, pinned: PinnedServer | None) -> None:
        self._server = server
        self._pinned = pinned
        self._secrets = SecretFilter.for_server(server)
        self._stdio = StdioTransport(server) if server.transport == "stdio" else None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ending = asyncio.Event() if self._stdio is None else self._stdio.lost
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._is_retired = False
        self.found = PinnedServer(transport=server.transport)
        self.drift = Drift()
        self.changing = 0
        self.asking = 0
        self.tasks: set[str] = set()
        self.name = uuid.uuid4().hex
        self._listing: asyncio.Task[None] | None = None
        self._heard_changes = self._listed_changes = 0  # the changes of the list that were announced, and read

    @property
    def is_open(self) -> bool:
        """Whether further calls may use it."""
        return not self._is_retired and not self.has_ended

    @property
    def has_ended(self) -> bool:
        if self._client is None or self._ending.is_set():
            return True
        return self._stdio is not None and self._stdio.has_ended

    @property
    def is_needed(self) -> bool:
        """Whether its end would leave a change in doubt, or lose a task."""
        return self.changing > 0 or bool(self.tasks)

    @property
    def takes_tasks(self) -> bool:
        return self._client is not None and takes_tasks(self._client.session)

    @property
    def messages_received(self) -> int | None:
        """The number of messages from the server, or None if it is unknown."""
        return None if self._stdio is None else self._stdio.messages

    async def open(self) -> None:
        """Start the server and list its tools. Raises ConnectionNotOpen."""
        self._owner = asyncio.create_task(self._run(), name=f"brainq-mcp-{self._server.name}")
        try:
            async with asyncio.timeout(self._server.start_timeout_s):
                await asyncio.shield(self._ready)
        except TimeoutError:
            raise await self._not_open(f"it did not start within {self._server.start_timeout_s:g} s") from None
        except OSError as error:
            raise await self._not_open(error.strerror or type(error).__name__) from None
        except asyncio.CancelledError:
            await self.close()
            raise
        except Exception as error:  # anything that the SDK and its libraries raise
            words = error.message if isinstance(error, MCPError) else failure_name(error)
            if isinstance(error, ValidationError):
                words = f"its answer does not fit the protocol ({beginning(failure_words(error), MAX_WORDS)})"
            raise await self._not_open(words) from None

    def check(self, tool: str) -> None:
        """Raise CallNeverRan if the tool differs from the pinned one."""
        self._list_soon()  # a changed list that could not be read is read again
        if tool in self.drift.changed or tool in self.drift.gone:
            what = "is no longer what was pinned" if tool in self.drift.changed else "is no longer offered"
            if (why := self.drift.malformed.get(tool)) is not None:
                what = f"cannot be used as the server lists it now ({why})"
            raise CallNeverRan(
                f"The tool {tool!r} of the MCP server {self._server.name!r} {what}. It is not called until an "
                "operator has looked at it and pinned it again."
            )

    async def call(
        self, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any], on_progress: ProgressFnT
    ) -> dict[str, Any]:
        """Return the protocol's CallToolResult as JSON. Raises ServerFailure."""
        meta_json: Any = dict(meta) or None

        async def called(session: ClientSession) -> object:
            return await session.call_tool(
                tool,
                dict(arguments),
                meta=meta_json,
                progress_callback=on_progress,
                allow_input_required=True,
                allow_claimed=True,
            )

        result = await self.request(called)
        if not isinstance(result, CallToolResult):
            raise ServerReportedFailure(
                f"The MCP server {self._server.name!r} requests further input, which brainq cannot give."
            )
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def start_task(
        self, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any], max_wait_s: float
    ) -> ServerTask | dict[str, Any]:
        """Call like `call`, but return the server's task if it makes one."""
        meta_json: Any = dict(meta) or None
        ttl_ms = int(max_wait_s * 1000)
        made = await self.request(lambda session: create_task(session, tool, arguments, meta_json, ttl_ms))
        if isinstance(made, CallToolResult):
            return made.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.tasks.add(made.task_id)
        result_ttl_s = max_wait_s if made.ttl is None or made.ttl <= 0 else made.ttl / 1000
        held_by = "" if self._stdio is None else self.name
        return ServerTask(made.task_id, made.poll_interval or 0, min(max_wait_s, result_ttl_s), held_by)

    async def request(self, request: Callable[[ClientSession], Awaitable[Answer]]) -> Answer:
        """Return the server's answer to a request. Raises ServerFailure."""
        if self._client is None:
            raise RequestNotSent("The connection to the MCP server is closed.")
        self.asking += 1
        try:
            return await request(self._client.session)
        except MCPError as error:
            raise self._failure(error) from error
        except (RuntimeError, ValueError) as error:
            raise UnreadableAnswer(
                f"The MCP server {self._server.name!r} sent an answer that does not fit the protocol, or its own "
                "output schema.",
                is_lost=False,
            ) from error
        except Exception as error:
            raise self._lost() from error
        finally:
            self.asking -= 1
            self._close_if_unused()

    async def retire(self) -> None:
        """Accept no further calls. A program ends at once. Over HTTP, calls in flight first get their answers: a
        session may be gone for one request, and not for another that its server accepted before."""
        self._is_retired = True
        if self._stdio is not None:
            await self.close()
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._is_retired and self.asking == 0:
            self.close_soon()

    async def close(self) -> None:
        """End the server, and wait until it is gone."""
        self._client = None
        self._ending.set()
        if self._owner is not None:
            if self._ready.done():  # the goodbye over HTTP may take as long as the server likes
                await asyncio.wait([self._owner], timeout=CLOSE_S)
            self._owner.cancel()
            await asyncio.wait([self._owner])

    def close_soon(self) -> None:
        """Close in the background. Calls in flight are lost at once."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.close())

    async def _run(self) -> None:
        streams: AbstractAsyncContextManager[Any] = self._stdio or http_transport(self._server)
        try:
            me = Implementation(name="brainq", version=version("brainq"))
            async with Client(streams, cache=None, client_info=me, message_handler=self._on_message) as client:
                await self._list(client)
                self._client = client
                self._ready.set_result(None)
                self._list_soon()  # it may have changed while it was read
                await self._ending.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(_innermost(error))
                self._ready.exception()  # there may be no waiter any more
            elif not isinstance(error, Exception):
                raise
        finally:
            self._client = None
            self._ending.set()

    async def _on_message(self, message: object) -> None:
        """Read the list of tools again in one task after a server has announced a change."""
        if not isinstance(message, ToolListChangedNotification):
            return
        self._heard_changes += 1
        self._list_soon()

    def _list_soon(self) -> None:
        if self._listed_changes == self._heard_changes or self._client is None:
            return
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list_again(self._client))

    async def _list_again(self, client: Client) -> None:
        try:
            while self._listed_changes < self._heard_changes:
                changes = self._heard_changes
                await self._list(client)
                self._listed_changes = changes
        except Exception as error:  # as for any request: the next call finds out what is wrong with the server
            log.warning("MCP tools could not be listed again", failure=error, server=self._server.name)
        if self.drift:
            log.warning("MCP tools drifted", server=self._server.name, drift=str(self.drift)[:300])

    async def _list(self, client: Client) -> None:
        self.found = await self._listed(client)
        client.session.validate_tool_result = ResultCheck(self.found)
        if self._pinned is not None:
            self.drift = find_drift(self._pinned, self.found)

    async def _listed(self, client: Client) -> PinnedServer:
        listed: list[ListedTool] = []
        cursor: str | None = None
        seen: set[str | None] = {cursor}
        for _ in range(MAX_PAGES):
            page, cursor = await list_tools(client.session, cursor)
            listed += page
            if cursor in seen or len(listed) > MAX_TOOLS:  # the last page, or a repeated one
                break
            seen.add(cursor)
        return pinned_server(self._server, listed)

    async def _not_open(self, why: str) -> ConnectionNotOpen:
        await self.close()
        return ConnectionNotOpen(
            f"The MCP server {self._server.name!r} could not be opened: {self._secrets.hide(why)}."
        )

    @property
    def stderr_tail(self) -> str:
        """The end of the server's stderr, for an operator at a terminal."""
        stderr = b"" if self._stdio is None else bytes(self._stdio.last_words)
        return self._secrets.hide(stderr.decode("utf-8", "replace")).strip()

    def _lost(self) -> OutcomeInDoubt:
        if self._stdio is not None and self._stdio.flooded:
            words = f"The MCP server {self._server.name!r} sent too much output, and was stopped before it answered."
            return OutcomeInDoubt(words, is_lost=True, may_repeat=False)
        words = f"The connection to the MCP server {self._server.name!r} was lost before it answered."
        return OutcomeInDoubt(words, is_lost=True)

    def _failure(self, error: MCPError) -> ServerFailure:
        if (failure := _http_failure(f"The MCP server {self._server.name!r}", error)) is not None:
            return failure
        words = f"The MCP server {self._server.name!r} says: {error.message}"
        if error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
            return CallNeverRan(words)
        if error.code == INVALID_REQUEST:
            return InvalidRequest(words)
        if error.code == -32000 or self.has_ended:
            return self._lost()
        if error.code in UNANSWERED_CODES:
            return OutcomeInDoubt(words, is_lost=False)
        return ServerReportedFailure(words)


def _http_failure(server: str, error: MCPError) -> ServerFailure | None:
    """Return the failure behind an HTTP status or a broken connection, or None for a server's answer."""
    match error.code:
        case http_answers.NOT_SENT_CODE:
            return RequestNotSent(f"{server} was not reached: {error.message}.")
        case http_answers.SESSION_GONE_CODE:
            return SessionGone(f"{server} did not accept the call: {error.message}.")
        case http_answers.REFUSED_CODE:
            is_busy = error.message.startswith(("HTTP 425", "HTTP 429"))
            return RequestRefused(f"{server} refused the request: {error.message}.", retryable=is_busy)
        case http_answers.LOST_CODE:
            return OutcomeInDoubt(f"{server} was lost before it answered: {error.message}.", is_lost=True)
        case http_answers.DOUBT_CODE:
            return OutcomeInDoubt(f"{server} did not answer with a result: {error.message}.", is_lost=False)
        case _:
            return None


def _innermost(error: BaseException) -> BaseException:
    """Return the first cause in an exception group of a task group."""
    error = next(leaves(error))
    return error if isinstance(error, Exception) else ConnectionError("the server was closed while it started")

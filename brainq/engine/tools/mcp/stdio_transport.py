"""A server as a child process: JSON-RPC over its stdin and stdout, one message on each line.

It starts in its own process group, and ends with all its children, even when the worker is killed. The SDK's own
transport reads lines of any length, and logs lines that are not messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from types import TracebackType

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from brainq.engine.tools.mcp.server import McpServer
from brainq.runtime.processes.child import signal_group, unreaped_status
from brainq.runtime.processes.guard import ProcessGuard

LINE_CHUNK = 64 * 1024
CLOSE_S = 2.0  # for a server to end by itself once its stdin is closed
TERM_S = 1.0  # after SIGTERM
ORPHAN_S = 0.5  # for a server to end by the end of its stdin after the worker was killed; far shorter than a lease
_guards: dict[int, ProcessGuard] = {}
"""The guard by process id: after a fork, the inherited one is the parent's."""
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
MAX_UNASKED_BYTES = 32 * 1024 * 1024  # the most between two answers
LINE_OVERHEAD_BYTES = 1_000  # added to the size of each line, because many short ones cost time, too
STDERR_TAIL_BYTES = 2_000
Received = SessionMessage | Exception


def _guard() -> ProcessGuard:
    return _guards.setdefault(os.getpid(), ProcessGuard(ORPHAN_S))


async def start_process(
    command: Sequence[str], env: Mapping[str, str], cwd: str | PathLike[str] | None
) -> asyncio.subprocess.Process:
    """Start the program. Raises OSError if that fails."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **env},
        cwd=cwd,
        limit=LINE_CHUNK,
        start_new_session=True,
    )
    try:
        _guard().add(process.pid)
    except OSError:
        await end_process(process)
        raise
    return process


def has_exited(process: asyncio.subprocess.Process) -> bool:
    """Return whether the process has exited, perhaps before the loop knows. The loop still reaps it."""
    try:
        return process.returncode is not None or unreaped_status(process.pid) is not None
    except ChildProcessError:  # reaped in the meantime
        return True


async def end_process(process: asyncio.subprocess.Process) -> None:
    """End a program as the protocol requires: close its stdin, wait, SIGTERM, wait, SIGKILL. Then its group is gone."""
    if process.stdin is not None:
        process.stdin.close()
    if not await _has_ended_within(process, CLOSE_S):
        signal_group(process.pid, signal.SIGTERM)
        await _has_ended_within(process, TERM_S)
    signal_group(process.pid, signal.SIGKILL)
    await _has_ended_within(process, TERM_S)
    _guard().forget(process.pid)
    _guard().close_if_idle()


async def _has_ended_within(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    # Not process.wait(), which also waits for the pipes that a child may have kept open.
    ends_at = asyncio.get_running_loop().time() + timeout_s
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= ends_at:
            return False
        await asyncio.sleep(0.01)
    return True


class OutputLimitExceeded(Exception):
    """The error of a server that sent more than the limit."""


@dataclass(slots=True)
class StdioTransport(Transport):
    """A server's program, which runs while this is entered.

    messages: the number of messages that it has sent.
    lost: set once its stdout has ended, or if it sent more than the limit.
    flooded: whether it sent more than the limit.
    last_words: the end of its stderr, for the operator and never for a log.
    """

    server: McpServer
    messages: int = 0
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    flooded: bool = False
    last_words: bytearray = field(default_factory=bytearray)
    _unasked: int = 0
    _process: asyncio.subprocess.Process | None = None
    _ends: list[MemoryObjectReceiveStream[Received] | MemoryObjectSendStream[SessionMessage]] = field(
        default_factory=list[MemoryObjectReceiveStream[Received] | MemoryObjectSendStream[SessionMessage]]
    )
    _tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]:
        """Start the program. Raises OSError if that fails."""
        process = await start_process(list(self.server.command or ()), self.server.env, self.server.cwd)
        self._process = process
        incoming, received = anyio.create_memory_object_stream[Received](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        self._ends = [received, sent]
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._tasks = [
            asyncio.create_task(self._read(process.stdout, incoming)),
            asyncio.create_task(self._write(process.stdin, outgoing)),
            asyncio.create_task(self._read_stderr(process.stderr)),
        ]
        return received, sent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for end in self._ends:
                end.close()
            if self._process is not None:
                await end_process(self._process)
                # Open pipes of a surviving child would keep the transport alive, and warn when it is collected.
                getattr(self._process, "_transport").close()  # noqa: B009

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes from the program."""
        return self.lost.is_set() or self._process is None or has_exited(self._process)

    async def _read(self, stdout: asyncio.StreamReader, incoming: MemoryObjectSendStream[Received]) -> None:
        async with incoming:
            try:
                async for line in read_lines(stdout):
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:  # a banner, or a stray print
                        self._count_output(len(line), is_answer=False)
                        continue
                    self._count_output(len(line), is_answer=isinstance(message, JSONRPCResponse | JSONRPCError))
                    self.messages += 1
                    await incoming.send(SessionMessage(message))
            except OutputLimitExceeded:
                self.flooded = True
            except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass
            finally:  # before the stream's end fails the calls in flight
                self.lost.set()

    def _count_output(self, size: int, *, is_answer: bool) -> None:
        """Count output. Raises OutputLimitExceeded if too much came between two answers."""
        self._unasked = 0 if is_answer else self._unasked + size + LINE_OVERHEAD_BYTES
        if self._unasked > MAX_UNASKED_BYTES:
            raise OutputLimitExceeded

    async def _write(self, stdin: asyncio.StreamWriter, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        try:
            async with outgoing:
                async for message in outgoing:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stdin.write(text.encode() + b"\n")
                    await stdin.drain()
        except OSError:
            self.lost.set()

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while chunk := await stderr.read(LINE_CHUNK):
                self.last_words += chunk
                del self.last_words[:-STDERR_TAIL_BYTES]


async def read_lines(stdout: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield lines without their ends. Raises OutputLimitExceeded for a line of more than 16 MB."""
    held = bytearray()
    while chunk := await stdout.read(LINE_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            held += line
            if held.strip():
                yield bytes(held)
            held.clear()
        held += rest
        if len(held) > MAX_MESSAGE_BYTES:
            raise OutputLimitExceeded

"""Child processes for tools that must be killed at their deadline instead of being abandoned.

A child serves one call at a time and is kept for the next call. It leads its own process group, so killing it also
kills the processes that the tool has started. The child runs `main` and must stay light: this file imports neither
Celery nor Redis nor SQL. The brain's own module may import anything.
"""

from __future__ import annotations

import asyncio
import base64
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from brainq.contracts.call import Progress, ToolFailure, ToolTimeout, ToolUnknown
from brainq.contracts.file import read_files
from brainq.contracts.turn import Citation
from brainq.contracts.view import BudgetSnapshot
from brainq.engine.brain.brains import Brains, load_brains
from brainq.engine.calls.function_run import CallReturn, CancelGrace, FunctionRun, dump_return, load_return, one_line
from brainq.engine.tools.context import FileChange, RunContext, SideOutputs
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import unreported_text
from brainq.engine.tools.tool import Tool
from brainq.errors import SetupError
from brainq.runtime.observe.threads import start_thread
from brainq.runtime.processes.child import FrameLostError, SocketChild, receive_frame, send_frame
from brainq.runtime.processes.guard import ProcessGuard

_MAIN = "brainq.engine.calls.tool_processes:main"
_LONGEST_WAIT_S = 3_600.0
_HELLO_S = 10.0  # for the rest of the first frame, once the frame has begun to arrive


def main(descriptor: int, brain_ref: str) -> None:
    """Serve calls on the socket with this file descriptor until the parent closes it."""
    sock = socket.socket(fileno=descriptor)
    try:
        brains = load_brains(brain_ref)
    except BaseException as error:  # an import may raise anything, including SystemExit
        send_frame(sock, {"error": one_line(error)})
        return
    server = _CallServer(sock, brains)
    try:
        start_thread("brainq-requests", server.read)
    except RuntimeError as refused:
        send_frame(sock, {"error": one_line(refused)})
        return
    send_frame(sock, {"ready": os.getpid()})
    server.serve()


class _CallServer:
    """The server in a child process. It runs one call after another."""

    def __init__(self, sock: socket.socket, brains: Brains) -> None:
        self._sock = sock
        self._brains = brains
        self._requests: SimpleQueue[tuple[dict[str, Any], DeadlineToken]] = SimpleQueue()
        self._readiness: SimpleQueue[bool] = SimpleQueue()
        self._asking = threading.Lock()
        self._sending = threading.Lock()
        self._runner = asyncio.Runner()

    def serve(self) -> None:
        """Run calls in the main thread, where signals and subprocesses behave as usual."""
        with self._runner:
            while True:
                request, token = self._requests.get()
                ended, outputs = self._run(request, token)
                self._send(dump_return(ended) | {"outputs": dump_outputs(outputs)})

    def read(self) -> None:
        """Read the parent's frames. If the parent is gone, kill this process and everything that it started."""
        number, token = 0, DeadlineToken(0)
        try:
            while True:
                frame = receive_frame(self._sock)
                if "is_ready" in frame:
                    self._readiness.put(frame["is_ready"])
                elif "cancel" not in frame:
                    # The call's time counts from the arrival of its request.
                    number, token = frame["number"], DeadlineToken(frame["remaining_s"])
                    self._requests.put((frame, token))
                elif frame["cancel"] == number:  # otherwise the cancel is for an earlier call
                    token.cancel(frame["reason"])
        finally:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _run(self, request: dict[str, Any], token: DeadlineToken) -> tuple[CallReturn, SideOutputs]:
        brain = self._brains.of(request["context"]["brain"])
        tool = None if brain is None else brain.tools.get(request["tool"])
        if tool is None:
            missing = ToolFailure(
                error=f"SetupError: the brain loaded in the tool process has no tool {request['tool']!r}; "
                "define tools at import time, and point BRAINQ_APP at the brain the workers use",
                error_type="SetupError",
            )
            return missing, SideOutputs()
        fields: dict[str, Any] = request["context"]
        budget = fields.pop("budget")
        context = RunContext(
            **fields,
            token=token,
            budget=None if budget is None else BudgetSnapshot.model_validate(budget),
            is_ready=self._ask_ready,
            on_progress=self._send_progress,
        )
        run = FunctionRun(context)
        try:
            value = self._call(tool, request["arguments"], context)
        except BaseException as error:
            run.raised(error)
        else:
            run.returned(value)
        sys.stdout.flush()
        return run.cut(), context.outputs()

    def _ask_ready(self) -> bool:
        """Return whether the turn is ready. The parent reads that from Redis; the child connects to no service."""
        with self._asking:
            self._send({"asks": "ready"})
            return self._readiness.get()

    def _send_progress(self, progress: Progress) -> None:
        self._send({"progress": [progress.done, progress.total, progress.message]})

    def _send(self, frame: dict[str, Any]) -> None:
        with self._sending:  # several threads of a tool may send at once
            send_frame(self._sock, frame)

    def _call(self, tool: Tool, arguments: dict[str, Any], context: RunContext) -> Any:
        called = tool.function(**tool.keywords(arguments, context))
        return self._runner.run(called) if tool.is_async else called


def dump_outputs(outputs: SideOutputs) -> dict[str, Any]:
    return {
        "local": [citation.model_dump() for citation in outputs.local_citations],
        "web": [citation.model_dump() for citation in outputs.web_citations],
        "rendered": list(outputs.rendered_paths),
        "block_tool": outputs.block_tool,
        "changes": [change.row() for change in outputs.changes],
        "files": [
            {"data": base64.b64encode(file.data).decode(), "media_type": file.media_type, "name": file.name}
            for file in outputs.files
        ],
    }


def load_outputs(body: dict[str, Any]) -> SideOutputs:
    """Rebuild the outputs from the JSON of `dump_outputs`."""
    return SideOutputs(
        tuple(Citation.model_validate(citation) for citation in body["local"]),
        tuple(Citation.model_validate(citation) for citation in body["web"]),
        tuple(body["rendered"]),
        body["block_tool"],
        tuple(FileChange.from_row(row) for row in body["changes"]),
        read_files("files", body["files"]),
    )


class ToolProcesses:
    """The pool of this process's child processes. A child is started when a call finds no idle one."""

    def __init__(self, brain_ref: str, grace: CancelGrace | None = None) -> None:
        self._brain_ref = brain_ref
        self._grace = grace or CancelGrace()
        self._idle: list[_ToolChild] = []
        self._guard = ProcessGuard()
        self._pid = os.getpid()

    def run(self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, token: DeadlineToken) -> CallReturn:
        """Run the call in a child. If it does not return in time, kill the child and everything it started."""
        if not self._brain_ref:
            return _setup_failure(
                f"tool {tool.name!r} has isolation='process', but the brain was not given by name; "
                "set BRAINQ_APP to module:attr"
            )
        try:
            child = self._taken()
        except OSError as error:  # too many processes or open files
            return _setup_failure(f"no process could be started for the tool: {error.strerror}")
        started = time.monotonic()
        keep = False
        stop_listening = token.on_cancel(child.wake)
        try:
            if not child.wait_ready(token):
                keep = True  # the child continues to import the brain, for the next call
                return ToolTimeout(after_ms=0, latency_ms=_ms_since(started))
            started = time.monotonic()
            reply = child.ask(
                _request(tool, arguments, context, token),
                token,
                lambda: self._grace.seconds_for(tool, is_cancelled=token.is_cancelled),
                context,
            )
            if reply is None:
                return _timeout_outcome(started)
            keep = True
        except SetupError as error:
            return _setup_failure(str(error))
        except (FrameLostError, OSError) as error:
            return _death_outcome(child, tool, started, error)
        finally:
            stop_listening()
            if keep:
                self._idle.append(child)
            else:
                child.kill()
        context.absorb(load_outputs(reply["outputs"]))
        return load_return(reply)

    def close(self) -> None:
        """Kill the idle children, and close the guard, which kills the busy ones."""
        if self._pid == os.getpid():
            while self._idle:
                self._idle.pop().kill()
            self._guard.close()

    def _taken(self) -> _ToolChild:
        if self._pid != os.getpid():  # forked: the children belong to the parent
            self._idle, self._guard, self._pid = [], ProcessGuard(), os.getpid()
        while self._idle:
            child = self._idle.pop()
            if child.is_alive:
                return child
            child.kill()
        return _ToolChild(self._brain_ref, self._guard)


class _ToolChild(SocketChild):
    """A child process, as its parent sees it. Once it `is_ready`, its death may leave a call half done."""

    def __init__(self, brain_ref: str, guard: ProcessGuard) -> None:
        super().__init__(guard, _MAIN, brain_ref)
        self.is_ready = False
        self._number = 0
        self._woken, self._waker = socket.socketpair()

    def wait_ready(self, token: DeadlineToken) -> bool:
        """Wait until the child has loaded the brain. Returns False if the token expires first.

        Raises SetupError if the child cannot load the brain, and FrameLostError if the child has died.
        """
        if self.is_ready:
            return True
        if not self._readable(token, _no_grace):
            return False
        hello = receive_frame(self.sock, time.monotonic() + _HELLO_S)
        if "error" in hello:
            raise SetupError(f"the tool process could not load the brain: {hello['error']}")
        self.is_ready = True
        return True

    def ask(
        self, request: dict[str, Any], token: DeadlineToken, grace_s: Callable[[], float], context: RunContext
    ) -> dict[str, Any] | None:
        """Send the request and return the child's reply, or None if none comes in the `grace_s` after the expiry.

        Meanwhile the child may ask whether its turn is ready, and may report progress, as often as it likes.
        """
        self._number += 1
        self.sock.settimeout(max(0.001, token.remaining_s))
        try:
            send_frame(self.sock, request | {"number": self._number})
            while self._readable(token, grace_s):
                frame = receive_frame(self.sock, time.monotonic() + max(token.remaining_s, grace_s()))
                if "asks" in frame:
                    send_frame(self.sock, {"is_ready": context.is_ready()})
                elif "progress" in frame:
                    context.progress(*frame["progress"])
                else:
                    return frame
            return None
        except TimeoutError:
            return None

    def wake(self) -> None:
        """Wake the thread that waits for this child, so that it checks its token. Any thread may call this."""
        try:
            self._waker.send(b"!")
        except OSError:  # the child was killed meanwhile
            pass

    def kill(self) -> None:
        super().kill()
        for sock in (self._woken, self._waker):
            sock.close()

    def _readable(self, token: DeadlineToken, grace_s: Callable[[], float]) -> bool:
        """Wait for a frame. Returns False if none arrives before `grace_s` has passed after the expiry."""
        while (remaining_s := token.remaining_s) > 0:
            if self._poll(min(remaining_s, _LONGEST_WAIT_S)):
                return True
        if token.is_cancelled and self.is_ready:
            send_frame(self.sock, {"cancel": self._number, "reason": token.reason})
        ends_at = time.monotonic() + grace_s()
        while (left_s := ends_at - time.monotonic()) > 0:
            if self._poll(left_s):
                return True
        return False

    def _poll(self, timeout_s: float) -> bool:
        """Return whether there is a frame to read. Returns False as well if `wake` ended the wait."""
        poll = select.poll()  # select() cannot watch descriptors above 1023
        poll.register(self.sock, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        readable = {descriptor for descriptor, _ in poll.poll(timeout_s * 1000)}
        if self._woken.fileno() in readable:
            self._woken.recv(64)
        return self.sock.fileno() in readable


def _request(tool: Tool, arguments: Mapping[str, Any], context: RunContext, token: DeadlineToken) -> dict[str, Any]:
    return {
        "tool": tool.name,
        "arguments": dict(arguments),
        "remaining_s": token.remaining_s,
        "context": {
            "session_id": context.session_id,
            "turn_id": context.turn_id,
            "call_id": context.call_id,
            "step": context.step,
            "attempt": context.attempt,
            "budget": None if context.budget is None else context.budget.model_dump(mode="json"),
            "cwd": context.cwd,
            "metadata": context.metadata,
            "brain": context.brain,
            # A child process cannot register a token, so it gets one that is registered.
            "outside_token": "" if tool.context_param is None else context.outside_token(),
        },
    }


def _no_grace() -> float:
    return 0.0


def _death_outcome(child: _ToolChild, tool: Tool, started: float, error: Exception) -> ToolFailure | ToolUnknown:
    how = "did not answer" if isinstance(error, TimeoutError) else child.describe_end()
    died = f"the process of the tool {how}"
    if not child.is_ready:
        return _setup_failure(f"{died} while it loaded the brain")
    if not tool.spec.effect.is_read:
        return ToolUnknown(message=unreported_text(died), why="ProcessDied", latency_ms=max(1, _ms_since(started)))
    return ToolFailure(
        error=f"ProcessDied: {died} before it answered", error_type="ProcessDied", latency_ms=_ms_since(started)
    )


def _timeout_outcome(started: float) -> ToolTimeout:
    elapsed_ms = _ms_since(started)
    return ToolTimeout(after_ms=max(1, elapsed_ms), latency_ms=elapsed_ms)


def _setup_failure(problem: str) -> ToolFailure:
    return ToolFailure(error=f"SetupError: {problem}", error_type="SetupError")


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)

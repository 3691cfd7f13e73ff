"""The main of a tool process: loads the brains, then runs one call after another.

It must stay light: it imports neither Celery nor Redis nor SQL. What the brain's own module imports is the
user's business.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import socket
import sys
import threading
from queue import SimpleQueue
from typing import Any

from brainq.brain.brains import Brains
from brainq.brain.loading import load_brains
from brainq.calls.attempt import Attempt
from brainq.calls.results import CallReturn, dump_return, one_line
from brainq.contracts.call import Progress, ToolFailure
from brainq.contracts.file import read_files
from brainq.contracts.turn import Citation
from brainq.contracts.view import BudgetSnapshot
from brainq.processes.child import FrameLostError, receive_frame, send_frame
from brainq.tools.context import FileChange, RunContext, SideOutputs
from brainq.tools.deadline import DeadlineToken
from brainq.tools.tool import Tool


def main(descriptor: int, brain_ref: str) -> None:
    """Serve the socket with this file descriptor until the other side hangs up."""
    sock = socket.socket(fileno=descriptor)
    try:
        brains = load_brains(brain_ref)
    except BaseException as error:  # a module may raise anything, SystemExit too, while it is imported
        send_frame(sock, {"error": one_line(error)})
        return
    send_frame(sock, {"ready": os.getpid()})
    _CallServer(sock, brains).serve()


class _CallServer:
    def __init__(self, sock: socket.socket, brains: Brains) -> None:
        self._sock = sock
        self._brains = brains
        self._requests: SimpleQueue[tuple[dict[str, Any], DeadlineToken]] = SimpleQueue()
        self._readiness: SimpleQueue[bool] = SimpleQueue()
        self._asking = threading.Lock()
        self._sending = threading.Lock()
        self._runner = asyncio.Runner()

    def serve(self) -> None:
        """Functions run in the main thread, where signals and subprocesses behave as usual."""
        threading.Thread(target=self._read, name="brainq-requests", daemon=True).start()
        with self._runner:
            while True:
                request, token = self._requests.get()
                ended, outputs = self._run(request, token)
                self._send(dump_return(ended) | {"outputs": dump_outputs(outputs)})

    def _read(self) -> None:
        """Take what comes; end this process and all it started when the other side is gone."""
        number, token = 0, DeadlineToken(0)
        with contextlib.suppress(FrameLostError):
            while True:
                frame = receive_frame(self._sock)
                if "is_ready" in frame:
                    self._readiness.put(frame["is_ready"])
                elif "cancel" not in frame:
                    # The time counts from the arrival of the request.
                    number, token = frame["number"], DeadlineToken(frame["remaining_s"])
                    self._requests.put((frame, token))
                elif frame["cancel"] == number:  # else: it is about an earlier call
                    token.cancel(frame["reason"])
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
        attempt = Attempt(context)
        try:
            value = self._call(tool, request["arguments"], context)
        except BaseException as error:
            attempt.raised(error)
        else:
            attempt.returned(value)
        sys.stdout.flush()
        return attempt.cut(), context.outputs()

    def _ask_ready(self) -> bool:
        """Whether the turn is ready, as the other side reads it from Redis: this one reaches nothing."""
        with self._asking:
            self._send({"asks": "ready"})
            return self._readiness.get()

    def _send_progress(self, progress: Progress) -> None:
        self._send({"progress": [progress.done, progress.total, progress.message]})

    def _send(self, frame: dict[str, Any]) -> None:
        with self._sending:  # a tool may ask from several threads
            send_frame(self._sock, frame)

    def _call(self, tool: Tool, arguments: dict[str, Any], context: RunContext) -> Any:
        called = tool.function(**tool.keywords(arguments, context))
        return self._runner.run(called) if tool.is_async else called


def dump_outputs(outputs: SideOutputs) -> dict[str, Any]:
    """`outputs` as JSON."""
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
    """What `dump_outputs` made."""
    return SideOutputs(
        tuple(Citation.model_validate(citation) for citation in body["local"]),
        tuple(Citation.model_validate(citation) for citation in body["web"]),
        tuple(body["rendered"]),
        body["block_tool"],
        tuple(FileChange.from_row(row) for row in body["changes"]),
        read_files("files", body["files"]),
    )

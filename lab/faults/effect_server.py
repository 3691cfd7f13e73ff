"""`python -m lab.faults.effect_server LOG ADDRESS`: the only judge of what ran once, twice or never.

A process of its own, on a free port of this address, which it prints. `POST /write` is an effect on the world, and
`POST /visit` says that a process came to a place in its work. Each is a line of the append-only LOG before it is
answered.
`POST /hold` names a place and a turn: who comes there first gets no answer until `POST /release`, and can be killed
meanwhile. `POST /v1/chat/completions` is a model that answers 200 MB.
It uses the standard library alone, so that any build and any rival's environment can run it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LONGEST_HOLD_S = 300.0
LOGGED = ("write", "visit")
HUGE_BYTES, PIECE = 200_000_000, "x" * 65_536


class EffectLog:
    """The append-only log, and the processes that are held."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], threading.Event] = {}
        self._events: list[threading.Event] = []

    def append(self, kind: str, facts: dict[str, Any]) -> None:
        """Append one line in one write. `at` is CLOCK_MONOTONIC, which all processes of a machine share."""
        line = json.dumps({"at": time.monotonic(), "kind": kind, **facts}) + "\n"
        with self._lock:
            os.write(self._file, line.encode())

    def hold(self, place: str, turn: str) -> None:
        """Hold the next process that comes to this place with this turn."""
        with self._lock:
            event = self._held[place, turn] = threading.Event()
            self._events.append(event)

    def wait(self, place: str, turn: str) -> None:
        """Wait if this place is held for the turn. A hold stops one visitor."""
        with self._lock:
            event = self._held.pop((place, turn), None)
        if event is not None:
            event.wait(LONGEST_HOLD_S)

    def release(self) -> None:
        """Release every process that is held, and hold none from now on."""
        with self._lock:
            events, self._events = self._events, []
            self._held.clear()
        for event in events:
            event.set()


class EffectServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, log: EffectLog, address: str) -> None:
        super().__init__((address, 0), EffectHandler)
        self.effects = log


class EffectHandler(BaseHTTPRequestHandler):
    server: EffectServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/chat/completions"):
            self._answer_at_length()
            return
        kind, log = self.path.strip("/"), self.server.effects
        if kind in LOGGED:
            log.append(kind, body)
            log.wait(str(body["place"]), str(body["turn"]))
        elif kind == "hold":
            log.hold(body["place"], body["turn"])
        elif kind == "release":
            log.release()
        try:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
        except OSError:  # it was killed while it was held
            self.close_connection = True

    def _answer_at_length(self) -> None:
        """Stream an answer as a model's server does, until all is sent or the reader hangs up. Log what was read."""
        chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": PIECE}}]}
        event, sent = f"data: {json.dumps(chunk)}\n\n".encode(), 0
        self.close_connection = True
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            while sent < HUGE_BYTES:
                self.wfile.write(event)
                sent += len(event)
        except OSError:
            pass
        self.server.effects.append("visit", {"place": "huge", "turn": "", "sent": sent})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay silent: the log is the file."""


def main() -> None:
    server = EffectServer(EffectLog(Path(sys.argv[1])), sys.argv[2])
    print(server.server_port, flush=True)
    threading.Thread(target=_end_with_the_owner, daemon=True).start()
    server.serve_forever()


def _end_with_the_owner() -> None:
    sys.stdin.read()  # it ends when the process that started this one is gone
    os._exit(0)


if __name__ == "__main__":
    main()

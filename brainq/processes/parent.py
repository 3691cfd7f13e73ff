"""A child process that does many things at once, seen from the process that started it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from brainq.errors import SetupError
from brainq.leases import process_name
from brainq.processes.child import FrameLostError, SocketChild, receive_frame, send_frame
from brainq.processes.guard import ProcessGuard

START_S = 60.0  # for what the brain's module does when it is imported, too
_HELLO = 0  # the number of its first frame
_MAIN = "brainq.wiring.quarantine_child:main"
Frame = dict[str, Any]


class ChildProcess(SocketChild):
    """`name` ends the owner's name in its claims. `on_gone` gets how it died, before its pending requests fail."""

    def __init__(self, settings: Frame, guard: ProcessGuard, on_gone: Callable[[str], object]) -> None:
        super().__init__(guard, _MAIN)
        self._on_gone = on_gone
        self._numbers = itertools.count(_HELLO + 1)
        self._lock = threading.Lock()  # of sending, and of the pending requests
        self._hello: Future[Frame] = Future()
        self._pending: dict[int, Future[Frame]] = {_HELLO: self._hello}
        self._is_gone = False
        self.name = process_name(self.pid)
        # Over the socket: what is secret in it shows in no list of processes.
        with contextlib.suppress(OSError):
            send_frame(self.sock, {"settings": settings, "owner": self.name})
        self._ends_at = time.monotonic() + START_S
        threading.Thread(target=self._read, name=f"quarantine-{self.pid}", daemon=True).start()

    def wait_ready(self) -> None:
        """Raises SetupError when it cannot start."""
        try:
            hello = self._hello.result(max(0.0, self._ends_at - time.monotonic()))
        except (FrameLostError, TimeoutError) as lost:
            raise SetupError("a quarantine process did not start") from lost
        if "error" in hello:
            raise SetupError(f"a quarantine process did not start: {hello['error']}")

    def request(self, what: Frame) -> Future[Frame]:
        """Send a request. Its answer raises FrameLostError when the child has died, after `on_gone` was called."""
        number, answer = next(self._numbers), Future[Frame]()
        with self._lock:
            if self._is_gone:
                answer.set_exception(FrameLostError("it has died"))
                return answer
            self._pending[number] = answer
            with contextlib.suppress(OSError):  # it has died, which the reading thread reports
                send_frame(self.sock, {**what, "id": number})
        return answer

    def _read(self) -> None:
        """Hand each answer to its request, until the child has hung up."""
        try:
            while True:
                frame = receive_frame(self.sock)
                with self._lock:
                    answer = self._pending.pop(int(frame.get("id", _HELLO)), None)
                if answer is not None:
                    answer.set_result(frame)
        except (FrameLostError, OSError, ValueError) as lost:
            self._on_gone(self.describe_end())
            with self._lock:
                self._is_gone = True
                pending, self._pending = list(self._pending.values()), {}
            for answer in pending:
                answer.set_exception(FrameLostError(str(lost)))

"""Turns that may be what kills their workers: each goes on in a process where nothing else runs.

A process that dies takes all its turns with it, and none of them shows which one did it. A turn that lost its worker
twice without going on is therefore advanced by a child of a worker: when that child dies, it was this turn. The worker
sees it, says so in Redis, and lives on with all its other turns.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from pydantic import SecretStr

from brainq.calls.frames import FrameLostError, receive_frame, send_frame
from brainq.calls.guard import ProcessGuard
from brainq.errors import SetupError
from brainq.observe.logs import logger
from brainq.settings import Settings
from brainq.state.away import is_redis_away
from brainq.state.turns import RedisTurns

log = logger("brainq.turn")

AT_ONCE = 4  # children a worker has; what comes beside them is rung for again by the sweeper
START_S = 60.0  # for what the brain's module does when it is imported, too
_KEPT = 1  # of them wait for the next one
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from brainq.wiring.alone_child import main; main(int(sys.argv[1]))"
)


class AloneProcesses:
    """The children of this worker, started when first needed."""

    def __init__(self, settings: Settings, redis_url: str, turns: RedisTurns) -> None:
        self._settings = {**_plain(settings), "redis_url": redis_url}
        self._lease_s = settings.lease_s
        self._turns = turns
        self._guard = ProcessGuard()
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._idle: list[_Child] = []

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        """Have a child answer the doorbell; what it did, in a word. Raises SetupError when none can be started."""
        with self._lock:
            if turn_id in self._busy or len(self._busy) >= AT_ONCE:
                return "dropped: no process is free to work on it alone"
            self._busy.add(turn_id)
            child = self._idle.pop() if self._idle else None
        try:
            if child is None or not child.is_alive:
                child = _Child(self._settings, self._guard)
            return self._advance(child, session_id, turn_id, fence)
        finally:
            with self._lock:
                self._busy.discard(turn_id)

    def close(self) -> None:
        """Kill the children."""
        with self._lock:
            while self._idle:
                self._idle.pop().kill()
        self._guard.close()

    def _advance(self, child: _Child, session_id: str, turn_id: str, fence: int) -> str:
        try:
            child.wait_ready()
            log.info("turn goes on alone", turn_id=turn_id, pid=child.pid)
            child.ask([session_id, turn_id, fence])
            while (word := child.answer(self._lease_s)) is None:
                if not self._may_hold(child, session_id, turn_id):
                    # It holds the turn no more, and does not come back: it hangs.
                    child.kill()
                    return "lost"
        except SetupError:
            child.kill()
            raise
        except (FrameLostError, OSError):
            how = child.end_word()
            child.kill()
            log.error("the process of a turn that went on alone died", turn_id=turn_id, how=how)
            return f"died: {self._turns.blame(session_id, turn_id, child.name, how).lower()}"
        with self._lock:
            keep = len(self._idle) < _KEPT
            if keep:
                self._idle.append(child)
        if not keep:
            child.kill()
        return word

    def _may_hold(self, child: _Child, session_id: str, turn_id: str) -> bool:
        """While Redis is away nobody knows, and the child waits for it, too: it may have a reply to commit."""
        try:
            return self._turns.owner(session_id, turn_id).endswith(f"@{child.name}")
        except Exception as failure:
            if is_redis_away(failure):
                return True
            raise


class _Child:
    """One child process, from this side. `name` ends the owner's name in its claims."""

    def __init__(self, settings: dict[str, Any], guard: ProcessGuard) -> None:
        self._guard = guard
        self._is_ready = False
        self._sock, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.name = f"{socket.gethostname()}-{self.pid}"
        guard.add(self.pid)
        # Over the socket: what is secret in it shows in no list of processes.
        send_frame(self._sock, {"settings": settings, "owner": self.name})

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Raises SetupError when it cannot start."""
        if self._is_ready:
            return
        try:
            hello = receive_frame(self._sock, time.monotonic() + START_S)
        except (FrameLostError, TimeoutError) as lost:
            raise SetupError("a process to work on one turn alone did not start") from lost
        if "error" in hello:
            raise SetupError(f"a process to work on one turn alone did not start: {hello['error']}")
        self._is_ready = True

    def ask(self, doorbell: list[Any]) -> None:
        send_frame(self._sock, {"doorbell": doorbell})

    def answer(self, timeout_s: float) -> str | None:
        """What it did; None when it does not say within `timeout_s`. Raises FrameLostError when it died."""
        self._sock.settimeout(timeout_s)
        try:
            return str(receive_frame(self._sock)["did"])
        except TimeoutError:
            return None
        finally:
            self._sock.settimeout(None)

    def end_word(self) -> str:
        """How it died; waits for that when its socket closed a moment earlier."""
        try:
            status = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "hung up"
        return f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"

    def kill(self) -> None:
        """Kill the group and reap the child."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        self._guard.forget(self.pid)
        self._sock.close()


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings as JSON, secrets in clear."""
    shown = settings.model_dump(mode="json")
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            shown[name] = value.get_secret_value()
    return shown

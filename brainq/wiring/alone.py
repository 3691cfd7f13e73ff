"""Turns and finalizer steps that may be what kills their workers: each goes on in a process where nothing else runs.

A process that dies takes all its work with it, and none of it shows what did it. What lost its worker twice is
therefore worked on by a child of a worker: when that child dies, it was this turn, or this step. The worker sees it,
says so, and lives on with all its other work.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from pydantic import SecretStr

from brainq.calls.frames import FrameLostError
from brainq.contracts.claim import StepClaim
from brainq.finalize.alone import FailedAlone
from brainq.observe.logs import logger
from brainq.settings import Settings
from brainq.state.away import is_redis_away
from brainq.state.turns import RedisTurns
from brainq.tools.process_guard import ProcessGuard
from brainq.wiring.alone_process import AloneProcess

log = logger("brainq.turn")

AT_ONCE = (
    4  # children a worker has; a turn that comes beside them is rung for again by the sweeper, a step waits
)
_KEPT = 1  # of them wait for the next one


class AloneProcesses:
    """The children of this worker, started when first needed."""

    def __init__(self, settings: Settings, redis_url: str, turns: RedisTurns) -> None:
        self._settings = {**_plain(settings), "redis_url": redis_url}
        self._lease_s = settings.lease_s
        self._turns = turns
        self._guard = ProcessGuard()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._idle: list[AloneProcess] = []

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        """Have a child answer the doorbell; what it did, in a word. Raises SetupError when none can be started."""
        if not self._places.acquire(blocking=False):
            return "dropped: no process is free to work on it alone"
        try:
            with self._lock:
                if turn_id in self._busy:
                    return "dropped: a process works on it alone"
                self._busy.add(turn_id)
            try:
                with self._child() as child:
                    return self._advance(child, session_id, turn_id, fence)
            finally:
                with self._lock:
                    self._busy.discard(turn_id)
        finally:
            self._places.release()

    def run_step(self, claim: StepClaim, limit_s: float | None) -> None:
        """Have a child run a step that this worker has claimed.

        Raises FailedAlone for what the step raised, when the child died, and when `limit_s` has passed; SetupError
        when no child can be started.
        """
        with self._places, self._child() as child:
            log.info("step runs alone", turn_id=claim.turn_id, step=claim.step, pid=child.pid)
            try:
                child.ask({"step": asdict(replace(claim, seen=[]))})
                said = child.answer(limit_s)
            except (FrameLostError, OSError) as lost:
                how = child.end_word()
                child.kill()
                raise FailedAlone("ProcessDied", f"its process, where nothing else ran, {how}") from lost
            if said is None:
                child.kill()
                raise FailedAlone("TimeoutError", f"it did not return within {limit_s:g} s and was killed")
        if "failed" in said:
            raise FailedAlone(said["failed"], said["text"])

    def close(self) -> None:
        """Kill the children."""
        with self._lock:
            while self._idle:
                self._idle.pop().kill()
        self._guard.close()

    @contextmanager
    def _child(self) -> Generator[AloneProcess]:
        """A process that is ready. It is kept for the next one if it lives, and enough are not kept already."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is None or not child.is_alive:
            child = AloneProcess(self._settings, self._guard)
        keep = False
        try:
            child.wait_ready()
            yield child
            with self._lock:
                keep = child.is_alive and len(self._idle) < _KEPT
                if keep:
                    self._idle.append(child)
        finally:
            if not keep:
                child.kill()

    def _advance(self, child: AloneProcess, session_id: str, turn_id: str, fence: int) -> str:
        log.info("turn goes on alone", turn_id=turn_id, pid=child.pid)
        try:
            child.ask({"turn": [session_id, turn_id, fence]})
            while (said := child.answer(self._lease_s)) is None:
                if not self._may_hold(child, session_id, turn_id):
                    # It holds the turn no more, and does not come back: it hangs.
                    child.kill()
                    return "lost"
        except (FrameLostError, OSError):
            how = child.end_word()
            child.kill()
            log.error("the process of a turn that went on alone died", turn_id=turn_id, how=how)
            return f"died: {self._turns.blame(session_id, turn_id, child.name, how).lower()}"
        return str(said["did"])

    def _may_hold(self, child: AloneProcess, session_id: str, turn_id: str) -> bool:
        """While Redis is away nobody knows, and the child waits for it, too: it may have a reply to commit."""
        try:
            return self._turns.owner(session_id, turn_id).endswith(f"@{child.name}")
        except Exception as failure:
            if is_redis_away(failure):
                return True
            raise


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings as JSON, secrets in clear."""
    shown = settings.model_dump(mode="json")
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            shown[name] = value.get_secret_value()
    return shown

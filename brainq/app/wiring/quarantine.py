"""The quarantine: turns and finalizer steps that may kill their workers continue in separate processes.

A process that dies takes all its work with it, and nothing shows which work killed it. A turn that lost its worker
twice is a suspect, so a child process of a worker advances it, together with a few other suspects. When the child dies,
its turns continue in smaller groups, and in the end each by itself. If a child with a single turn dies, that turn is to
blame. The worker records that, and its other work is not affected. A finalizer step gets its own child at once, because
it has no deadline that it could miss.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from brainq.adapters.redis.connection import is_redis_unavailable
from brainq.adapters.redis.turns import RedisTurns
from brainq.contracts.claim import FinalStepClaim
from brainq.engine.brain.brains import load_brains
from brainq.engine.finalize.steps import QuarantinedStepError
from brainq.runtime.observe.logs import configure_logs, logger, turn_log_ids
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.metrics.export import start_metrics
from brainq.runtime.observe.otel_setup import start_traces, stop_telemetry
from brainq.runtime.observe.threads import start_thread
from brainq.runtime.processes.child import FrameLostError, receive_frame, send_frame
from brainq.runtime.processes.guard import ProcessGuard
from brainq.runtime.processes.quarantine_pool import ChildProcess, PooledProcess, ProcessPool, group_size
from brainq.runtime.settings.deployment import Settings, load_settings
from brainq.runtime.text.failures import failure_name, failure_text, failure_words

if TYPE_CHECKING:
    from brainq.app.wiring.wiring import Wiring
    from brainq.engine.finalize.finalizer import TurnFinalizer
    from brainq.engine.turn.coordinator import Coordinator

log = logger("brainq.turn")
STOPPED_ANSWERING = "stopped answering"


def main(descriptor: int) -> None:
    """Run the child: answer requests from the socket until the worker closes it.

    A request is `{"turn": doorbell}` or `{"step": claim}`. Each has a thread of its own, and its answer carries the
    `id` of the request.
    """
    # A worker of the finalizer pool, which needs no coordinator of its own, imports this file as well.
    from brainq.app.wiring.finalizer import make_finalizer
    from brainq.app.wiring.machines import make_coordinator, warm_up_models
    from brainq.app.wiring.wiring import Wiring

    # A worker that stops warmly lets its turns finish, and then ends this process. If the worker dies, the guard ends
    # it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=descriptor)
    first = receive_frame(sock)
    try:
        settings = load_settings(**first["settings"])
        configure_logs(settings.log_level, json_lines=settings.log_format == "json")
        stop_traces, stop_metrics = start_traces("alone"), start_metrics("alone")
        brains = load_brains(settings.app)
        wiring = Wiring(settings, brains, owner=first["owner"])
        wiring.warm_up()
        wiring.state.presence.begin()
        warm_up_models(brains)
        coordinator = make_coordinator(wiring, quarantine=None)
        finalizer = make_finalizer(wiring, quarantine=None)
    except BaseException as error:
        send_frame(sock, {"error": failure_text(error)})
        return
    send_frame(sock, {"ready": os.getpid()})
    sending = threading.Lock()

    def answer(request: dict[str, Any]) -> None:
        reply(
            request,
            _advance_turn(coordinator, request["turn"]) if "turn" in request else _run_step(finalizer, request["step"]),
        )

    def reply(request: dict[str, Any], what: dict[str, str]) -> None:
        with sending, contextlib.suppress(OSError):  # the loop below notices that the worker has closed the socket
            _flush_metrics(wiring)
            send_frame(sock, {**what, "id": request["id"]})

    try:
        while True:
            request = receive_frame(sock)
            try:
                start_thread("brainq-answer", partial(answer, request))
            except RuntimeError:
                reply(
                    request, {"did": "failed"} if "turn" in request else {"failed": "RuntimeError", "text": "no thread"}
                )
    except (FrameLostError, OSError):
        stop_telemetry([stop_traces, stop_metrics])
        os._exit(0)


def _flush_metrics(wiring: Wiring) -> None:
    """Flush the metrics, because this process may be ended at any time after its answer."""
    try:
        wiring.state.metrics.flush(COUNTERS)
    except Exception as away:
        log.debug("metrics were not flushed", why=type(away).__name__)


def _advance_turn(coordinator: Coordinator, doorbell: list[object]) -> dict[str, str]:
    session_id, turn_id, fence = doorbell
    with turn_log_ids(str(session_id), str(turn_id)):
        try:
            return {"did": coordinator.advance(str(session_id), str(turn_id), int(str(fence)))}
        except BaseException as failure:  # the worker waits for an answer, whatever happened
            log.error("advance failed", failure=failure, turn_id=turn_id)
            return {"did": "failed"}


def _run_step(finalizer: TurnFinalizer, claimed: dict[str, Any]) -> dict[str, str]:
    """Run a step that the worker has claimed, renews and settles."""
    claim = FinalStepClaim(**claimed)
    try:
        with turn_log_ids(claim.session_id, claim.turn_id):
            finalizer.run_claimed(claim)
    except BaseException as failure:
        return {"failed": failure_name(failure), "text": failure_words(failure)}
    return {}


@dataclass(frozen=True, slots=True)
class ProcessDeath:
    """The death of the process of this name, which had `among` turns in it."""

    process: str
    how: str
    among: int


class Quarantine:
    """The worker's side of the quarantine. It starts children when they are first needed."""

    def __init__(self, settings: Settings, redis_url: str, turns: RedisTurns) -> None:
        self._settings = {**_settings_as_json(settings), "redis_url": redis_url}
        self._lease_s, self._beat_s = settings.lease_s, settings.beat_s
        self._turns = turns
        self._guard = ProcessGuard()
        self._max_processes = settings.quarantine_processes
        self._processes = ProcessPool(self._start, self._max_processes)
        self._lock = threading.Lock()
        self._turns_in_children: set[str] = set()

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        """Make a child answer the doorbell, after waiting for a place. Returns the outcome as a word. Raises SetupError
        if no child can be started."""
        while True:
            with self._lock:
                if turn_id in self._turns_in_children:
                    return "dropped, because a process of its own works on the turn"
                self._turns_in_children.add(turn_id)
            try:
                found = self._in_child(session_id, turn_id, fence)
            finally:
                with self._lock:
                    self._turns_in_children.discard(turn_id)
            if isinstance(found, str):
                return found
            # Add this only now, because it rings a doorbell that may come to this worker.
            word = self._turns.blame(session_id, turn_id, found.process, found.how, found.among)
            log.error(
                "the process of a turn in quarantine died",
                turn_id=turn_id,
                how=found.how,
                among=found.among,
                word=word.lower(),
            )
            if word == "BLAMED":
                return "died: blamed"
            # The work of another turn killed the child before it had claimed this turn, so this turn was not rung
            # again.

    def run_step(self, claim: FinalStepClaim, limit_s: float | None) -> None:
        """Make a child run a step that this worker has claimed.

        Raises QuarantinedStepError if the step raised, the child died, or `limit_s` has passed. Raises SetupError if no
        child can be started.
        """
        shared = self._processes.join(1, lambda: True, self._beat_s)
        assert shared is not None
        try:
            reply = self._step(shared, claim, limit_s)
        finally:
            self._processes.leave(shared)
        if "failed" in reply:
            raise QuarantinedStepError(reply["failed"], reply["text"])

    def close(self) -> None:
        """Kill the children."""
        self._processes.close()
        self._guard.close()

    def _start(self, on_gone: Callable[[str], object]) -> ChildProcess:
        return ChildProcess(self._settings, self._guard, on_gone)

    def _step(self, shared: PooledProcess, claim: FinalStepClaim, limit_s: float | None) -> dict[str, Any]:
        child = shared.child
        child.wait_ready()
        log.info("a finalizer step runs in a process of its own", turn_id=claim.turn_id, step=claim.step, pid=child.pid)
        try:
            return child.request({"step": asdict(replace(claim, replies=[]))}).result(limit_s)
        except TimeoutError:
            self._processes.retire(shared, STOPPED_ANSWERING)
            raise QuarantinedStepError(
                "TimeoutError", f"the step did not return within {limit_s:g} s and was killed"
            ) from None
        except FrameLostError as lost:
            raise QuarantinedStepError("ProcessDied", f"the step's own process {shared.how}") from lost

    def _in_child(self, session_id: str, turn_id: str, fence: int) -> str | ProcessDeath:
        size = group_size(self._turns.died_among(session_id, turn_id), self._max_processes)

        def goes_on() -> bool:
            return self._waits(session_id, turn_id, fence)

        shared = self._processes.join(size, goes_on, self._beat_s)
        if shared is None:
            return "dropped, because nothing waits for the turn any more"
        try:
            shared.child.wait_ready()
            return self._advance(shared, session_id, turn_id, fence)
        finally:
            self._processes.leave(shared)

    def _advance(self, shared: PooledProcess, session_id: str, turn_id: str, fence: int) -> str | ProcessDeath:
        child = shared.child
        log.info("a turn continues in quarantine", turn_id=turn_id, pid=child.pid, most_together=shared.size)
        try:
            answer = child.request({"turn": [session_id, turn_id, fence]})
            while (reply := _result_within(answer, self._lease_s)) is None:
                if not self._may_hold(child, session_id, turn_id):
                    # The child no longer holds the turn and has not answered, so it hangs.
                    self._processes.retire(shared, STOPPED_ANSWERING)
                    return ProcessDeath(child.name, shared.how, shared.among) if shared.among > 1 else "lost"
        except FrameLostError:
            return ProcessDeath(child.name, shared.how, shared.among)
        return str(reply["did"])

    def _waits(self, session_id: str, turn_id: str, fence: int) -> bool:
        """Extend the turn's deadline while the turn waits for a place. Returns False if it need not wait any longer."""
        try:
            return self._turns.wait_in_quarantine(session_id, turn_id, fence) == "WAITS"
        except Exception as failure:
            if is_redis_unavailable(failure):
                return True
            raise

    def _may_hold(self, child: ChildProcess, session_id: str, turn_id: str) -> bool:
        """Return whether the child may still hold the turn.

        While Redis is unavailable the child waits as well, because it may have a reply to commit.
        """
        try:
            return self._turns.owner(session_id, turn_id).endswith(f"@{child.name}")
        except Exception as failure:
            if is_redis_unavailable(failure):
                return True
            raise


def _result_within(answer: Future[dict[str, Any]], timeout_s: float) -> dict[str, Any] | None:
    try:
        return answer.result(timeout_s)
    except TimeoutError:
        return None


def _settings_as_json(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON, with secrets in clear."""
    shown = settings.model_dump(mode="json")
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            shown[name] = value.get_secret_value()
    return shown

"""The main of a quarantine's process, which works on suspects: turns or a finalizer step. See
`brainq.wiring.quarantine`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from typing import Any

from brainq.brain.loading import load_brains
from brainq.contracts.claim import FinalStepClaim
from brainq.finalize.finalizer import TurnFinalizer
from brainq.observe.logs import configure_logs, logger, turn_log_ids
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.metrics.export import start_metrics
from brainq.observe.otel_setup import start_traces
from brainq.processes.child import FrameLostError, receive_frame, send_frame
from brainq.settings.deployment import load_settings
from brainq.turn.coordinator import Coordinator
from brainq.wiring.finalizer import make_finalizer
from brainq.wiring.machines import make_coordinator, warm_up_models
from brainq.wiring.wiring import Wiring

log = logger("brainq.turn")


def main(descriptor: int) -> None:
    """Answer what comes through the socket, `{"turn": doorbell}` or `{"step": claim}`, until the worker hangs up.

    Each has a thread of its own, and its answer carries the `id` that it came with.
    """
    # A worker that stops warmly lets its turns finish; it ends this process, or the guard does.
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
        coordinator = make_coordinator(wiring.parts, alone=None)
        finalizer = make_finalizer(wiring.parts, alone=None)
    except BaseException as error:
        send_frame(sock, {"error": f"{type(error).__name__}: {error}"})
        return
    send_frame(sock, {"ready": os.getpid()})
    sending = threading.Lock()

    def answer(asked: dict[str, Any]) -> None:
        reply = _advance_turn(coordinator, asked["turn"]) if "turn" in asked else _run_step(finalizer, asked["step"])
        with sending, contextlib.suppress(OSError):  # that the worker hung up is noticed below
            _flush_metrics(wiring)
            send_frame(sock, {**reply, "id": asked["id"]})

    try:
        while True:
            threading.Thread(target=answer, args=[receive_frame(sock)], daemon=True).start()
    except (FrameLostError, OSError):
        stop_traces()
        stop_metrics()
        os._exit(0)


def _flush_metrics(wiring: Wiring) -> None:
    """This process may be ended at any time from when it has answered."""
    try:
        wiring.state.metrics.flush(COUNTERS)
    except Exception as away:
        log.debug("metrics were not flushed", why=type(away).__name__)


def _advance_turn(coordinator: Coordinator, doorbell: list[object]) -> dict[str, str]:
    session_id, turn_id, fence = doorbell
    with turn_log_ids(str(session_id), str(turn_id)):
        try:
            return {"did": coordinator.advance(str(session_id), str(turn_id), int(str(fence)))}
        except Exception as failure:
            log.error("advance failed", failure=failure, turn_id=turn_id)
            return {"did": "failed"}


def _run_step(finalizer: TurnFinalizer, claimed: dict[str, Any]) -> dict[str, str]:
    """The worker holds the claim, beats for it, and settles it."""
    claim = FinalStepClaim(**claimed)
    try:
        with turn_log_ids(claim.session_id, claim.turn_id):
            finalizer.run_claimed(claim)
    except Exception as failure:
        return {"failed": type(failure).__name__, "text": str(failure)}
    return {}

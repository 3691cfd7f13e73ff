"""Ties a worker's life to the process that started it, and lets that process know when the worker is ready."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

OWNER_FD = "BRAINQ_OWNER_FD"
READY_FILE = "BRAINQ_READY_FILE"
LISTENER_FD = "BRAINQ_HTTP_FD"
GRACE_S = 5.0


def follow_owner() -> None:
    """End with the owner: when its end of the pipe closes, stop warmly, and after 5 s for good.

    Does nothing in a worker without an owner (systemd, a container, a terminal).
    """
    number = os.environ.pop(OWNER_FD, "")
    if number.isdigit():
        threading.Thread(target=_watch, args=(int(number),), name="brainq-owner", daemon=True).start()


def inherited_listener() -> socket.socket | None:
    """The bound socket that the owner handed over, if it did."""
    number = os.environ.pop(LISTENER_FD, "")
    if not number.isdigit():
        return None
    listener = socket.socket(fileno=int(number))
    listener.set_inheritable(False)
    return listener


def mark_ready() -> None:
    """Create the file that BRAINQ_READY_FILE names, if any: a readiness probe for supervisors."""
    path = os.environ.get(READY_FILE)
    if path:
        made = Path(f"{path}.{os.getpid()}")
        made.write_text(str(os.getpid()))
        made.replace(path)  # a reader never finds it empty


def mark_unready() -> None:
    """Remove the file that `tell_ready` wrote."""
    path = os.environ.get(READY_FILE)
    if path:
        Path(path).unlink(missing_ok=True)


def _watch(pipe: int) -> None:
    while True:
        try:
            if not os.read(pipe, 1):
                break
        except OSError:
            break
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)

"""Serve a supervisor: write the ready file, end with the owner, and take over its socket."""

from __future__ import annotations

import os
import signal
import socket
import threading
from functools import partial
from pathlib import Path

from brainq.runtime.observe.threads import KeptThread

OWNER_FD = "BRAINQ_OWNER_FD"
READY_FILE = "BRAINQ_READY_FILE"
LISTENER_FD = "BRAINQ_HTTP_FD"
OWNER_GRACE_S = 5.0


def follow_owner() -> None:
    """End this process together with its owner: when the owner's end of the pipe closes, send SIGTERM to this process,
    and SIGKILL after 5 s.

    Does nothing in a worker without an owner (systemd, a container, a terminal).
    """
    number = os.environ.pop(OWNER_FD, "")
    if number.isdigit():
        KeptThread("brainq-owner", partial(_watch_owner, int(number))).ensure()


def inherited_listener() -> socket.socket | None:
    """Return the bound socket that the owner passed on, or None."""
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
        try:
            made.write_text(str(os.getpid()))
            made.replace(path)  # a reader never finds it empty
        except OSError:
            made.unlink(missing_ok=True)
            raise


def mark_unready() -> None:
    """Remove the file that `mark_ready` wrote."""
    path = os.environ.get(READY_FILE)
    if path:
        Path(path).unlink(missing_ok=True)


def is_marked_ready() -> bool | None:
    """Return whether the ready file exists, or None if BRAINQ_READY_FILE is not set."""
    path = os.environ.get(READY_FILE)
    if not path:
        return None
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _watch_owner(pipe: int, _stopping: threading.Event) -> None:
    while True:
        try:
            if not os.read(pipe, 1):
                break
        except OSError:
            break
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(OWNER_GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)

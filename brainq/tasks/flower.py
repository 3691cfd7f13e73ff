"""`python -m brainq.tasks.flower -A MODULE flower ...`: that command of `celery`, which ends at SIGTERM.

Flower leaves its threads to the interpreter, which waits for them: each waits for a Redis that does not answer, for
half a minute and more. Flower keeps nothing, so what still hangs after the grace is left.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from celery.__main__ import main as celery
from flower import command

GRACE_S = 3.0


def main() -> None:
    """Run the celery command of `sys.argv`, and exit with 0 within the grace of SIGTERM or Ctrl+C."""
    stop: Any = command.sigterm_handler

    def stopping(signum: int, frame: object) -> None:
        _end_soon()
        stop(signum, frame)

    module: Any = command
    module.sigterm_handler = stopping
    signal.signal(signal.SIGTERM, stopping)  # until Flower sets its own
    try:
        celery()
    finally:
        _end_soon()


def _end_soon() -> None:
    """A daemon's thread: the interpreter does not wait for it."""
    timer = threading.Timer(GRACE_S, os._exit, (0,))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()

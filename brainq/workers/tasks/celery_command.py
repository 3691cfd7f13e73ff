"""Run a celery command faster: `python -m brainq.workers.tasks.celery_command -A MODULE worker ...` is `celery -A
MODULE worker ...`. The same works for `flower`.

The worker is ready sooner this way: `celery` first imports every installed command, such as Flower's with its web
server and a shell, some 400 modules that a worker never uses. Flower stops soon after SIGTERM this way: by itself it
leaves its threads to the interpreter, which waits for them, and each may wait for a Redis that does not answer for half
a minute or more. Flower keeps no data, so threads that still hang after the grace period are abandoned.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

GRACE_S = 3.0


def main(arguments: Sequence[str]) -> None:
    """Run the command until it stops, and exit as it does.

    arguments: -A MODULE, then worker or flower, then its options.
    """
    match arguments:
        case ["-A", module, "worker", *options]:
            run_worker(import_module(module).app, options)
        case ["-A", _, "flower", *_]:
            run_flower()
        case _:
            raise SystemExit(
                "usage: python -m brainq.workers.tasks.celery_command -A MODULE worker|flower [option ...]"
            )


def run_worker(app: Any, options: Sequence[str]) -> None:
    from celery.bin.base import CLIContext
    from celery.bin.worker import worker

    context: Any = CLIContext(app=app, no_color=False, workdir=None)
    command: Any = worker
    command.main(args=list(options), prog_name="celery worker", obj=context, auto_envvar_prefix="CELERY_WORKER")


def run_flower() -> None:
    """Run the celery command of `sys.argv`, and exit with 0 within the grace after SIGTERM or Ctrl+C."""
    from celery.__main__ import main as celery
    from flower import command

    module: Any = command
    stop: Any = module.sigterm_handler

    def stopping(signum: int, frame: object) -> None:
        _end_soon()
        stop(signum, frame)

    module.sigterm_handler = stopping
    signal.signal(signal.SIGTERM, stopping)  # This handler is used until Flower sets its own.
    try:
        celery()
    finally:
        _end_soon()


def _end_soon() -> None:
    """End the process after the grace period, in a daemon thread, for which the interpreter does not wait."""
    from brainq.runtime.observe.threads import start_thread

    def end() -> None:
        time.sleep(GRACE_S)
        os._exit(0)

    try:
        start_thread("brainq-end", end)
    except RuntimeError:
        os._exit(0)  # nothing else would end it


if __name__ == "__main__":
    main(sys.argv[1:])

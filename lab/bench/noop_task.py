"""A Celery task that does nothing, in the workers that load the reference brain."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery.signals import worker_init

NOOP = "brainq.bench.noop"
"""Arguments: none, or the name of a file to make in DONE_IN, which says that the tasks before it were taken."""

DONE_IN = "BENCH_DONE_IN"


@worker_init.connect
def serve(sender: Any, **_: object) -> None:
    """Put it into the app of a worker that the benchmark started; called by Celery when a worker starts."""
    if DONE_IN in os.environ:
        sender.app.task(name=NOOP, ignore_result=True)(noop)


def noop(*done: str) -> None:
    for name in done:
        Path(os.environ[DONE_IN], name).touch()

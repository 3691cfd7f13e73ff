"""`python -m brainq.tasks.start -A MODULE worker ...` is `celery -A MODULE worker ...`, ready sooner.

It is that command, made without the others: `celery` first imports every command that is installed, such as
Flower's with its web server and a shell, some 400 modules that a worker never uses.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from celery.bin.base import CLIContext
from celery.bin.worker import worker


def main(arguments: Sequence[str]) -> None:
    """Run Celery's `worker` until it stops, and exit as it does. `arguments`: -A MODULE worker and its options."""
    match arguments:
        case ["-A", module, "worker", *options]:
            app: Any = import_module(module).app
        case _:
            raise SystemExit("usage: python -m brainq.tasks.start -A MODULE worker [option ...]")
    context: Any = CLIContext(app=app, no_color=False, workdir=None)
    command: Any = worker
    command.main(args=options, prog_name="celery worker", obj=context, auto_envvar_prefix="CELERY_WORKER")


if __name__ == "__main__":
    main(sys.argv[1:])

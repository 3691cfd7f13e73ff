"""The worker as a program: the options that it refuses, and its exit code."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from celery import signals
from celery.apps import worker as stock
from celery.concurrency import thread
from celery.platforms import EX_FAILURE
from celery.worker import state

from brainq.adapters.celery.celery57.thread_pool import TaskPool
from brainq.adapters.celery.worker_health import end_by_setup
from brainq.adapters.celery.worker_options import find_refusals
from brainq.errors import SetupError

POOLS = (TaskPool, thread.TaskPool)


def was_asked_to_end() -> bool:
    return any(flag is not None and flag is not False for flag in (state.should_stop, state.should_terminate))


class Worker(stock.Worker):
    """Celery's worker program for a supervisor: unless a signal asked it to end, it ends with a failure."""

    def on_before_init(self, quiet: bool = False, **options: Any) -> None:
        """Check the options. Raises SystemExit(6) for an option that brainq does not support."""
        app: Any = self.app
        given = {"disable_prefetch": app.conf.worker_disable_prefetch, **options}
        if given.get("concurrency") == app.conf.worker_concurrency:  # Celery's command fills it in
            given["concurrency"] = None
        if refusals := find_refusals(given, app.amqp.queues.consume_from, POOLS):
            end_by_setup(SetupError("; ".join(refusals)))
        super().on_before_init(quiet=quiet, **options)

    def emit_banner(self) -> None:
        """Show the banner. A log that cannot be written does not stop the start."""
        with suppress(OSError):
            super().emit_banner()

    def start(self) -> None:
        """Run until the worker ends. Celery returns exit code 0 even for some ends that nobody requested."""
        super().start()
        if not self.exitcode and not was_asked_to_end():
            self.exitcode = cast("Any", EX_FAILURE)

    def _shutdown(self, warm: bool = True) -> None:
        if not was_asked_to_end():  # Otherwise the handler of the signal has set the exit code.
            how = "Warm" if warm else "Cold"
            signals.worker_shutting_down.send(sender=self.hostname, sig="", how=how, exitcode=self.exitcode)
        super()._shutdown(warm)

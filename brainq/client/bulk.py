"""The client's verbs for many turns at once. A bulk can be run to its end, or started in the background, followed and
stopped.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack, cast

from brainq.client import checks
from brainq.client.connection import Connection
from brainq.client.options import BulkOptions
from brainq.contracts.act import NewAct
from brainq.contracts.ids import check_id
from brainq.errors import AlreadyRuns, InvalidInput, NotFound, Unreachable
from brainq.runtime.observe.threads import StartedThread, start_thread

if TYPE_CHECKING:
    from brainq.client.bulk_run import BulkRun
    from brainq.client.client import Client
    from brainq.contracts.bulk import BulkReport, BulkVerb

MAX_AT_ONCE = 4
STOP_WAIT_S = 10.0


class BulkThreads:
    """The bulks that run in threads of this process."""

    def __init__(self) -> None:
        self._running: dict[BulkRun, StartedThread] = {}
        self._lock = threading.Lock()

    def start(self, run: BulkRun) -> None:
        """Start a bulk. Raises AlreadyRuns if the maximum number of bulks is running, and Unreachable if the system
        refuses a thread."""
        context = contextvars.copy_context()  # The context has the name of the caller, for the audit log.
        with self._lock:
            if len(self._running) >= MAX_AT_ONCE:
                raise AlreadyRuns(
                    f"{MAX_AT_ONCE} bulks are running in this process, which is the maximum; wait for one to end, or "
                    "stop one"
                )
            try:
                thread = start_thread("brainq-bulk-run", lambda: context.run(self._run, run))
            except RuntimeError as refused:
                raise Unreachable(
                    f"this process cannot start a thread for the bulk ({refused}); try again"
                ) from refused
            run.begin()
            self._running[run] = thread

    def _run(self, run: BulkRun) -> None:
        with self._lock:
            if run not in self._running:
                return  # The bulk could not be begun.
        try:
            run.run()
        finally:
            with self._lock:
                self._running.pop(run, None)

    def close(self) -> None:
        """Stop each bulk before its next turn, and wait a little for its end."""
        with self._lock:
            running = list(self._running.items())
        for run, _ in running:
            run.stopping.set()
        for _, thread in running:
            thread.join(STOP_WAIT_S)


class BulkVerbs:
    """The part of `Client` that applies one verb to every turn that a filter selects."""

    _connection: Connection
    _bulks: BulkThreads

    def bulk(
        self,
        verb: BulkVerb,
        where: str,
        *,
        on_progress: Callable[[BulkReport], None] | None = None,
        **options: Unpack[BulkOptions],
    ) -> BulkReport:
        """Apply one verb to every turn that `where` selects, and return a report.

        verb: cancel; approve or deny, for pending approvals of the turns; retry, for abandoned finalizer steps;
            resubmit, for failed turns, each once.
        where: the filters of `turns` as text, all of which must hold: `brain=shop state=parked tenant=acme older=2h`.
        dry_run: only count the turns.
        rate: turns a second, at most 1,000; 20 by default.
        most: the largest number of turns, the newest first.
        reason: kept with each act in the audit log. The model reads the reason of a denial.
        by: the person who does it.
        session_prefixes: turns of sessions that begin with one of these prefixes, such as ("acme:",).
        on_progress: called with the report so far: while turns are found, and after each turn.

        Running it again does what is left. Turns of a cell that does not answer are left out, and the report names the
        cell. Other processes follow the bulk with `bulk_report(id)`. Raises InvalidInput; later failures are in the
        report.
        """
        run = self._bulk_run(verb, where, **options)
        if on_progress is not None:
            run.on_progress = on_progress
        run.begin()
        return run.run()

    def start_bulk(
        self,
        verb: BulkVerb,
        where: str,
        *,
        may_configure: bool = True,
        **options: Unpack[BulkOptions],
    ) -> BulkReport:
        """Start a bulk in a thread of this process, and return once it has begun. Closing the client stops it.

        may_configure: False skips the resubmit of turns that chose their model, limits or prompts.

        Raises AlreadyRuns if four bulks run in this process.
        """
        run = self._bulk_run(verb, where, **options)
        run.may_configure = may_configure
        self._bulks.start(run)
        return run.report

    def bulk_report(self, bulk_id: str) -> BulkReport:
        """Return the progress of a bulk of any process, at most a second old, or its outcome, for a week. Raises
        NotFound."""
        known = check_id("bulk_id", bulk_id)
        report = self._connection.read(lambda wiring: wiring.state.bulks.read(known))
        if report is None:
            raise NotFound(f"there is no bulk {bulk_id!r}; reports are kept for a week")
        return report

    def stop_bulk(self, bulk_id: str) -> bool:
        """Stop a bulk before its next turn. Returns False if it had already ended. Raises NotFound."""
        if self.bulk_report(bulk_id).state != "running":
            return False
        return self._connection.do(
            lambda wiring: wiring.state.bulks.ask_stop(bulk_id) is None, NewAct("stop bulk", bulk_id)
        )

    def _bulk_run(
        self,
        verb: BulkVerb,
        where: str,
        *,
        dry_run: bool = False,
        rate: float = 20.0,
        most: int | None = None,
        reason: str = "",
        by: str = "",
        session_prefixes: Sequence[str] | None = None,
    ) -> BulkRun:
        from brainq.client.bulk_run import BulkRun, first_report
        from brainq.contracts.bulk import MAX_BULK_TURNS, MAX_WHERE_CHARS, BulkPlan, checked_rate, checked_verb

        if most is not None and not 0 <= most <= MAX_BULK_TURNS:
            raise InvalidInput("most", f"{most!r} is not from 0 to {MAX_BULK_TURNS:,}")
        plan = BulkPlan(
            verb=checked_verb(verb),
            where=checks.text("where", where, MAX_WHERE_CHARS),
            dry_run=dry_run,
            rate=checked_rate(rate),
            most=MAX_BULK_TURNS if most is None else most,
            reason=checks.text("reason", reason, checks.MAX_REASON_CHARS),
            by=checks.name(by),
        )
        prefixes = checks.session_prefixes(session_prefixes)
        report = first_report(plan, prefixes)
        return BulkRun(client=cast("Client", self), report=report, prefixes=prefixes)

"""The registration of brainq's tasks in a pool's Celery app."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import worker_init

from brainq.adapters.celery import names
from brainq.adapters.celery.celery57.consumer import HiddenRequest
from brainq.adapters.celery.celery57.thread_pool import current_run
from brainq.adapters.celery.thread_step import thread_step
from brainq.app.wiring import Wiring
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brains import Brains
from brainq.engine.calls.function_run import Abandon
from brainq.engine.people.admission import read_foreign
from brainq.errors import BrainqError, InvalidInput
from brainq.runtime.observe.logs import logger, turn_log_ids
from brainq.runtime.observe.spans import set_parent_context, submit_span
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents
from brainq.workers.tasks.task_events import TaskEvents, WorkFailed, raise_failure

log = logger("brainq.tasks")
GetWiring = Callable[[], Wiring]
BuildMachines = Callable[[], object]
"""Builds the objects that the tasks need before the first task, which would otherwise wait for imports."""
_FIELDS = frozenset({"arguments", *TurnRequest.model_fields})
# A failure of work is expected: it is one line in the log, without a traceback.
_OPTIONS: dict[str, Any] = {"ignore_result": True, "throws": (WorkFailed,)}
_ETA_REFUSAL = (
    "eta and countdown are not supported, because the message would wait in a worker's memory and be lost with the "
    "worker. Send it when it is due, or make a schedule (client.schedule, brainq schedule)"
)


def current_abandon() -> Abandon | None:
    """Return the function that abandons this thread's task, or None in a Celery pool that cannot replace threads."""
    run = current_run()
    if run is None:
        return None

    def abandon(settle: Callable[[], str]) -> None:
        failure: Exception | None = None
        try:
            raise_failure(settle())
        except Exception as raised:
            failure = raised
            if not isinstance(raised, WorkFailed):
                log.error("call not settled", failure=raised)
        run.abandon(failure)

    return abandon


def _kept_events(app: Celery) -> list[WorkEvents]:
    """Return a list of one: the events of the worker of `app`, once there is one."""
    events: list[WorkEvents] = [UNWATCHED]

    def keep(sender: Any, **_: object) -> None:
        if sender.app is app:
            events[:] = [TaskEvents(sender)]

    worker_init.connect(keep, weak=False)
    return events


def coordinator_tasks(app: Celery, wiring: GetWiring) -> BuildMachines:
    """Register the tasks that advance turns and accept foreign submits, and the threads of sweeper and pollers."""
    events = _kept_events(app)

    @app.task(name=names.TURN_ADVANCE, **_OPTIONS)
    def advance(session_id: str, turn_id: str, fence: int) -> None:
        with turn_log_ids(session_id, turn_id):
            raise_failure(wiring().visits.advance(session_id, turn_id, fence, events[0], current_abandon()))

    @app.task(name=names.TURN_SUBMIT, Request=HiddenRequest, bind=True, reads_request=True, **_OPTIONS)
    def submit(task: Any, *args: Any, **fields: Any) -> None:
        set_parent_context(task.request.get("traceparent"))
        raise_failure(submit_foreign(wiring(), args, fields, task.request.get(names.UNSERVED_HEADER)))

    def sweep(stopping: threading.Event, worker: Any) -> None:
        sweeper = wiring().sweeper  # if this raises, it is tried again, so no poller may have started
        for poller in wiring().pollers:
            poller.start(stopping)
        sweeper.run(stopping, TaskEvents(worker))

    steps: Any = app.steps
    steps["worker"].add(thread_step("sweeper", sweep))
    return lambda: wiring().sweeper


def call_tasks(app: Celery, wiring: GetWiring) -> BuildMachines:
    """Register the task that runs calls, of the effects whose queues the worker consumes."""
    events = _kept_events(app)

    @app.task(name=names.CALL_RUN, **_OPTIONS)
    def run(session_id: str, turn_id: str, call_id: str, attempt: int) -> None:
        with turn_log_ids(session_id, turn_id, call_id):
            visits = wiring().visits
            raise_failure(visits.run_call(session_id, turn_id, call_id, attempt, events[0], current_abandon()))

    return lambda: wiring().runner


def finalizer_tasks(app: Celery, wiring: GetWiring) -> BuildMachines:
    """Register the tasks that run finalizer steps and judges, and the thread that sends to webhooks."""
    events = _kept_events(app)

    @app.task(name=names.FINALIZE_STEP, **_OPTIONS)
    def step(session_id: str, turn_id: str, step_name: str) -> None:
        with turn_log_ids(session_id, turn_id):
            raise_failure(wiring().finalizer.run(session_id, turn_id, step_name, events[0]))

    @app.task(name=names.JUDGE_RUN, **_OPTIONS)
    def judge(session_id: str, turn_id: str, judge_name: str) -> None:
        with turn_log_ids(session_id, turn_id):
            raise_failure(wiring().judge_runner.run(session_id, turn_id, judge_name))

    def tell_webhooks(stopping: threading.Event, _worker: Any) -> None:
        wiring().webhook_sender.run(stopping)

    app_steps: Any = app.steps
    app_steps["worker"].add(thread_step("webhooks", tell_webhooks))
    return lambda: (wiring().finalizer, wiring().judge_runner)


TASKS_OF: dict[str, Callable[[Celery, GetWiring], BuildMachines]] = {
    "coordinator": coordinator_tasks,
    "parallel": call_tasks,
    "serial": call_tasks,
    "finalizer": finalizer_tasks,
}
"""The function that registers a pool's tasks. Pools that share it run the same tasks from different queues."""


def submit_foreign(wiring: Wiring, args: tuple[Any, ...], fields: dict[str, Any], unserved: str | None = None) -> str:
    """Accept the submit of a foreign producer, or record a `rejected` row with the reason.

    The fields come as keywords, or as one JSON object in the first argument. With `redact_logs` the row has the
    names of the fields, and no values.

    unserved: the header by which the message asks for what is not supported (eta), or None.
    """
    if len(args) == 1 and isinstance(args[0], dict) and not fields:
        fields = dict(args[0])
        args = ()
    try:
        if unserved:
            raise InvalidInput(unserved, _ETA_REFUSAL)
        request, files = read_foreign(args, fields, wiring.settings.file_limits)
        with submit_span(request) as request:
            wiring.tenants.settle(request.session_id)
            return wiring.people.intake.take(request, files).turn_id
    except BrainqError as failure:
        turn_id = str(fields.get("turn_id") or fields.get("request_key") or "")
        log.warning("foreign submit rejected", why=type(failure).__name__)
        redact = _redacts(wiring.brains, fields.get("brain"))
        wiring.store.turns.reject(
            turn_id,
            str(fields.get("request_key") or turn_id),
            str(fields.get("session_id") or ""),
            _without_content(failure) if redact else str(failure),
            sorted(_FIELDS.intersection(fields)) if redact else fields,
        )
        return WorkOutcome("rejected", WorkFailure.SUBMIT_REJECTED, type(failure).__name__)


def _redacts(brains: Brains, name: object) -> bool:
    """Return whether the brain keeps no content. An unknown brain is treated like the strictest of the known ones."""
    brain = brains.of(name) if name is None or isinstance(name, str) else None
    return any(each.redact_logs for each in brains) if brain is None else brain.redact_logs


def _without_content(failure: BrainqError) -> str:
    """Return the wrong field and the error's type without a value, because a brain with `redact_logs` keeps none."""
    field = failure.field if isinstance(failure, InvalidInput) else ""
    known = field if field.partition(".")[0] in _FIELDS else ""
    return ": ".join(filter(None, (known, f"{type(failure).__name__}, and no more is kept (redact_logs)")))

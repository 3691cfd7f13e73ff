"""From a checked message to the end of its task: Celery's strategy and tracer, without what brainq's tasks never use
(ETA, rate limits, results, canvas, retries)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from celery import signals
from celery.app import trace
from celery.app.task import Context
from celery.utils.imports import symbol_by_name
from celery.utils.saferepr import saferepr
from celery.worker.request import create_request_cls
from celery.worker.state import revoked
from kombu.utils.encoding import safe_repr

logger = logging.getLogger("celery.worker.strategy")
Handler = Callable[[Any, list[Any], Callable[..., object], Callable[..., object]], Any]
Tracer = Callable[..., Any]
_HOOKS = ("__call__", "before_start", "on_success", "after_return")
_CELERYS_OWN = frozenset({"celery.app.task", "celery.app.trace"})
"""The modules of Celery's own tasks. A starting worker replaces the `__call__` of its Task, for tasks that call
tasks."""


def strategy(task: Any, app: Any, consumer: Any) -> Handler:
    """Return the reader of this task's messages.

    Celery finds it by the task's `Strategy`, and requests a new one when task events are switched on or off. The reader
    returns the request for the pool, or None if there is nothing to run.

    Messages with an ETA, a rate limit or protocol 1 were refused before. The body is already parsed, so neither the
    request nor the pool parses it again.
    """
    hostname, eventer = consumer.hostname, consumer.event_dispatcher
    sends_events = eventer and eventer.enabled and task.send_events
    does_info = logger.isEnabledFor(logging.INFO)
    connection_errors = consumer.connection_errors
    request_class: Any = create_request_cls(
        symbol_by_name(task.Request), task, consumer.pool, hostname, eventer, app=app
    )

    def read(message: Any, body: list[Any], ack: Callable[..., object], reject: Callable[..., object]) -> Any:
        request = request_class(
            message,
            on_ack=ack,
            on_reject=reject,
            app=app,
            hostname=hostname,
            eventer=eventer,
            task=task,
            connection_errors=connection_errors,
            body=body,
            headers=message.headers,
            decoded=True,
        )
        if does_info:
            context = {
                "id": request.id,
                "name": request.name,
                "args": request.argsrepr,
                "kwargs": request.kwargsrepr,
                "eta": None,
            }
            logger.info(trace.LOG_RECEIVED, context, extra={"data": context})
        if (request.expires or request.id in revoked) and request.revoked():
            return None
        if signals.task_received.receivers:
            signals.task_received.send(sender=consumer, request=request)
        if sends_events:
            eventer.send(
                "task-received",
                uuid=request.id,
                name=request.name,
                args=request.argsrepr,
                kwargs=request.kwargsrepr,
                root_id=request.root_id,
                parent_id=request.parent_id,
                retries=message.headers.get("retries", 0),
                eta=None,
                expires=request.expires and request.expires.isoformat(),
            )
        return request

    return read


def lean_tracer(task: Any, full: Tracer) -> Tracer:
    """Return the `task.__trace__` that runs the function like Celery's tracer, without result, canvas and retries.

    full: Celery's tracer for the same task, which often costs more than a doorbell's whole work. It runs if task
        signals or handlers of the task's class need it.
    """
    if any(getattr(type(task), hook).__module__ not in _CELERYS_OWN for hook in _HOOKS) or not task.ignore_result:
        return full
    if getattr(task, "reads_request", False):  # only Celery's tracer passes the request to a task
        return full
    function, name = task.run, task.name
    hooks = (signals.task_prerun, signals.task_postrun, signals.task_success)
    does_info = trace.logger.isEnabledFor(logging.INFO)
    monotonic = time.monotonic

    def traced(uuid: str, args: Any, kwargs: Any, request: dict[str, Any]) -> Any:
        for signal in hooks:
            if signal.receivers:
                return full(uuid, args, kwargs, request)
        began_s = monotonic()
        try:
            returned = function(*args, **kwargs)
        except Exception as failure:
            return _record_failure(task, failure, args, kwargs, request)
        text = "None" if returned is None else saferepr(returned, task.resultrepr_maxsize)
        took_s = monotonic() - began_s
        if does_info:
            context = {
                "id": uuid,
                "name": request.get("shadow") or name,
                "return_value": text,
                "runtime": took_s,
                "args": request.get("argsrepr") or safe_repr(args),
                "kwargs": request.get("kwargsrepr") or safe_repr(kwargs),
            }
            trace.info(trace.LOG_SUCCESS, context)
        return trace.trace_ok_t(returned, None, took_s, text)

    return traced


def _record_failure(task: Any, failure: Exception, args: Any, kwargs: Any, request: dict[str, Any]) -> Any:
    """Record a failure like Celery: the handler of failures, the signal and the log line. No frame is kept alive."""
    context = Context(request, args=args, called_directly=False, kwargs=kwargs)
    info = trace.TraceInfo(trace.FAILURE, failure)
    reply = info.handle_error_state(task, context)
    trace.traceback_clear(failure)
    return trace.trace_ok_t(reply, info, 0.0, None)

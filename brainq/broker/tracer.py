"""Runs a task's function as Celery's tracer does, without what no task of brainq has: a result, a canvas, retries.

Celery's tracer is built for all of them, and costs more than many a doorbell's whole work. Where somebody hooks
into it (task signals, a task class with handlers of its own), it is Celery's that runs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from celery import signals
from celery.app import trace
from celery.app.task import Context
from celery.utils.saferepr import saferepr
from kombu.utils.encoding import safe_repr

Tracer = Callable[..., Any]

_HOOKS = ("__call__", "before_start", "on_success", "after_return")


def lean_tracer(task: Any, full: Tracer) -> Tracer:
    """What `task.__trace__` is to be. `full` is Celery's for the same task."""
    if any(trace.task_has_custom(task, hook) for hook in _HOOKS) or not task.ignore_result:
        return full
    if getattr(task, "reads_request", False):  # only Celery's tracer gives a task its request
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
            return _failed(task, failure, args, kwargs, request)
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


def _failed(task: Any, failure: Exception, args: Any, kwargs: Any, request: dict[str, Any]) -> Any:
    """As Celery: the handler of failures, the signal, the log line, and no frame kept alive."""
    context = Context(request, args=args, called_directly=False, kwargs=kwargs)
    info = trace.TraceInfo(trace.FAILURE, failure)
    told = info.handle_error_state(task, context)
    trace.traceback_clear(failure)
    return trace.trace_ok_t(told, info, 0.0, None)

"""From a checked message to a task in the pool: Celery's own strategy, without what brainq's tasks never have.

Celery finds it by the task's `Strategy`. No ETA, no rate limits, no message protocol 1: such messages are refused
before. The body is parsed already, so neither the request nor the pool parses it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery import signals
from celery.app import trace
from celery.utils.imports import symbol_by_name
from celery.worker.request import create_request_cls
from celery.worker.state import revoked, task_reserved

logger = logging.getLogger("celery.worker.strategy")

Handler = Callable[[Any, list[Any], Callable[..., object], Callable[..., object], Any], None]


def strategy(task: Any, app: Any, consumer: Any) -> Handler:
    """The handler of this task's messages; made anew when task events are switched on or off."""
    hostname, eventer = consumer.hostname, consumer.event_dispatcher
    sends_events = eventer and eventer.enabled and task.send_events
    does_info = logger.isEnabledFor(logging.INFO)
    connection_errors, run = consumer.connection_errors, consumer.on_task_request
    request_class: Any = create_request_cls(
        symbol_by_name(task.Request), task, consumer.pool, hostname, eventer, app=app
    )

    def handle(
        message: Any,
        body: list[Any],
        ack: Callable[..., object],
        reject: Callable[..., object],
        callbacks: Any,
    ) -> None:
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
            return
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
        task_reserved(request)
        for callback in callbacks:
            callback(request)
        run(request)

    return handle

"""The worker's consumer: the second check of a message, and fewer parts than the stock one.

The transport has checked that an item is a task message. Here its body is read, and whatever Celery itself
would refuse is quarantined instead of being logged with its content.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from celery.worker import consumer as stock
from celery.worker.state import maybe_shutdown

from brainq.broker.names import TASK_PREFIX

logger = logging.getLogger(__name__)

# What reading a malformed message raises. Not RuntimeError and not OSError: a closing pool and a broken
# connection are not the message's fault.
_FAULTS = (AttributeError, LookupError, OverflowError, TypeError, ValueError)


class Fitness(Protocol):
    """Whether this worker can work; see `tasks.fitness.Fitness`."""

    def wait_fit(self, give_up: Callable[[], object]) -> None: ...
    def follow(self, tell: Callable[[bool], None]) -> None: ...


class Consumer(stock.Consumer):
    """Celery's consumer without gossip and mingle: three connections fewer a worker, and nothing lost.

    The heartbeat events stay, because Flower takes a worker without them for dead.
    """

    class Blueprint(stock.Consumer.Blueprint):
        """Its steps, with remote control that only answers."""

        default_steps = [
            "brainq.broker.control:Control" if step.endswith(":Control") else step
            for step in stock.Consumer.Blueprint.default_steps
        ]

    def __init__(self, *args: Any, **options: Any) -> None:
        self._fit = True
        super().__init__(*args, **{**options, "without_gossip": True, "without_mingle": True})

    def start(self) -> None:
        """Start consuming; by now the pool has started."""
        # At level DEBUG a pool logs every task with its arguments.
        cast("Any", self.pool)._does_debug = False
        fitness: Fitness | None = getattr(self.app, "fitness", None)
        if fitness is not None:
            fitness.wait_fit(cast("Any", maybe_shutdown))
            fitness.follow(self._consume_if)
        super().start()

    def on_ready(self) -> None:
        """The worker is connected, also when it is so once more, and consumes."""
        super().on_ready()
        self._apply()

    def _consume_if(self, fit: bool) -> None:
        """Called from any thread: the event loop does it, within a second."""
        self._fit = fit
        self.call_soon(self._apply)

    def _apply(self, *_: Any) -> None:
        consumer = cast("Any", self).task_consumer
        if consumer is None:
            return
        if self._fit:
            consumer.consume()
        else:
            consumer.cancel()

    def update_strategies(self) -> None:
        """Serve brainq's tasks only, also if others were registered after the app was finalized."""
        super().update_strategies()
        for task in [task for task in self.strategies if not task.startswith(TASK_PREFIX)]:
            del self.strategies[task]

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[..., None]:
        """Celery's handler of a message, with the checks before and a net below."""
        handle = super().create_task_handler(*args, **options)

        def on_task_received(message: Any) -> None:
            try:
                fault = self._fault(message)
                if fault is None:
                    handle(message)
            except _FAULTS as error:
                fault = f"Celery cannot read it ({type(error).__name__})"
            if fault is not None:
                self._refuse(message, fault)

        return on_task_received

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """A header such as eta or expires is malformed."""
        self._refuse(message, "a header is malformed")

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """The body is not what its content type says."""
        self._refuse(message, "the body cannot be decoded")

    def _fault(self, message: Any) -> str | None:
        if message.headers["task"] not in self.strategies:
            return "its task is not served here"
        try:
            # Plainly, not by kombu's registry, which costs five times as much: the transport has made sure that
            # this is JSON text, and what kombu makes of tagged objects does not change the shape.
            body = json.loads(message.body)
        except (ValueError, RecursionError):
            return "the body is not JSON"
        if not isinstance(body, list) or len(body) != 3 or not isinstance(body[0], list):
            return "the body is not [args, kwargs, embed]"
        if body[1] is None or body[2] is None:
            # Some foreign producers send null for "none". The pool reads the body again, so it is rewritten.
            body[1:] = [body[1] or {}, body[2] or {}]
            message.body = json.dumps(body).encode()
        if not isinstance(body[1], dict) or not isinstance(body[2], dict):
            return "the body is not [args, kwargs, embed]"
        if any(body[2].get(part) for part in ("callbacks", "errbacks", "chain", "chord")):
            return "callbacks, chains and chords are not served"
        return None

    def _refuse(self, message: Any, reason: str) -> None:
        queue = str(message.delivery_info.get("routing_key"))
        quarantine = getattr(message.channel, "quarantine", None)
        if quarantine is None:
            logger.error("a message on %s was refused: %s", queue, reason)
        else:
            quarantine(reason, queue, json.dumps(message._raw, default=repr))
        if not message.acknowledged:
            message.reject_log_error(logger, self.connection_errors)

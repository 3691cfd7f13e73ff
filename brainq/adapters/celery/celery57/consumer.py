"""The worker's consumer: the second check of a message, remote control, and fewer parts than the stock consumer.

The transport has checked that an item is a task message. Here its body is read. A message that Celery itself would
refuse is quarantined, and its content is not logged.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

from celery.exceptions import InvalidTaskError
from celery.worker import consumer as stock
from celery.worker.consumer import control
from celery.worker.request import Request
from celery.worker.state import maybe_shutdown, task_ready, task_reserved
from kombu.exceptions import DecodeError
from kombu.serialization import loads
from vine import promise

from brainq.adapters.celery.celery57.pool_consumer import PoolConsumer
from brainq.adapters.celery.celery57.task_execution import lean_tracer
from brainq.adapters.celery.names import POOL_QUEUES, TASK_PREFIX, pools_of
from brainq.adapters.celery.worker_health import WorkerHealth
from brainq.runtime.observe.logs import OutageLog
from brainq.runtime.observe.logs import logger as event_logger
from brainq.runtime.processes.pool_threads import POOL_THREADS
from brainq.runtime.processes.resources import is_shortage

logger = logging.getLogger(__name__)
log = event_logger("brainq.broker")
RECONNECT_S = 0.5
LOOP_STALL_S = 10.0  # A normal round of the loop takes at most 3 s.
ANSWERED = frozenset(
    {
        *("ping", "hello", "clock", "conf", "report", "stats", "active_queues", "query_task"),
        *("registered", "dump_tasks", "scheduled", "dump_schedule", "reserved", "dump_reserved"),
        *("active", "dump_active", "revoked", "dump_revoked"),
        # Flower switches events on, and requests a heartbeat, when it starts.
        *("enable_events", "heartbeat"),
    }
)
"""The commands that a worker answers: those that Flower's worker page and `celery inspect` need. None of them changes
the worker. Your own commands are not among them."""
ALL_POOLS = frozenset(POOL_QUEUES)
HIDDEN = "(hidden)"
EVENTS_WAIT_S = 0.1
# The keys that kombu's JSON uses around a date and similar values.
_TYPE_TAG = '"__type__"'
# The errors of reading a malformed message. RuntimeError and OSError are not among them: a closing pool and a broken
# connection are not the fault of the message.
_FAULTS = (AttributeError, LookupError, OverflowError, TypeError, ValueError)


def worker_threads(app: Any, concurrency: int) -> dict[str, int]:
    """Return the threads of each pool that the workers of `app` serve: `concurrency`, if it is only one."""
    pools = pools_of(app.amqp.queues.consume_from)
    return {pools[0]: concurrency} if len(pools) == 1 else {pool: app.pool_threads[pool] for pool in pools}


class Control(control.Control):
    """Remote control that answers questions and accepts no commands.

    With Celery's own control, one PUBLISH could stop every worker, revoke tasks, or make a worker read another queue: a
    write in the pool of reads.
    """

    def __init__(self, c: Any, **kwargs: Any) -> None:
        super().__init__(c, **kwargs)
        node: Any = self.box.node
        node.handlers = {name: handler for name, handler in node.handlers.items() if name in ANSWERED}


class HiddenRequest(Request):
    """A request whose arguments are hidden from Flower, the logs and `celery inspect`, for tasks with content:
    `@app.task(Request="brainq.adapters.celery.celery57.consumer:HiddenRequest")`.

    Only the task gets the arguments. Its exceptions are not covered: their messages go to logs and events, so they must
    not quote the input.
    """

    def __init__(self, message: Any, **options: Any) -> None:
        super().__init__(message, **options)
        self._argsrepr = self._kwargsrepr = HIDDEN
        # Celery's tracer takes the texts for its log lines from this dict. If they are empty, it uses the real
        # arguments.
        self.request_dict.update(argsrepr=HIDDEN, kwargsrepr=HIDDEN)

    def info(self, safe: bool = False) -> dict[str, Any]:
        """Return the report for `celery inspect active` and `reserved`. `safe` makes no difference."""
        return {**super().info(safe=True), "args": HIDDEN, "kwargs": HIDDEN}


class _InvalidMessage(Exception):
    """The error of a message that is not a task. `str(error)` is the reason, without any of its content."""


class Consumer(stock.Consumer):
    """Celery's consumer without gossip and mingle. That saves three connections for each worker, and nothing is lost.
    It keeps the heartbeat events, because Flower reports a worker without them as dead."""

    class Blueprint(stock.Consumer.Blueprint):
        """The consumer's steps, with remote control that only answers."""

        default_steps = [
            "brainq.adapters.celery.celery57.consumer:Control" if step.endswith(":Control") else step
            for step in stock.Consumer.Blueprint.default_steps
        ]

        def start(self, parent: Any) -> None:
            """Connect and consume.

            Without free descriptors, memory or threads it connects again once there are some. Celery would end the
            worker with exit code 0.
            """
            try:
                super().start(parent)
            except Exception as failure:
                if not is_shortage(failure):
                    raise
                raise ConnectionAbortedError(
                    f"this process lacks descriptors, memory or threads ({failure})"
                ) from failure
            finally:
                parent.is_connected = False

    def __init__(self, *args: Any, **options: Any) -> None:
        self._wanted = ALL_POOLS  # of whichever pools this worker has
        self.is_connected = False
        self._looped_at = 0.0
        self._events_wait = False
        self._connecting = OutageLog(log, "connecting to the broker")
        super().__init__(*args, **{**options, "without_gossip": True, "without_mingle": True})

    def start(self) -> None:
        """Start consuming. The pool has already started."""
        # At level DEBUG a pool logs every task with its arguments.
        cast("Any", self.pool)._does_debug = False
        POOL_THREADS.serve(worker_threads(self.app, self.initial_prefetch_count))
        if (fitness := self._fitness) is not None:
            fitness.wait_fit(cast("Any", maybe_shutdown))
            fitness.follow(self)
        super().start()

    @property
    def _fitness(self) -> WorkerHealth | None:
        return getattr(self.app, "fitness", None)

    @property
    def consumes(self) -> bool:
        """Whether it takes messages: it is connected, its event loop runs, and its queues are not paused."""
        tasks: PoolConsumer | None = cast("Any", self).task_consumer
        is_turning = time.monotonic() - self._looped_at < LOOP_STALL_S
        return self.is_connected and is_turning and tasks is not None and bool(tasks.consumed_pools)

    @property
    def paused_pools(self) -> frozenset[str]:
        """The pools of this worker whose queues are paused, or none if it does not consume."""
        tasks: PoolConsumer | None = cast("Any", self).task_consumer
        return POOL_THREADS.pools - tasks.consumed_pools if tasks is not None and self.consumes else frozenset()

    def ensure_connected(self, conn: Any) -> Any:
        """Connect, with a new try twice a second. Celery waits longer each time, up to 30 s."""
        conn.ensure_connection(
            self._note_refusal,
            interval_start=RECONNECT_S,
            interval_step=0,
            interval_max=RECONNECT_S,
            callback=maybe_shutdown,
        )
        self._connecting.worked()
        self.first_connection_attempt = False
        return conn

    def _note_refusal(self, failure: Exception, _interval_s: float) -> None:
        self._connecting.failed(failure)

    def register_with_event_loop(self, hub: Any) -> None:
        """Register with the event loop, and add a check that the loop runs."""
        super().register_with_event_loop(hub)
        hub.on_tick.add(self._note_turn)

    def on_ready(self) -> None:
        """Note that the worker is connected, for the first time or again, and consumes."""
        self._events_wait = False  # The events' sender may have gone with the last connection.
        self.is_connected = True
        self._note_turn()
        self._apply()
        super().on_ready()

    def consume_if(self, may_consume: bool, idle: frozenset[str] = frozenset()) -> None:
        """Consume, except for the queues of `idle` pools, or pause. Any thread may call this. The event loop acts
        within a second."""
        self._wanted = ALL_POOLS - idle if may_consume else frozenset()
        POOL_THREADS.paused = ALL_POOLS - self._wanted
        if self.is_connected:  # otherwise on_ready does it
            self.call_soon(self._apply)

    def _note_turn(self) -> None:
        self._looped_at = time.monotonic()

    def _apply(self, *_: Any) -> None:
        consumer: PoolConsumer | None = cast("Any", self).task_consumer
        if consumer is None:
            return
        consumer.consume_only(self._wanted)
        if (fitness := self._fitness) is not None:
            fitness.note_change()

    def update_strategies(self) -> None:
        """Serve only brainq's tasks, even if others were registered after the app was finalized."""
        super().update_strategies()
        tasks: Any = cast("Any", self.app).tasks
        for task in [task for task in self.strategies if not task.startswith(TASK_PREFIX)]:
            del self.strategies[task]
        for name in self.strategies:
            task = tasks[name]
            task.__trace__ = lean_tracer(task, task.__trace__)

    def on_send_event_buffered(self) -> None:
        """Schedule the sending of task events together, a tenth of a second later. Any thread may call this."""
        hub = self.hub
        if hub is None or self._events_wait:
            return
        self._events_wait = True
        hub.call_soon(hub.call_later, EVENTS_WAIT_S, self._send_events)

    def stop(self) -> None:
        """Take no more messages. What was requested before returns to its queue now, not after the last task."""
        super().stop()
        tasks: PoolConsumer | None = cast("Any", self).task_consumer
        if tasks is not None:
            with suppress(*self.connection_errors):
                tasks.return_requested()

    def shutdown(self) -> None:
        """Send the events of tasks that ended while the worker was stopping."""
        with suppress(*self.connection_errors):
            self._flush_events()
        super().shutdown()

    def _send_events(self) -> None:
        self._events_wait = False
        self._flush_events()

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[..., None]:
        """Return the handler of messages.

        It checks a message, runs the task's strategy, and catches any other failure.
        """
        strategies: dict[str, Any] = cast("Any", self.strategies)
        callbacks = self.on_task_message

        def on_task_received(message: Any) -> None:
            fault, request = None, None
            try:
                body = self._read(message)
                acks = self._acks(message)
                request = strategies[message.headers["task"]](message, body, *acks)
            except _InvalidMessage as unfit:
                fault = str(unfit)
            except InvalidTaskError:
                fault = "a header is malformed"
            except _FAULTS as error:
                fault = f"Celery cannot read it ({type(error).__name__})"
            if fault is not None:
                self._quarantine(message, fault)
            elif request is not None:
                self._hand_over(message, request, callbacks)

        return on_task_received

    def _hand_over(self, message: Any, request: Any, callbacks: Iterable[Callable[[Any], object]]) -> None:
        """Pass a task to the pool. A failure here is the worker's own problem, so the message returns to its queue."""
        task_reserved(request)
        for callback in callbacks:
            try:
                callback(request)
            except Exception as failure:
                log.error("a handler of received tasks failed", failure=failure)
        try:
            self.on_task_request(request)
        except Exception as failure:
            log.error("a task could not be started, so its message returns to its queue", failure=failure)
            task_ready(request)
            if (fitness := self._fitness) is not None:
                self.consume_if(False)  # Pause until the next check.
                fitness.check_soon()
            message.requeue()

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Quarantine a message with a malformed header, such as eta or expires."""
        self._quarantine(message, "a header is malformed")

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Quarantine a message whose body does not match its content type."""
        self._quarantine(message, "the body cannot be decoded")

    def _acks(self, message: Any) -> tuple[Callable[..., object], Callable[..., object]]:
        """Return the functions with which a task's thread acks and rejects: at once if the broker is not involved, or
        else through the loop."""
        reject = promise(self.call_soon_ack, (message.reject_log_error,))
        if getattr(message.channel.qos, "is_local", False):
            return message.ack_log_error, reject
        return promise(self.call_soon_ack, (message.ack_log_error,)), reject

    def _read(self, message: Any) -> list[Any]:
        """Return [args, kwargs, embed]. Raises _InvalidMessage."""
        if message.headers["task"] not in self.strategies:
            raise _InvalidMessage("no worker of this queue runs its task")
        text = message.body if isinstance(message.body, str) else bytes(message.body).decode()
        try:
            # Parsed directly: kombu's registry costs five times as much, and is used only for its special values.
            body = loads(text, "application/json", "utf-8") if _TYPE_TAG in text else json.loads(text)
        except (ValueError, RecursionError, DecodeError):
            raise _InvalidMessage("the body is not JSON") from None
        if not isinstance(body, list) or len(body) != 3 or not isinstance(body[0], list):
            raise _InvalidMessage("the body is not [args, kwargs, embed]")
        args, kwargs, embed = cast("list[Any]", body)
        kwargs, embed = ({} if part is None else part for part in (kwargs, embed))  # some foreign producers send None
        if not isinstance(kwargs, dict) or not isinstance(embed, dict):
            raise _InvalidMessage("the body is not [args, kwargs, embed]")
        if embed.get("callbacks") or embed.get("errbacks") or embed.get("chain") or embed.get("chord"):
            raise _InvalidMessage("callbacks, chains and chords are not supported")
        return [args, kwargs, embed]

    def _quarantine(self, message: Any, reason: str) -> None:
        queue = str(message.delivery_info.get("routing_key"))
        quarantine = getattr(message.channel, "quarantine", None)
        if quarantine is None:
            logger.error("a message on %s was refused: %s", queue, reason)
        else:
            quarantine(reason, queue, json.dumps(message._raw, default=repr))
        if not message.acknowledged:
            message.reject_log_error(logger, self.connection_errors)

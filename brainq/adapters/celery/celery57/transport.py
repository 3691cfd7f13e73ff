"""A Redis transport that survives every item on its queues.

A stock worker exits, reconnects for ever or returns the item for its neighbour if an item is not quite a Celery
message. Here every item is checked between popping and delivering. An invalid one goes to a capped list, with the
reason, and the worker continues. Two more mistakes of foreign producers are corrected: delivery tags are made unique
(some producers send a constant), and an item returns on shutdown to its own queue, not to the one that it names.
"""

from __future__ import annotations

import base64
import json
import logging
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from queue import Empty
from typing import Any, Literal, cast
from uuid import uuid4

from kombu.transport import redis as kombu_redis
from kombu.utils.encoding import bytes_to_str

from brainq.adapters.celery.celery57.event_loop import PollingMixin, ThreadSafeQoS
from brainq.adapters.celery.names import (
    CALL_RUN,
    FINALIZE_QUEUE,
    NAMED_BY_ARGUMENT,
    POISON_LIST,
    SHOWN_NAME,
    TURN_SUBMIT,
    UNSERVED_HEADER,
    read_order,
    shared_name,
    shown_part,
)
from brainq.runtime.failover import FollowsFailover
from brainq.runtime.processes.later_threads import LATER_THREADS

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 16  # The maximum number of messages in one pop.
SAVED_ITEMS = 1000
SAVED_MS = 7 * 86400 * 1000
SAVED_BYTES = 16_384
MAX_NAME = 256
SAVE_RETRY_S = 1.0

# Quarantined items that are not written yet. Only the one event loop of a process uses this.
_unsaved: deque[str] = deque(maxlen=SAVED_ITEMS)
_tried_at = 0.0
_tags = count()
_tag_prefix = uuid4().hex


class PoisonError(Exception):
    """The error of an item that is not a task message. `str(error)` is the reason, without any of its content."""


def check_item(item: bytes | str, queue: str) -> dict[str, Any]:
    """Return the message in a queue's item, with a plain body, a unique tag, and `queue` as its address.

    Raises PoisonError with the reason if no worker could run the item.
    """
    try:
        # As text: json would guess the encoding of bytes.
        message = json.loads(item if isinstance(item, str) else item.decode())
    except (ValueError, RecursionError):
        raise PoisonError("not JSON") from None
    if not isinstance(message, dict):
        raise PoisonError("not a JSON object")
    message = cast("dict[str, Any]", message)
    properties = _object_field(message, "properties")
    headers = _object_field(message, "headers")
    for name in ("task", "id"):
        value = headers.get(name)
        if not isinstance(value, str):
            raise PoisonError(f"headers.{name} is not a text; send Celery message protocol 2")
        if len(value) > MAX_NAME or not value.isprintable():
            raise PoisonError(f"headers.{name} is too long or not printable")
    # A message with a waiting time would wait in this worker's memory and be lost with it. A foreign submit becomes a
    # row that says so; no other message has one.
    is_early = headers.pop("eta", None) is not None
    if is_early and headers["task"] != TURN_SUBMIT:
        raise PoisonError("eta and countdown are not supported")
    headers.pop(UNSERVED_HEADER, None)
    if is_early:
        headers[UNSERVED_HEADER] = "eta"
    if message.get("content-type") != "application/json":
        raise PoisonError("content-type is not application/json")
    if headers.get("compression"):
        raise PoisonError("compressed bodies are not accepted")
    headers["timelimit"] = None  # threads have none
    message["body"] = _plain_body(message.get("body"), properties)
    headers["shadow"] = _shown_name(str(headers["task"]), headers.get("shadow"), message["body"])
    properties["body_encoding"] = None
    properties["delivery_tag"] = f"{_tag_prefix}-{next(_tags)}"
    properties["delivery_info"] = {"exchange": "", "routing_key": queue}
    return message


def _shown_name(task: str, given: object, body: str) -> str | None:
    """Return the display name for logs and metrics: the tool for calls, the step for finalizer tasks, the judge for
    judgements."""
    place = NAMED_BY_ARGUMENT.get(task)
    if place is None:
        return str(given) if task == CALL_RUN and SHOWN_NAME.fullmatch(str(given)) else None
    try:
        return shown_part(task, json.loads(body)[0][place])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None  # The arguments are checked where the task runs.


def _object_field(message: dict[str, Any], name: str) -> dict[str, Any]:
    part = message.get(name)
    if not isinstance(part, dict):
        raise PoisonError(f"{name} is missing or not an object")
    return cast("dict[str, Any]", part)


def _plain_body(body: object, properties: dict[str, Any]) -> str:
    # kombu wraps a plain body in this form when it returns an unfinished message to its queue.
    if isinstance(body, dict):
        body = cast("dict[str, Any]", body).get("__value__")
    if not isinstance(body, str):
        raise PoisonError("body is not a text")
    encoding = properties.get("body_encoding")
    if encoding is None or encoding in ("", "utf-8"):
        return body
    if encoding != "base64":
        raise PoisonError("body_encoding is neither base64 nor utf-8")
    try:
        return base64.b64decode(body).decode()
    except ValueError:
        raise PoisonError("body is not base64 of UTF-8 text") from None


class _CheckedChannel:
    """The additions of both channels to kombu's. Mix it in first."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        self._kept_client: Any = None
        self._packed: dict[tuple[Any, ...], Any] = {}
        super().__init__(*args, **options)
        if not self.ack_emulation:
            self.QoS = ThreadSafeQoS

    @contextmanager
    def conn_or_acquire(self: Any, client: Any = None) -> Generator[Any]:
        """Return one shared client. kombu makes one of several hundred parts each time, and all use the same pool."""
        kept = client or self._kept_client
        if kept is None or (kept is not client and kept.connection_pool is not self.pool):
            kept = self._kept_client = self._create_client()
        yield kept

    def _subscribe(self: Any) -> None:
        # Like kombu, but to the names of channels: ElastiCache Serverless has no PSUBSCRIBE. Only events need patterns.
        topics = [topic for queue in self.active_fanout_queues for topic in self._get_subscribe_topics(queue)]
        if not topics:
            return
        pubsub = self.subclient
        if pubsub.connection._sock is None:
            pubsub.connection.connect()
        self._in_listen = pubsub.connection
        for topic in topics:
            (pubsub.psubscribe if "*" in topic else pubsub.subscribe)(topic)

    def _unsubscribe_from(self: Any, queue: str) -> None:
        pubsub = self.subclient
        if pubsub.connection and pubsub.connection._sock:
            for topic in self._get_subscribe_topics(queue):
                (pubsub.punsubscribe if "*" in topic else pubsub.unsubscribe)(topic)

    def _brpop_read(self: Any, **options: Any) -> Literal[True]:
        # kombu's own method, with another line for parsing and delivering.
        try:
            connection = self.client.connection
            try:
                reply = connection.read_response()
            except self.connection_errors:
                connection.disconnect()
                raise
            if not reply:
                raise Empty
            key, items = reply
            name = bytes_to_str(key).removeprefix(self.global_keyprefix)
            queue, is_later = name.rsplit(self.sep, 1)[0], self._is_later(name)
            self._queue_cycle.rotate(queue)
            # Before anything else can fail, because they are no longer on any queue.
            taken = self._take(items, queue, is_later=is_later)
            if taken < len(items):
                self._put_back(connection, key, items[taken:])
            if not taken:
                raise Empty
            return True
        finally:
            if _unsaved and time.monotonic() - _tried_at > SAVE_RETRY_S:
                self._save_quarantined()
            self._in_poll = None
            self._flush_brpop_reauth()

    def _brpop_start(self: Any, timeout: float | None = None) -> None:
        """Pop like kombu, but as many messages as the worker has places for, from the first queue with any. Each
        command is built once."""
        queues = self._queue_cycle.consume(len(self.active_queues))
        if not queues:
            return
        connection = self._in_poll = self.client.connection
        self._brpop_sent_at = time.monotonic()
        timeout = self.brpop_timeout if timeout is None else timeout
        connection.send_packed_command(self._packed_pop(connection, queues, timeout or 0))

    def _packed_pop(self: Any, connection: Any, queues: list[str], timeout: float) -> Any:
        room = self.qos.can_consume_max_estimate()
        count = MAX_AT_ONCE if room is None else max(1, min(room, MAX_AT_ONCE))
        if self._leads_to_results():
            free = LATER_THREADS.free
            if not free:
                return self._pack_pop(
                    connection, self._lists_of_results(), round(LATER_THREADS.looks_again_s(), 3), count
                )
            count = min(count, free)
        packed = self._packed.get((*queues, timeout, count))
        if packed is None:
            packed = self._pack_pop(connection, read_order(queues), timeout, count)
            self._packed[*queues, timeout, count] = packed
        return packed

    def _pack_pop(self: Any, connection: Any, queues: Sequence[str], timeout: float, count: int) -> Any:
        keys = [self.global_keyprefix + name for name in queues]
        return connection.pack_command("BLMPOP", timeout, len(keys), *keys, "RIGHT", "COUNT", count)

    def _leads_to_results(self: Any) -> bool:
        """Return whether this is a finalizer's worker. Such a worker keeps some threads free of work that can wait."""
        if FINALIZE_QUEUE not in self.active_queues or not isinstance(self.qos, ThreadSafeQoS):
            return False
        LATER_THREADS.follow(self.qos.threads, self.qos.later)
        return True

    def _lists_of_results(self: Any) -> list[str]:
        return [queue for queue in self.active_queues if shared_name(queue) == FINALIZE_QUEUE]

    def _is_later(self: Any, name: str) -> bool:
        return (
            shared_name(name) != FINALIZE_QUEUE
            and FINALIZE_QUEUE in self.active_queues
            and isinstance(self.qos, ThreadSafeQoS)
        )

    def _take(self: Any, items: Sequence[bytes | str], queue: str, *, is_later: bool) -> int:
        """Deliver items for as long as each has a thread. Returns how many."""
        most = min(len(items), LATER_THREADS.free) if is_later else len(items)
        for number in range(most):
            if not self.qos.try_take():
                return number
            self._admit_and_deliver(items[number], queue, is_later=is_later)
        return most

    def _put_back(self: Any, connection: Any, key: bytes | str, items: Sequence[bytes | str]) -> None:
        """Return items to the front of their queue, because continued work took threads after they were requested. If
        the connection is lost in between, the sweeper rings for them again."""
        try:
            connection.send_command("RPUSH", key, *reversed(items))
            connection.read_response()
        except self.connection_errors:
            connection.disconnect()
            raise

    def return_requested(self: Any) -> None:
        """Return the messages of a pop that is under way, because none of its queues is consumed any more."""
        if self._in_poll:
            with suppress(Empty):
                self._brpop_read()

    def _admit_and_deliver(self: Any, item: bytes | str, queue: str, *, is_later: bool) -> None:
        """Deliver an item for which a thread was taken. The thread is given back if nothing will run in it."""
        try:
            message = check_item(item, queue)
        except PoisonError as poison:
            self.qos.give_back()
            self.quarantine(str(poison), queue, item)
            return
        tag = message["properties"]["delivery_tag"]
        if is_later:
            headers = message["headers"]
            turn_id = headers.get("root_id") if shared_name(queue) == FINALIZE_QUEUE else None
            self.qos.note_later(tag, str(turn_id or headers["id"]))
        self.qos.hold(tag)
        try:
            self.connection._deliver(message, queue)
        except BaseException:
            self.qos.let_go(tag)
            raise
        if tag not in self.qos._delivered:  # its queue is no longer consumed, so kombu has returned it
            self.qos.let_go(tag)

    def _deliver_fanout_message(self: Any, message: Any, exchange: str) -> Literal[True]:
        try:
            return super()._deliver_fanout_message(message, exchange)  # type: ignore[misc]
        except (AttributeError, LookupError, TypeError, ValueError):
            logger.warning("a malformed broadcast on %r was dropped", exchange)
            return True

    def quarantine(self: Any, reason: str, queue: str, item: bytes | str) -> None:
        """Keep an item for inspection. The newest 1000 are kept for 7 days."""
        logger.error("an item on %s was quarantined: %s", queue, reason)
        text = item.decode(errors="replace") if isinstance(item, bytes) else item
        note = {"reason": reason, "queue": queue, "at": round(time.time(), 3), "item": text[:SAVED_BYTES]}
        _unsaved.append(json.dumps(note))
        self._save_quarantined()

    def _save_quarantined(self: Any) -> None:
        """Write the quarantined items. While Redis refuses writes because it is full, this process keeps them."""
        global _tried_at
        _tried_at = time.monotonic()
        kept = list(_unsaved)
        try:
            with self.conn_or_acquire() as client, client.pipeline() as pipe:
                pipe.lpush(POISON_LIST, *kept)
                # kombu's client adds the key prefix to the keys of some commands; LTRIM is not one of them.
                pipe.ltrim(self.global_keyprefix + POISON_LIST, 0, SAVED_ITEMS - 1)
                pipe.pexpire(POISON_LIST, SAVED_MS)
                pipe.execute()
        except self.ResponseError as refused:
            why = type(refused).__name__
            logger.error(
                "%d quarantined items could not be saved yet, because Redis refuses writes: %s", len(kept), why
            )
            return
        for _ in kept:
            _unsaved.popleft()


class Channel(_CheckedChannel, kombu_redis.Channel):
    """kombu's Redis channel with checked items."""


class Transport(PollingMixin, kombu_redis.Transport):
    """kombu's Redis transport with checked items."""

    Channel = Channel


class PrimaryConnection(FollowsFailover, cast("type", kombu_redis.SentinelChannel.connection_class)):
    """A connection to the primary that sentinels name."""


class SentinelChannel(_CheckedChannel, kombu_redis.SentinelChannel):
    """kombu's Sentinel channel with checked items."""

    connection_class = PrimaryConnection


class SentinelTransport(PollingMixin, kombu_redis.SentinelTransport):
    """kombu's Sentinel transport with checked items."""

    Channel = SentinelChannel


CHECKED_TRANSPORTS: dict[type, type] = {
    kombu_redis.Transport: Transport,
    kombu_redis.SentinelTransport: SentinelTransport,
}

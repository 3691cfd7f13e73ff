"""The Celery app of a worker or a producer, and the publishing of doorbells that scripts left in an outbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

from celery import Celery
from celery.app.amqp import AMQP
from kombu.connection import Connection, ConnectionPool, PooledConnection
from kombu.entity import Exchange, Queue

from brainq.adapters.celery import names
from brainq.adapters.celery.celery57.cluster_transport import (
    CLUSTER_TAG,
    ClusterTransport,
    PooledClusterTransport,
    slot_primary_of,
    tag_of,
)
from brainq.adapters.celery.celery57.transport import CHECKED_TRANSPORTS
from brainq.errors import SetupError
from brainq.runtime.settings.cluster_url import CLUSTER_SCHEMES, key_prefix, parse_cluster_url
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.settings.redis_url import KEEPALIVE_OPTIONS, parse_redis_url, parse_sentinel_url
from brainq.runtime.text.service_url import host_in_url

# The broker's default exchange: a message goes to the queue that its routing key names, without any binding. A named
# exchange drops messages until its queue is bound.
_DEFAULT_EXCHANGE = Exchange("", type="direct")


_REDIS_SCHEMES = ("redis", "unix", "sentinel")


class _PooledConnection(PooledConnection):
    """A connection of a pool, which producers and `celery inspect` use."""

    def get_transport_cls(self) -> Any:
        return PooledClusterTransport if tag_of(self) else super().get_transport_cls()


class _Pool(ConnectionPool):
    def new(self) -> _PooledConnection:
        return _PooledConnection(self, **dict(self.connection._info(resolve=False)))


class _CheckedConnection(Connection):
    """Replaces kombu's Redis transports with brainq's. The URL is unchanged, so that Flower recognises it."""

    def get_transport_cls(self) -> Any:
        transport: Any = super().get_transport_cls()
        return ClusterTransport if tag_of(self) else CHECKED_TRANSPORTS.get(transport, transport)

    def as_uri(self, include_password: bool = False, *args: Any, **options: Any) -> str:
        """Return the URL. With the password, which Flower asks for to read the queues, it names the node that has them
        now. Raises redis' ConnectionError if there is none."""
        uri: str = super().as_uri(include_password, *args, **options)
        if not (tag_of(self) and include_password):
            return uri
        host, port = slot_primary_of(self).discover_master("")
        parts = urlsplit(uri)
        login, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{login}{at}{host_in_url(host)}:{port}").geturl()

    def Pool(self, limit: int | None = None, **options: Any) -> _Pool:  # noqa: N802
        return _Pool(self, limit, **options)


class _DirectAMQP(AMQP):
    Connection = _CheckedConnection
    BrokerConnection = _CheckedConnection
    default_exchange = cast("Any", _DEFAULT_EXCHANGE)

    def TaskConsumer(self, channel: Any, queues: Any = None, accept: Any = None, **options: Any) -> Any:  # noqa: N802
        """Return the consumer of a worker, with a channel for each pool."""
        from brainq.adapters.celery.celery57.pool_consumer import PoolConsumer  # here, because producers have none

        accept = self.app.conf.accept_content if accept is None else accept
        return PoolConsumer(channel, queues or list(self.queues.consume_from.values()), accept=accept, **options)


class _App(Celery):
    """
    pool_threads: the threads of each pool in a worker of several pools.
    """

    pool_threads: dict[str, int]

    @cached_property
    def Worker(self) -> Any:  # noqa: N802  # pyright: ignore[reportIncompatibleVariableOverride]
        """The program behind `celery worker`."""
        return self.subclass_with_self("brainq.adapters.celery.celery57.worker:Worker")

    def task(self, *args: Any, **options: Any) -> Any:
        # Celery copies a task into every app of the process by default; a pool must serve its own tasks only.
        options.setdefault("shared", False)
        options.setdefault("Strategy", "brainq.adapters.celery.celery57.task_execution:strategy")
        return super().task(*args, **options)


def make_app(
    settings: Settings,
    queues: Sequence[str] = (),
    *,
    broker_url: str | None = None,
    name: str = "brainq",
    builds: Sequence[str] = (),
) -> Celery:
    """Return a Celery app that can publish to every brainq queue, and whose workers consume `queues`.

    The broker is `broker_url`, or else `settings.broker_url`, or else `runtime.settings.redis_url`. The app does not
    become the current one, so it can live beside your own app. Raises SetupError without a broker, or if `queues` names
    one that does not exist.

    builds: the builds whose separate queues its workers read, too (`names.build_queue`).

    A worker of several pools has the threads of each pool's setting, and needs Redis as its broker.
    """
    unknown = sorted(set(queues) - set(names.ALL_QUEUES))
    if unknown:
        raise SetupError(f"no such queue: {', '.join(unknown)}; the queues are {', '.join(names.ALL_QUEUES)}")
    pools = names.pools_of(queues)
    own = [names.build_queue(queue, build) for build in builds for queue in queues]
    given = broker_url or _configured_url(settings)
    url = celery_url(given)
    if len(pools) > 1 and not url.startswith(_REDIS_SCHEMES):
        raise SetupError(
            f"a worker of several pools ({', '.join(pools)}) needs Redis as its broker; "
            "with BRAINQ_BROKER_URL elsewhere start a worker for each pool: brainq worker POOL"
        )
    app = _App(name, set_as_current=False, amqp=_DirectAMQP)
    app.pool_threads = {pool: getattr(settings.concurrency, pool) for pool in pools}
    conf = cast("Any", app.conf)
    # CELERY_RESULT_BACKEND and CELERY_BROKER_URL may be set for the user's own app in the same environment. These three
    # keep them out of brainq's app.
    app.backend_cls = cast("Any", "disabled")
    conf.broker_read_url = url
    conf.broker_write_url = url
    conf.update(
        broker_url=url,
        broker_transport_options=_transport_options(settings, given),
        task_queues=[Queue(queue, _DEFAULT_EXCHANGE, routing_key=queue) for queue in (*names.ALL_QUEUES, *own)],
        worker_concurrency=sum(app.pool_threads.values()) or None,
        worker_send_task_events=settings.task_events,
        worker_enable_remote_control=settings.remote_control,
        **_FIXED,
    )
    cast("Any", app.on_after_finalize).connect(_keep_own_tasks, weak=False)
    if queues:
        app.amqp.queues.select([*queues, *own])
    return app


def celery_url(url: str) -> str:
    """Return `url` in the form that kombu reads. Raises SetupError for one that kombu and redis-py do not both
    understand."""
    if url.startswith("sentinel://"):
        return parse_sentinel_url(url).celery_url
    if url.startswith(CLUSTER_SCHEMES):
        seeds = [seed.celery_url for seed in parse_cluster_url(url).seeds]
        return ";".join(seeds if len(seeds) > 1 else seeds * 2)  # kombu keeps the list of URLs if there are several
    return parse_redis_url(url).celery_url if url.startswith(("redis", "unix")) else url


_FIXED: dict[str, Any] = {
    # brainq recovers by its leases; acks only control how much a worker takes. See the design, section 8.
    "task_acks_late": True,
    "worker_prefetch_multiplier": 1,
    "task_reject_on_worker_lost": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_enable_prefetch_count_reduction": False,
    # No results, no canvas.
    "result_backend": None,
    "task_ignore_result": True,
    "task_store_errors_even_if_ignored": False,
    # A mistyped queue raises instead of filling a queue that no worker reads.
    "task_create_missing_queues": False,
    "task_default_queue": names.TURNS_QUEUE,
    "task_default_exchange": "",
    "task_routes": {task: {"queue": queue} for task, queue in names.TASK_QUEUES.items()},
    # JSON only, uncompressed.
    "task_serializer": "json",
    "event_serializer": "json",
    "accept_content": ["json"],
    "result_accept_content": ["json"],
    "task_compression": None,
    # A worker waits for a Redis that is full, read-only or refuses commands; by default it would exit.
    "broker_channel_error_retry": True,
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "broker_connection_timeout": 5,
    "broker_pool_limit": 64,
    "broker_pool_acquire_timeout": 5,
    # The sweeper retries without end; a publisher does not wait long.
    "task_publish_retry_policy": {"max_retries": 2, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5},
    "worker_pool": "brainq.adapters.celery.celery57.thread_pool:TaskPool",
    "worker_consumer": "brainq.adapters.celery.celery57.consumer:Consumer",
    "worker_detect_quorum_queues": False,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "task_send_sent_event": False,
    "event_queue_expires": 60,
    "enable_utc": True,
    "timezone": "UTC",
}


def _configured_url(settings: Settings) -> str:
    secret = settings.broker_url or settings.redis_url
    if secret is None:
        raise SetupError(
            "no broker: set BRAINQ_REDIS_URL (such as redis://127.0.0.1:6379/0), or run `brainq dev`, which starts "
            "its own Redis"
        )
    return secret.get_secret_value()


def _transport_options(settings: Settings, url: str) -> dict[str, Any]:
    if not url.startswith(_REDIS_SCHEMES):
        return {}
    options: dict[str, Any] = {
        "ack_emulation": False,
        "global_keyprefix": key_prefix(url, settings.prefix),
        "max_connections": 512,
        "socket_timeout": 3,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "socket_keepalive_options": KEEPALIVE_OPTIONS,
        # If a pop gets no answer, it is abandoned after its wait of a second and one or two seconds more, so within
        # 10 s.
        "health_check_interval": 3,
        # Two lists for each queue, not four: one for work that leads to a result, and one for work that can wait.
        "priority_steps": [0, names.LATER_PRIORITY],
        # A retry of an LPUSH whose first reply was lost would send the message twice.
        "retry_on_timeout": False,
    }
    if url.startswith("sentinel://"):
        options["master_name"] = parse_sentinel_url(url).master
    if url.startswith(CLUSTER_SCHEMES):
        options[CLUSTER_TAG] = parse_cluster_url(url).tag
    return options


def _keep_own_tasks(sender: Celery, **_: Any) -> None:
    # celery.map and similar tasks run any task from any queue, including a write from the queue of reads. Tasks of the
    # user's own apps in this process also arrive here, because Celery shares them.
    for task in [task for task in sender.tasks if not task.startswith(names.TASK_PREFIX)]:
        sender.tasks.pop(task)


def publish_doorbell(app: Celery, text: str) -> None:
    """Publish one whole envelope (see `adapters.celery.envelope`) as the Celery message that it describes. Raises
    kombu's OperationalError if the broker is down. The doorbell is then lost, and the sweeper rings again."""
    message: dict[str, Any] = json.loads(text)
    properties: dict[str, Any] = message["properties"]
    with app.producer_or_acquire() as producer:
        producer.publish(
            message["body"],
            exchange="",
            routing_key=properties["delivery_info"]["routing_key"],
            headers=message["headers"],
            content_type=message["content-type"],
            content_encoding=message["content-encoding"],
            correlation_id=properties["correlation_id"],
            delivery_mode=properties["delivery_mode"],
            priority=properties["priority"],
            retry=True,
            retry_policy=app.conf.task_publish_retry_policy,
        )

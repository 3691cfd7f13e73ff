"""What an app is set to, before it meets a broker."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from celery import Celery, current_app
from celery.exceptions import QueueNotFound
from pydantic import SecretStr

from brainq.adapters.celery import names
from brainq.adapters.celery.app import celery_url, make_app
from brainq.adapters.celery.celery57.transport import SentinelTransport, Transport
from brainq.contracts.status import Effect
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import Settings

URL = "redis://127.0.0.1:1/3"


def work() -> None: ...


def app_for(url: str = URL, **given: Any) -> Celery:
    return make_app(Settings(redis_url=SecretStr(url), **given))


def test_each_effect_has_a_queue_of_its_own() -> None:
    queues = {names.tool_queue(effect) for effect in Effect}
    assert queues == {*names.PARALLEL_QUEUES, *names.SERIAL_QUEUES}
    assert names.tool_queue(Effect.READ_ONLY) not in names.SERIAL_QUEUES


def test_a_queues_key_has_the_prefix() -> None:
    assert names.queue_key(Settings(prefix="shop:"), names.TURNS_QUEUE) == "shop:brainq.turns"


def test_no_builtin_and_no_foreign_task_is_registered() -> None:
    foreign = Celery("foreign", set_as_current=False)
    foreign.task(work, name="foreign.write")
    app = app_for()
    app.task(work, name=names.TURN_ADVANCE)
    assert set(app.tasks) == {names.TURN_ADVANCE}


def test_a_task_of_one_pools_app_does_not_reach_anothers() -> None:
    serial, parallel = app_for(), app_for()
    serial.task(work, name=names.CALL_RUN)
    assert set(serial.tasks) == {names.CALL_RUN}
    assert set(parallel.tasks) == set()


def test_the_app_is_not_made_the_current_one() -> None:
    app = app_for()
    assert app != current_app


def test_the_environment_of_the_users_own_celery_does_not_reach_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "amqp://elsewhere//")
    monkeypatch.setenv("CELERY_RESULT_BACKEND", "redis://elsewhere/0")
    app = app_for()
    for connection in (app.connection_for_read(), app.connection_for_write()):
        assert connection.as_uri().endswith("@127.0.0.1:1/3")
    assert type(app.backend).__name__ == "DisabledBackend"


def test_a_mistyped_queue_raises_before_anything_is_sent() -> None:
    with pytest.raises(QueueNotFound):
        app_for().send_task(names.TURN_ADVANCE, queue="brainq.turn")
    with pytest.raises(SetupError, match=r"brainq\.turn;"):
        make_app(Settings(redis_url=SecretStr(URL)), ["brainq.turn"])


def test_an_app_consumes_only_the_queues_it_was_made_for() -> None:
    app = make_app(Settings(redis_url=SecretStr(URL)), names.SERIAL_QUEUES)
    assert set(app.amqp.queues.consume_from) == set(names.SERIAL_QUEUES)
    assert set(app.amqp.queues) == set(names.ALL_QUEUES)


@pytest.mark.filterwarnings("ignore:.*superuser privileges:celery.exceptions.SecurityWarning")
def test_a_worker_of_several_pools_has_the_threads_of_each() -> None:
    counts = {"coordinator": 5, "parallel": 3, "serial": 2, "finalizer": 1}
    app: Any = make_app(Settings.model_validate({"redis_url": URL, "concurrency": counts}), names.ALL_QUEUES)
    assert (app.pool_threads, app.conf.worker_concurrency) == (counts, 11)
    assert app.Worker(quiet=True, concurrency=11).concurrency == 11, "as Celery's command fills it in"
    with pytest.raises(SystemExit):
        app.Worker(quiet=True, concurrency=4)


def test_a_worker_of_several_pools_needs_redis_as_its_broker() -> None:
    elsewhere = Settings(redis_url=SecretStr(URL), broker_url=SecretStr("memory://"), doorbell="outbox")
    assert make_app(elsewhere, names.SERIAL_QUEUES)
    with pytest.raises(SetupError, match="start a worker for each pool: brainq worker POOL"):
        make_app(elsewhere, (*names.SERIAL_QUEUES, *names.FINALIZER_QUEUES))


def test_without_a_broker_the_error_names_the_variable() -> None:
    with pytest.raises(SetupError, match="BRAINQ_REDIS_URL"):
        make_app(Settings())


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("redis://h:1/0", Transport),
        ("rediss://h:1/0", Transport),
        ("unix:///tmp/x.sock?db=2", Transport),
        ("sentinel://h:1,h:2/m", SentinelTransport),
    ],
)
def test_every_redis_url_gets_a_checked_transport(url: str, transport: type) -> None:
    connection: Any = app_for(url).connection_for_read()
    assert connection.get_transport_cls() is transport
    assert connection.clone().get_transport_cls() is transport


def test_a_silent_redis_is_given_up_within_ten_seconds() -> None:
    options = app_for("redis://h:1/0").conf.broker_transport_options
    assert Transport.brpop_timeout + 2 * options["health_check_interval"] < 10, "a pop of doorbells"
    assert options["socket_timeout"] < 10, "any other command"


def test_another_broker_gets_kombus_transport_and_no_redis_options() -> None:
    app = app_for(broker_url=SecretStr("memory://"), doorbell="outbox")
    assert app.conf.broker_transport_options == {}
    connection: Any = app.connection_for_read()
    assert connection.get_transport_cls().__module__ == "kombu.transport.memory"


@pytest.mark.parametrize(
    ("url", "as_kombu_writes_it"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("unix:///tmp/x.sock?db=2", "redis+socket:///tmp/x.sock?virtual_host=2"),
        ("unix://u:p@/tmp/x.sock", "redis+socket://u:p@/tmp/x.sock?virtual_host=0"),
    ],
)
def test_a_unix_socket_is_written_as_kombu_reads_it(url: str, as_kombu_writes_it: str) -> None:
    assert celery_url(url) == as_kombu_writes_it


def test_names_and_envelopes_do_not_load_celery() -> None:
    code = """if True:
        import sys, brainq.adapters.celery.names, brainq.adapters.celery.envelope
        print({"celery", "kombu", "redis"} & set(sys.modules))
    """
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"

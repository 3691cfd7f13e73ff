"""ops/redis: a real server takes the files, and a worker needs no right the ACL does not give."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from brainq.adapters.celery.app import make_app
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.celery.names import COORDINATOR_QUEUES, POISON_LIST, TURN_ADVANCE, TURNS_QUEUE
from brainq.adapters.redis.stream_reader import StreamReader
from brainq.app.devserver.ports import free_port, ping
from brainq.app.devserver.redis_server import find_server
from brainq.app.wiring.preflight import Check
from brainq.cli.doctor.rights import check_rights
from brainq.runtime.settings.deployment import load_settings
from tests.integration.adapters.celery.worker import running, settings_for, watching
from tests.support.streams import KEYS, SESSION, take, until
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[4]
FILES, DOCS = ROOT / "ops" / "redis", ROOT / "docs"


@contextmanager
def server(*arguments: str) -> Generator[int]:
    """A server run on ops/redis/redis.conf as a deployment would; yields its port."""
    directory, port = tempfile.mkdtemp(prefix="bq-"), free_port()
    command = [str(find_server()), str(FILES / "redis.conf"), "--port", str(port), "--dir", directory]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE) as process:
        try:
            wait_until(lambda: ping_or_died(process, port), "a server on ops/redis/redis.conf answers")
            yield port
        finally:
            process.terminate()
            process.communicate(timeout=10)
            shutil.rmtree(directory)


def ping_or_died(process: subprocess.Popen[bytes], port: int) -> bool:
    if process.poll() is not None and process.stdout is not None:
        raise AssertionError(f"the server refused the file: {process.stdout.read().decode()}")
    return ping(("127.0.0.1", port))


def test_the_configuration_is_accepted_and_means_what_it_says() -> None:
    with server() as port, Redis(port=port, decode_responses=True) as redis:
        assert redis.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert redis.config_get("appendfsync") == {"appendfsync": "everysec"}
        assert redis.config_get("appendonly") == {"appendonly": "yes"}


@pytest.fixture(scope="module")
def guarded_port() -> Generator[int]:
    with tempfile.TemporaryDirectory() as directory:
        # The default user is off, so the ping of the wait above must be let in without it.
        users = Path(directory) / "users.acl"
        users.write_text((FILES / "users.acl").read_text().replace("default off", "default on nopass +ping"))
        with server("--aclfile", str(users)) as port:
            yield port


def connect(port: int, user: str) -> Redis:
    return Redis(port=port, username=f"brainq_{user}", password=f"CHANGE-ME-{user}", decode_responses=True)


def test_a_whole_worker_gets_along_with_the_workers_user(guarded_port: int) -> None:
    settings = settings_for(f"redis://brainq_worker:CHANGE-ME-worker@127.0.0.1:{guarded_port}/0")
    app = make_app(settings, COORDINATOR_QUEUES)
    ran = threading.Event()

    def advance(*args: object) -> None:
        ran.set()

    app.task(advance, name=TURN_ADVANCE)
    with connect(guarded_port, "admin") as admin, connect(guarded_port, "worker") as redis:
        with running(app), watching(app) as events:
            bell = envelope(TURN_ADVANCE, ("s1", "t1", 1), "t1.1", TURNS_QUEUE, "t1")
            redis.lpush("bq:brainq.turns", "poison", bell)
            assert ran.wait(60)
            wait_until(lambda: "task-succeeded" in events, "events pass")
            inspect = app.control.inspect(timeout=0.5)
            wait_until(inspect.ping, "remote control passes")
        assert redis.llen("bq:" + POISON_LIST) == 1
        script = "redis.call('SET', KEYS[1], redis.call('TIME')[1]); redis.call('ZADD', KEYS[2], 1, 'a') return 1"
        assert redis.eval(script, 2, "bq:{s}:a", "bq:{s}:b") == 1
        assert admin.acl_log() == []
        for refused in ("FLUSHALL", "CONFIG GET *", "KEYS *", "SCRIPT FLUSH", "GET other:key", "SHUTDOWN"):
            with pytest.raises(NoPermissionError):
                redis.execute_command(*refused.split())
        admin.acl_log_reset()


def test_many_streams_are_followed_with_the_workers_user(guarded_port: int) -> None:
    async def follow() -> list[int]:
        reader = StreamReader(f"redis://brainq_worker:CHANGE-ME-worker@127.0.0.1:{guarded_port}/0", KEYS)
        first, second = (reader.follow(SESSION, turn, 0) for turn in ("t1", "t2"))
        waiting = asyncio.create_task(take(first, 1))
        await until(lambda: admin.info("clients")["blocked_clients"], "it blocks")
        adding = asyncio.create_task(take(second, 1))
        await until(lambda: reader.streams == 2, "another is added")
        for turn in ("t2", "t1"):
            admin.xadd(KEYS.turn(SESSION, turn) + ":events", {"kind": "budget", "at": 1, "data": "{}"}, "1-0")
        try:
            return await waiting + await adding
        finally:
            await reader.close()

    with connect(guarded_port, "admin") as admin:
        for turn in ("t1", "t2"):
            admin.hset(KEYS.turn(SESSION, turn), "state", "active")
        assert asyncio.run(follow()) == [1, 1]
        assert admin.acl_log() == []
        admin.delete(*admin.keys("bq:{s1}*"))


def test_a_producer_can_ring_and_nothing_else(guarded_port: int) -> None:
    url = f"redis://brainq_producer:CHANGE-ME-producer@127.0.0.1:{guarded_port}/0"
    app = make_app(settings_for(url))
    app.send_task("brainq.turn.submit", kwargs={"text": "hello"})
    app.close()
    with connect(guarded_port, "producer") as redis, connect(guarded_port, "admin") as admin:
        assert redis.llen("bq:brainq.turns") == 1
        for refused in ("RPOP bq:brainq.turns", "LPUSH bq:brainq.finalize x", "PUBLISH bq:/0.celery.pidbox x"):
            with pytest.raises(NoPermissionError):
                redis.execute_command(*refused.split())
        admin.delete("bq:brainq.turns")
        admin.acl_log_reset()


SED = ("sed", "-e", "s/bq:/shop:/g", "-e", "s#/0[.]#/3.#g")


@pytest.fixture(scope="module")
def shop_port() -> Generator[int]:
    """A server whose users are rendered for another prefix and database, as docs/operate/deploy.md says."""
    assert "sed -e 's/bq:/shop:/g' -e 's#/0[.]#/3.#g' users.acl" in (DOCS / "operate" / "deploy.md").read_text()
    rendered = subprocess.run([*SED, FILES / "users.acl"], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as directory:
        users = Path(directory) / "users.acl"
        users.write_text(rendered.replace("default off", "default on nopass +ping"))
        with server("--aclfile", str(users)) as port:
            yield port


def rights(port: int, prefix: str, database: int) -> Check:
    url = f"redis://brainq_worker:CHANGE-ME-worker@127.0.0.1:{port}/{database}"
    return check_rights(load_settings(redis_url=url, prefix=prefix), url)


def test_the_workers_user_has_all_that_workers_ask_for(guarded_port: int, shop_port: int) -> None:
    assert rights(guarded_port, "bq:", 0).level == "ok"
    assert rights(shop_port, "shop:", 3).level == "ok"


def test_what_a_user_may_not_do_is_named(guarded_port: int, shop_port: int) -> None:
    other_prefix = rights(shop_port, "bq:", 3)
    assert (other_prefix.level, "bq:brainq.turns" in other_prefix.said) == ("FAIL", True)
    with connect(guarded_port, "admin") as admin:
        other_database = rights(guarded_port, "bq:", 4)
        assert (other_database.level, other_database.said) == (
            "warn",
            "PSUBSCRIBE cannot be used here: Flower shows no tasks",
        )
        admin.execute_command("ACL", "SETUSER", "brainq_worker", "-brpop", "-zadd")
        try:
            denied = rights(guarded_port, "bq:", 0)
        finally:
            admin.execute_command("ACL", "SETUSER", "brainq_worker", "+brpop", "+zadd")
    assert denied.said == "the user may not run ZADD bq:epoch, BRPOP bq:brainq.turns"

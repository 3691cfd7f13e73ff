"""Connections that the server, or a service in front of it, cuts after some minutes without a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import RedisError

from brainq.adapters.redis import connection
from brainq.contracts.status import Ending
from tests.integration.adapters.celery.worker import listening_app, running, settings_for
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump, sqlite_url
from tests.support.server import RedisServer
from tests.support.wait import wait_until


@pytest.fixture
def admin(redis_server: RedisServer, redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client
        client.config_set("timeout", 0)


def others(admin: Redis) -> dict[str, str]:
    """Return the connections of others by their ids, each with its flags."""
    own = str(admin.client_id())
    return {row["id"]: row["flags"] for row in admin.client_list() if row["id"] != own}


def cut_idle(admin: Redis) -> None:
    """Have the server cut whatever is idle for a second. It spares those that wait for a message."""
    before = {name for name, flags in others(admin).items() if "b" not in flags and "P" not in flags}
    admin.config_set("timeout", 1)
    wait_until(lambda: not before & others(admin).keys(), "idle connections are cut", 60)
    admin.config_set("timeout", 0)
    assert before, "there were some"


def cut_all(admin: Redis) -> None:
    """Cut every connection, also those that wait, as a service does that sees no commands on them."""
    before = others(admin)
    for kind in ("normal", "pubsub"):
        admin.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
    wait_until(lambda: not before.keys() & others(admin).keys(), "all are cut", 60)
    assert {"b", "P"} <= {flag for flags in before.values() for flag in flags}, "some waited"


@pytest.mark.parametrize("cut", [cut_idle, cut_all])
def test_what_was_cut_while_idle_is_missed_by_nobody(
    cut: Callable[[Redis], None], admin: Redis, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    monkeypatch.setattr(connection, "CHECK_AFTER_IDLE_S", 0.0)  # here it is idle for a moment, not for minutes
    app, heard = listening_app(settings_for(redis_url))
    with (
        app,
        Pump(obedient.brain, redis_url, sqlite_url(tmp_path)) as pump,
        GatewayThread(pump.settings, obedient.brain) as gateway,
    ):
        done = pump.submit("s0", script())
        assert pump.finish(done).ending == Ending.COMPLETED
        pump.wiring.state.presence.begin()
        wait_until(lambda: any("P" in flags for flags in others(admin).values()), "it listens for cancels")
        with running(app):
            for count in (1, 2):
                pump.submit(f"s{count}", script())  # the producer notices nothing
                wait_until(lambda count=count: len(heard.bells) >= count, "the worker takes the doorbell")
                wait_until(lambda: pings(app), "`celery inspect` is answered")
                assert events(gateway, done.turn_id) > 0
                assert pump.client.fleet().sweeper is not None
                if count == 1:
                    cut(admin)
            wait_until(lambda: any("P" in flags for flags in others(admin).values()), "it listens for cancels again")


def pings(app: Celery) -> bool:
    try:
        return bool(app.control.ping(timeout=0.5))
    except (RedisError, OperationalError):  # a connection in the asker's own pool was cut, which Celery notices at use
        return False


def events(gateway: GatewayThread, turn_id: str) -> int:
    """Return the number of lines of a turn's events."""
    answer: Any = gateway.http.get(f"/v1/turns/{turn_id}/events")
    assert answer.status_code == 200, answer.text
    return len(answer.text.splitlines())

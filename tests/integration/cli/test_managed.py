"""Managed services: brainq on a real server whose users may not send what each service refuses.

`ops/redis/managed.toml` has the lists, and says where they were read.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from brainq.app.local.worker import LocalWorker
from brainq.cli.doctor import services
from brainq.contracts.status import Ending
from brainq.runtime.processes.pool_threads import PoolThreads
from tests.integration.adapters.celery.worker import listening_app, running, settings_for
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.commands import Brainq
from tests.support.pump import Pump, sqlite_url
from tests.support.server import RedisServer
from tests.support.wait import wait_until

TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parents[3] / "ops" / "redis" / "managed.toml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = {row["id"]: row for row in TABLE["service"]}
BARE = "worst-case"


def denied(service: str) -> list[str]:
    row = SERVICES[service]
    return [*row["denies"], *row.get("in_scripts", ())]


@pytest.fixture(scope="module")
def managed() -> Iterator[RedisServer]:
    """One server, with a user for each service."""
    server = RedisServer().start()
    for service in SERVICES:
        rules = (f"-{name}" for name in denied(service))
        server.command("ACL", "SETUSER", service, "on", ">secret", "~*", "&*", "+@all", *rules)
    yield server
    server.stop()


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def redis_url(managed: RedisServer, service: str) -> str:
    managed.flushall()
    managed.command("ACL", "LOG", "RESET")
    managed.command("CONFIG", "RESETSTAT")
    return managed.url.replace("redis://", f"redis://{service}:secret@")


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))


def run_turn(url: str, directory: Path, **settings: Any) -> None:
    """Run a turn with a read and a write, and look at the fleet."""
    with Pump(obedient.brain, url, sqlite_url(directory), **settings) as pump:
        pump.wiring.warm_up()
        handle = pump.submit("s1", script([("read", {"name": "a"})], [("write", {"name": "b"})]))
        assert pump.finish(handle).ending == Ending.COMPLETED
        assert pump.client.fleet().redis.max_bytes is None
    assert [note["name"] for note in diary.notes("start")] == ["a", "b"]


def refused(server: RedisServer, service: str) -> set[str]:
    """Return the commands that the service's user sent in vain."""
    with Redis.from_url(server.url, decode_responses=True) as admin:
        return {str(entry["object"]) for entry in admin.acl_log(1000) if entry["username"] == service}


def sent(server: RedisServer) -> set[str]:
    """Return all commands that the server was sent, by clients and scripts, but not by the tests."""
    with Redis.from_url(server.url) as admin:
        stats = admin.info("commandstats")
    own = {"config", "acl", "flushall", "client|list"}
    return {name.removeprefix("cmdstat_") for name in stats if name.removeprefix("cmdstat_").split("|")[0] not in own}


def test_a_turn_needs_nothing_that_a_service_refuses(
    service: str, managed: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    run_turn(redis_url, tmp_path, prefix="{bq}:")
    in_vain, rules = refused(managed, service), set(denied(service))
    assert in_vain <= {"client|setinfo", "info"}
    assert ("info" in in_vain) == bool(rules & {"info", "@dangerous"}), "the rules fired"
    assert ("client|setinfo" in in_vain) == bool(rules & {"client|setinfo", "client"}), "the rules fired"
    assert sent(managed) <= {*TABLE["brainq"]["needs"], *TABLE["brainq"]["uses"]}


@pytest.mark.parametrize(
    "service",
    [
        BARE,
        "memorystore-cluster",
        *(pytest.param(name, marks=pytest.mark.full) for name in SERVICES if name not in (BARE, "memorystore-cluster")),
    ],
)
def test_workers_need_nothing_that_a_service_refuses(
    service: str, managed: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    app, heard = listening_app(settings_for(redis_url))
    with app, Pump(obedient.brain, redis_url, sqlite_url(tmp_path)) as pump:
        with running(app):
            pump.submit("s1", script())
            wait_until(lambda: heard.bells, "a Celery worker takes the doorbell")
            wait_until(app.control.inspect(timeout=0.5).ping, "`celery inspect` is answered")
        worker = LocalWorker(pump.wiring, PoolThreads())
        worker.begin()
        try:
            handle = pump.submit("s2", script([("read", {"name": "a"})], [("write", {"name": "b"})]))
            assert handle.result(timeout_s=60).ending == Ending.COMPLETED
        finally:
            worker.close(5.0)
    in_vain, rules = refused(managed, service), set(denied(service))
    assert in_vain <= {"client|id", "client|setinfo", "client|unblock", "info"}
    assert ("client|id" in in_vain) == ("client" in rules), "the rules fired"
    assert ("client|unblock" in in_vain) == ("client|unblock" in rules), "the rules fired"
    assert sent(managed) <= {*TABLE["brainq"]["needs"], *TABLE["brainq"]["uses"]}


@pytest.mark.parametrize(
    ("service", "unread", "in_vain"),
    [
        (
            BARE,
            {"redis memory", "redis disk", "redis rights"},
            {"client|setinfo", "config|get", "info", "pubsub|numsub"},
        ),
        ("memorystore", set[str](), {"client|setinfo", "config|get"}),
    ],
)
def test_doctor_says_what_cannot_be_read(
    service: str,
    unread: set[str],
    in_vain: set[str],
    brainq: Brainq,
    managed: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(services, "PING_TIMEOUT_S", 0.1)
    ran = brainq("doctor", "--json")
    found = {row["name"]: row for row in json.loads(ran.out)}
    assert (ran.code, [name for name, row in found.items() if row["level"] == "FAIL"]) == (0, [])
    assert {name for name, row in found.items() if "cannot be" in row["said"]} == unread
    assert "in the service's console" in found["redis disk"]["remedy"]
    assert refused(managed, service) == in_vain, "the rules fired"
    assert brainq("fleet").code == 0


def test_each_service_has_what_brainq_needs() -> None:
    needs, uses = set(TABLE["brainq"]["needs"]), set(TABLE["brainq"]["uses"])
    for service, row in SERVICES.items():
        rules = set(denied(service))
        assert not needs & rules, service
        assert not {name for name in needs if name.split("|")[0] in rules}, service
        assert service == BARE or row["sources"], service
        assert all({"url", "read", "on"} == set(source) for source in row["sources"]), service
    known = {f"client|{name}" for name in ("id", "setinfo", "unblock")} | {"config|get", "info", "psubscribe", "wait"}
    assert known <= uses

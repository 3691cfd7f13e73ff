"""Redis behind TLS, alone and as a node of a cluster: every client of brainq connects, and checks the certificate."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from brainq.adapters.redis.async_connection import AsyncConnection
from brainq.app.devserver.ports import free_port
from brainq.app.devserver.redis_server import find_server
from brainq.app.wiring.preflight import check_redis
from brainq.cli.doctor.rights import check_rights
from brainq.contracts.status import Ending
from tests.integration.adapters.celery.worker import listening_app, running, settings_for
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.cluster import BUS, SLOTS
from tests.support.pump import Pump, sqlite_url
from tests.support.tls import TlsFront
from tests.support.wait import wait_until


@pytest.fixture(params=["rediss", "rediss+cluster"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def front(scheme: str, tmp_path: Path) -> Iterator[TlsFront]:
    """A server behind TLS; as a cluster it has all slots, and announces the port of its TLS listener."""
    port, made = free_port(), TlsFront(tmp_path)
    while port + BUS > 65_535:
        port = free_port()
    with ExitStack() as stack:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", ""]
        if scheme == "rediss+cluster":
            options += ["--cluster-enabled", "yes", "--cluster-announce-port", str(made.port)]
        server = stack.enter_context(subprocess.Popen([str(find_server()), *options], stdout=subprocess.DEVNULL))
        stack.callback(server.kill)
        client = stack.enter_context(redis.Redis(port=port, decode_responses=True))
        wait_until(lambda: answers(client), "the server is up", 30)
        if scheme == "rediss+cluster":
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
            wait_until(lambda: "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")), "it is one", 30)
        yield stack.enter_context(made.forward(port))


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


async def ping(url: str) -> list[object]:
    connection = AsyncConnection(url)
    try:
        return await connection.run([("PING",)])
    finally:
        await connection.close()


def test_clients_and_workers_speak_tls(
    front: TlsFront, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    url = f"{scheme}://127.0.0.1:{front.port}/?ssl_ca_certs={front.authority}"
    settings = settings_for(url)
    tagged = settings.redis_url.get_secret_value() if settings.redis_url else ""
    assert check_redis(tagged, settings.key_prefix).level == "ok"
    assert check_rights(settings, tagged).level == "ok"
    assert asyncio.run(ping(tagged)) == ["PONG"]
    app, heard = listening_app(settings)
    with app, Pump(obedient.brain, url, sqlite_url(tmp_path)) as pump:
        assert pump.finish(pump.submit("s1", script([("write", {"name": "a"})]))).ending == Ending.COMPLETED
        with running(app):
            pump.submit("s2", script())
            wait_until(lambda: heard.bells, "a Celery worker takes the doorbell")
            wait_until(app.control.inspect(timeout=1).ping, "`celery inspect` is answered")
    assert front.handshakes > 3
    for other in (
        tagged.replace(f"ssl_ca_certs={front.authority}", "ssl_cert_reqs=required"),
        f"redis://127.0.0.1:{front.port}/",
    ):
        refused = check_redis(other)
        assert (refused.level, "CERTIFICATE_VERIFY_FAILED" in refused.said) == ("FAIL", "required" in other), refused

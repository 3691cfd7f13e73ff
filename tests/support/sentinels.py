"""A primary, a replica and a sentinel as real processes, in a temporary directory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Self

import redis

from brainq.app.devserver.ports import free_port
from brainq.app.devserver.redis_server import find_server
from tests.support.failovers import OwnServers
from tests.support.wait import wait_until

MASTER = "themaster"


class SentinelDeployment(OwnServers):
    """A deployment with Sentinel. `url` has the form of BRAINQ_REDIS_URL."""

    def __init__(self) -> None:
        super().__init__("bq-sent-")
        self.sentinel_port = free_port()
        self.url = f"sentinel://127.0.0.1:{self.sentinel_port}/{MASTER}/0"

    def start(self) -> Self:
        first, second = free_port(), free_port()
        self._serve(first)
        self._serve(second, f"replicaof 127.0.0.1 {first}")
        config = self._write(
            self.sentinel_port,
            f"sentinel monitor {MASTER} 127.0.0.1 {first} 1",
            f"sentinel down-after-milliseconds {MASTER} 800",
            f"sentinel failover-timeout {MASTER} 3000",
        )
        self._run(self.sentinel_port, str(config), "--sentinel")
        self._until_up(self.sentinel_port)
        wait_until(lambda: self._ask("replicas"), "the sentinel knows the replica", 30)
        wait_until(lambda: self._in_sync(second), "the replica follows", 30)
        return self

    @property
    def primary_port(self) -> int:
        return int(self._ask("get-master-addr-by-name")[1])

    def fail_over(self) -> None:
        """Kill the primary with SIGKILL, and wait until the replica is the primary."""
        old = self.primary_port
        self.kill(old)
        wait_until(lambda: self.primary_port != old, "the sentinel promotes the replica", 60)
        wait_until(lambda: self.role(self.primary_port) == "master", "it is the primary", 30)

    def switch(self) -> int:
        """Make the replica the primary, as in a planned failover. Returns the port of the old primary."""
        old = self.primary_port
        with redis.Redis(port=self.sentinel_port) as client:
            client.execute_command("SENTINEL", "FAILOVER", MASTER)
        wait_until(lambda: self.primary_port != old, "the sentinel promotes the replica", 60)
        return old

    def until_followed(self) -> None:
        """Wait until all other servers are replicas of the primary, and have its data."""
        others = self._processes.keys() - {self.sentinel_port, self.primary_port}
        wait_until(lambda: all(self._in_sync(port) for port in others), "the others follow the primary", 60)

    def role(self, port: int) -> str:
        """Return `master` or `slave`, as that server reports."""
        with redis.Redis(port=port, decode_responses=True) as client:
            return str(client.info("replication")["role"])

    def _serve(self, port: int, *lines: str) -> None:
        config = self._write(port, "save ''", "appendonly no", "repl-diskless-sync-delay 0", *lines)
        self._run(port, str(config))
        self._until_up(port)

    def _write(self, port: int, *lines: str) -> Path:
        folder = self.directory / str(port)
        folder.mkdir()
        path = folder / "conf"
        path.write_text("\n".join([f"port {port}", "bind 127.0.0.1", f"dir {folder}", *lines, ""]))
        return path

    def _run(self, port: int, *arguments: str) -> None:
        with (self.directory / f"{port}.log").open("wb") as log:
            self._processes[port] = subprocess.Popen([find_server(), *arguments], stdout=log, stderr=log)

    def _until_up(self, port: int) -> None:
        def up() -> bool:
            assert self._processes[port].poll() is None, (self.directory / f"{port}.log").read_text()
            try:
                with redis.Redis(port=port) as client:
                    return bool(client.ping())
            except redis.ConnectionError:
                return False

        wait_until(up, "the server is up", 30)

    def _ask(self, what: str) -> list[Any]:
        with redis.Redis(port=self.sentinel_port, decode_responses=True) as client:
            reply: Any = client.execute_command("SENTINEL", what.upper(), MASTER)
            return list(reply)

    @staticmethod
    def _in_sync(port: int) -> bool:
        with redis.Redis(port=port, decode_responses=True) as client:
            return client.info("replication").get("master_link_status") == "up"

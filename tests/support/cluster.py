"""A Redis Cluster: three primaries and three replicas, real processes in a temporary directory."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any, Self

import redis

from brainq.adapters.redis.slot_primary import primary_of, read_shards
from brainq.app.devserver.ports import free_port
from brainq.app.devserver.redis_server import find_server
from tests.support.failovers import OwnServers
from tests.support.wait import wait_until

SLOTS = 16_384
BUS = 10_000  # a node's bus has its port and this


class RedisCluster(OwnServers):
    """`url` is as BRAINQ_REDIS_URL takes it. Without replicas it is up in half the time."""

    def __init__(self, *, replicas: bool = True, options: Sequence[str] = ()) -> None:
        super().__init__("bq-cl-")
        self._options = options
        self.ports = self._free_ports(6 if replicas else 3)

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/"

    def start(self) -> Self:
        for port in self.ports:
            self.serve(port)
        first, primaries = self.ports[0], self.ports[:3]
        for port in self.ports[1:]:
            self.ask(first, "CLUSTER", "MEET", "127.0.0.1", port)
        share = SLOTS // 3 + 1
        for at, port in enumerate(primaries):
            self.ask(port, "CLUSTER", "ADDSLOTSRANGE", at * share, min(SLOTS, (at + 1) * share) - 1)
        wait_until(lambda: all(self._knows_all(port) for port in self.ports), "the nodes know one another", 30)
        for at, port in enumerate(self.ports[3:]):
            self.ask(port, "CLUSTER", "REPLICATE", self.ask(primaries[at], "CLUSTER", "MYID"))
        wait_until(lambda: all(self._is_up(port) for port in self.ports), "the cluster is up", 30)
        wait_until(lambda: all(map(self.follows, self.ports[3:])), "the replicas follow", 30)
        return self

    def serve(self, port: int) -> None:
        """Start the node of a port, in its directory."""
        folder = self.directory / str(port)
        folder.mkdir(exist_ok=True)
        command = [
            *(str(find_server()), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)),
            *("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0"),
            *("--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", *self._options),
        ]
        with (folder / "log").open("ab") as log:
            self._processes[port] = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(lambda: self._answers(port), "the node is up", 30)

    def primary_port(self, slot: int, *, without: int = 0) -> int:
        """Return the port of the primary that has a slot, as most nodes name it. A frozen node is not asked."""
        named: list[int] = []
        for port in set(self._running()) - {without}:
            found = primary_of(read_shards(self.ask(port, "CLUSTER", "SHARDS"), ("127.0.0.1", port), tls=False), slot)
            named += [found[1]] if found else []
        return max(set(named), key=named.count)

    def primaries(self) -> list[int]:
        """Return the ports of the running nodes that take themselves for primaries."""
        return [port for port in self._running() if self.ask(port, "ROLE")[0] == "master"]

    def mend(self) -> None:
        """Start the nodes that were killed, and wait until each follows or leads."""
        for port in set(self.ports) - set(self._processes):
            self.serve(port)
        wait_until(lambda: all(self._is_up(port) for port in self.ports), "the cluster is up", 60)
        wait_until(lambda: len(self.primaries()) == 3, "the nodes that came back follow", 60)
        wait_until(lambda: all(map(self.follows, set(self.ports) - set(self.primaries()))), "the replicas follow", 60)

    def restart(self) -> None:
        """Let all nodes write their data and exit, and start them again."""
        for process in self._processes.values():
            process.terminate()
        for port in self._running():
            self._processes.pop(port).wait()
        self.mend()

    def freeze(self, port: int) -> None:
        self._processes[port].send_signal(signal.SIGSTOP)

    def thaw(self, port: int) -> None:
        self._processes[port].send_signal(signal.SIGCONT)

    def replica_of(self, port: int) -> int:
        """Return the port of a replica of a primary."""
        wanted = self.ask(port, "CLUSTER", "MYID")
        return next(other for other in self._running() if self._primary_id(other) == wanted)

    def fail_over(self, slot: int) -> int:
        """SIGKILL the primary of a slot, and wait for the next one. Returns the port of the old one."""
        old = self.primary_port(slot)
        self.kill(old)
        wait_until(lambda: self._is_served(slot, old), "a replica is promoted", 60)
        return old

    def switch(self, slot: int) -> int:
        """Fail over as planned: nobody dies. Returns the port of the old primary."""
        old = self.primary_port(slot)
        self.ask(self.replica_of(old), "CLUSTER", "FAILOVER")
        wait_until(lambda: self._is_served(slot, old), "a replica is promoted", 60)
        return old

    def move(self, slot: int, target: int) -> None:
        """Move a slot to another primary, as servers before Valkey 9 do it: key by key."""
        source = self.primary_port(slot)
        ids = {port: self.ask(port, "CLUSTER", "MYID") for port in (source, target)}
        self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        while keys := self.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
            self.ask(source, "MIGRATE", "127.0.0.1", target, "", 0, 5000, "KEYS", *keys)
        for port in dict.fromkeys((target, source, *self.primaries())):
            self.ask(port, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])

    def follows(self, port: int) -> bool:
        """Whether a replica has what its primary has."""
        with self.client(port) as client:
            return client.info("replication").get("master_link_status") == "up"

    def ask(self, port: int, *command: Any) -> Any:
        """Run one command on one node. Returns its raw reply."""
        with self.client(port) as client:
            connection: Any = client.connection_pool.get_connection()
            connection.send_command(*command)
            return connection.read_response()

    @staticmethod
    def client(port: int) -> redis.Redis:
        return redis.Redis(port=port, decode_responses=True, protocol=2, socket_timeout=10)

    def _running(self) -> list[int]:
        return list(self._processes)

    def _primary_id(self, port: int) -> str:
        nodes = str(self.ask(port, "CLUSTER", "NODES")).splitlines()
        return next(line.split()[3] for line in nodes if "myself" in line)

    def _is_served(self, slot: int, but: int) -> bool:
        try:
            return self.primary_port(slot) != but and self._is_up(self.primary_port(slot))
        except (redis.RedisError, ValueError):
            return False

    def _is_up(self, port: int) -> bool:
        return "cluster_state:ok" in self.ask(port, "CLUSTER", "INFO")

    def _knows_all(self, port: int) -> bool:
        return f"cluster_known_nodes:{len(self.ports)}" in self.ask(port, "CLUSTER", "INFO")

    def _answers(self, port: int) -> bool:
        assert self._processes[port].poll() is None, (self.directory / str(port) / "log").read_text()
        try:
            return bool(self.ask(port, "PING"))
        except redis.ConnectionError:
            return False

    @staticmethod
    def _free_ports(count: int) -> list[int]:
        found: set[int] = set()
        while len(found) < count:
            if (port := free_port()) + BUS < 65_536:
                found.add(port)
        return sorted(found)

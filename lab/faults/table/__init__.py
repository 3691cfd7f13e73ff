"""The table of faults, in the order in which they are run and shown."""

from __future__ import annotations

from lab.faults.fault import Fault
from lab.faults.table.clusters import ClusterKill, ClusterMove, ClusterOld, ClusterRestart, ClusterSwitch
from lab.faults.table.deploys import RollingDeploy, TwoBuilds
from lab.faults.table.disks import (
    DataFull,
    DataFullRedisAway,
    ReadyFull,
    ReadyFullRedisAway,
    RedisFull,
    RedisFullRedisAway,
    SqlFull,
    SqlFullRedisAway,
)
from lab.faults.table.doors import HugeAnswer, McpRestarts
from lab.faults.table.freezes import FreezeCoordinator, FreezeFinalizer, FreezeParallel, FreezeWrite
from lab.faults.table.gateway_host import HostGateway
from lab.faults.table.hosts import HostCutModel, HostCutWrite, HostDeaf, HostLoss, HostMute, HostNarrow, HostVanishes
from lab.faults.table.kills import KillCoordinator, KillFinalizer, KillParallel, KillSerial, KillWrite
from lab.faults.table.limits import LIMITS
from lab.faults.table.network import NetCut, NetDelay, NetLostReplies, NetReset, NetSilent, RedisAway
from lab.faults.table.overload import Calm, Flood, Poison, WrongClocks
from lab.faults.table.postgres_pair import PostgresBehind, PostgresPromoted, PostgresSwitched
from lab.faults.table.redis import RedisFailover, RedisKill, RedisRestart, RedisSwitch, RedisWipe
from lab.faults.table.sql import PoolerKill, PostgresDeadlock, PostgresHalfOpen, PostgresReadOnly, SqlLocked

FAULTS: tuple[type[Fault], ...] = (
    *(Calm, KillCoordinator, KillParallel, KillSerial, KillWrite, KillFinalizer),
    *(FreezeCoordinator, FreezeParallel, FreezeWrite, FreezeFinalizer),
    *(NetReset, NetCut, NetSilent, NetDelay, NetLostReplies, RedisAway),
    *(RedisRestart, RedisKill, RedisWipe, SqlLocked, Poison, Flood, WrongClocks, RollingDeploy),
    *LIMITS,
    *(HugeAnswer, McpRestarts),
    *(SqlFull, SqlFullRedisAway, RedisFull, RedisFullRedisAway),
    *(ReadyFull, ReadyFullRedisAway, DataFull, DataFullRedisAway),
    *(ClusterKill, ClusterSwitch, ClusterMove, ClusterOld, ClusterRestart),
    *(RedisSwitch, RedisFailover, PostgresHalfOpen, PostgresReadOnly, PostgresDeadlock, PoolerKill, TwoBuilds),
    *(PostgresPromoted, PostgresSwitched, PostgresBehind),
    *(HostVanishes, HostCutModel, HostCutWrite, HostMute, HostDeaf, HostNarrow, HostLoss, HostGateway),
)


def by_name(names: list[str]) -> tuple[type[Fault], ...]:
    """Return the named faults in the table's order, or all if none is named. Raises ValueError for an unknown name."""
    known = {fault.name for fault in FAULTS}
    if unknown := sorted(set(names) - known):
        raise ValueError(f"no such fault: {', '.join(unknown)}; --list shows them")
    return tuple(fault for fault in FAULTS if fault.name in names or not names)

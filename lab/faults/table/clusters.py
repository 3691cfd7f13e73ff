"""A Redis Cluster: the primary of the slot goes, the slot goes, and all of it stands still."""

from __future__ import annotations

import time
from typing import ClassVar

from brainq.adapters.redis.slot_primary import slot_of
from lab.faults.effects import wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.stage import Stage

SLOT = slot_of("bq")
PROMOTED_S = 60.0


class ClusterFault(Fault):
    """The slot's primary before and after says whether it went. All nodes run, and follow, before and after."""

    kind: ClassVar[str] = "cluster"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.before = 0
        self.went = 0

    def prepare(self, stage: Stage) -> None:
        stage.cluster.mend()
        self.before = stage.cluster.primary_port(SLOT)

    def heal(self, stage: Stage) -> None:
        self.went += stage.cluster.primary_port(SLOT) != self.before
        stage.cluster.mend()

    def fired(self, stage: Stage) -> int:
        return self.went


class ClusterKill(ClusterFault):
    name = "cluster-kill"
    title = "SIGKILL: a Redis Cluster's primary"

    def inject(self, stage: Stage) -> None:
        stage.cluster.fail_over(SLOT)


class ClusterSwitch(ClusterFault):
    name = "cluster-failover-planned"
    title = "Redis Cluster: planned failover"

    def inject(self, stage: Stage) -> None:
        stage.cluster.switch(SLOT)


class ClusterMove(ClusterFault):
    name = "cluster-slot-moved"
    title = "Redis Cluster: slot moved, and back"

    def inject(self, stage: Stage) -> None:
        source = self.before
        target = next(port for port in stage.cluster.primaries() if port != source)
        for place in (target, source):
            stage.cluster.move(SLOT, place)
            self.went += stage.cluster.primary_port(SLOT) == place


class ClusterOld(ClusterFault):
    name = "cluster-old-primary"
    title = "Redis Cluster: primary frozen, replaced, thawed with writes in its sockets"

    def inject(self, stage: Stage) -> None:
        stage.cluster.freeze(self.before)
        try:
            wait_for(lambda: self._is_replaced(stage), "a replica is promoted", PROMOTED_S)
        finally:
            stage.cluster.thaw(self.before)

    def _is_replaced(self, stage: Stage) -> bool:
        try:
            return stage.cluster.primary_port(SLOT, without=self.before) != self.before
        except ValueError:  # nobody names one yet
            return False


class ClusterRestart(ClusterFault):
    name = "cluster-frozen-restarted"
    title = "Redis Cluster: all frozen, then restarted"

    def inject(self, stage: Stage) -> None:
        for port in stage.cluster.ports:
            stage.cluster.freeze(port)
        time.sleep(self.pace.outage_s)
        for port in stage.cluster.ports:
            stage.cluster.thaw(port)
        stage.cluster.restart()
        self.went += 1

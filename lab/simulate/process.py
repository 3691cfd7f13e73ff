"""A process of the simulated fleet: brainq's own machines, and the tasks that serve its pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import brainq.app.wiring.state as wiring_state
from brainq.adapters.celery import names
from brainq.adapters.redis.listener import RedisStopSignals
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.sql.store import Store
from brainq.app.wiring.finalizer import make_finalizer
from brainq.app.wiring.machines import make_coordinator
from brainq.app.wiring.visits import Visits
from brainq.app.wiring.wiring import Wiring
from brainq.contracts.call import ToolTimeout
from brainq.contracts.claim import FinalStepClaim
from brainq.engine.brain.brain import Brain
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn
from brainq.engine.finalize.steps import QuarantinedStepError
from brainq.engine.jobs import Backoff
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.tool import Tool
from brainq.engine.visit import VISIT_S
from brainq.runtime.processes.pool_threads import PoolThreads
from brainq.runtime.settings.deployment import Settings
from lab.simulate.hub import Hub, VirtualEvent
from lab.simulate.lines import Line
from lab.simulate.wires import VirtualClient

if TYPE_CHECKING:
    from lab.simulate.world import World

JOIN_EVERY_S = 5.0
VISITS_S = (VISIT_S, 10.0, 60.0)  # drawn for each process, because a step of these models takes longer than VISIT_S


@dataclass(frozen=True, slots=True)
class Servers:
    """What all processes of a run share: connections, scripts that read the virtual clock, and tables.

    ringing, publishing   the scripts that may ring a doorbell, and that may publish a stop
    """

    hub: Hub
    settings: Settings
    socket_path: str
    client: VirtualClient
    scripts: Scripts
    store: Store
    ringing: frozenset[str]
    publishing: frozenset[str]


class VirtualStops(RedisStopSignals):
    """brainq's stop signals without their thread: the world reads the channel and notifies each process that
    listens."""

    def __init__(self, world: World, process: Process, channel: str, on_gap: Callable[[], None]) -> None:
        super().__init__("", channel, on_gap)
        self._world = world
        self._process = process
        self._is_heard = False

    def listen(self) -> None:
        if self._is_heard:
            return
        self._is_heard = True
        self._process.listen(self._channels)
        for callback in self._on_connect.values():
            self._world.servers.hub.spawn("connected", self._process, lambda callback=callback: self._notify(callback))

    def tell(self, name: str) -> None:
        """Stop a turn, named `SESSION TURN`, because its stop was published."""
        self._stop(name)


@dataclass(eq=False)
class Process:
    """A worker. `kind` is its name in POOLS, and `threads` are the threads of the pools that it serves."""

    world: World
    name: str
    kind: str
    brain: Brain
    threads: PoolThreads
    is_dead: bool = False
    frozen_until_us: int = 0
    frozen_at_us: list[int] = field(default_factory=list[int])
    lines: list[Line] = field(default_factory=list[Line])
    children: list[Process] = field(default_factory=list["Process"])
    on_death: VirtualEvent | None = None

    def __post_init__(self) -> None:
        self.stops: VirtualStops | None = None
        servers = self.world.servers
        serves = names.effects_of_queues([q for pool in self.threads.pools for q in names.POOL_QUEUES[pool]])
        self.wiring = Wiring(
            servers.settings, self.brain, redis_url=f"unix://{servers.socket_path}", owner=self.name, serves=serves
        )
        built: dict[str, Any] = self.wiring.__dict__
        built["store"] = servers.store
        with ExitStack() as stack:
            for name, stand_in in (
                ("make_client", self._client),
                ("Scripts", self._scripts),
                ("RedisStopSignals", self._make_stops),
            ):
                stack.enter_context(mock.patch.object(wiring_state, name, stand_in))
            _ = self.wiring.state
        built["quarantine"] = VirtualQuarantine(self.world, self)
        built["visits"] = Visits(self.wiring, self.threads, self.world.servers.hub.rng.choice(VISITS_S))

    @property
    def busy(self) -> int:
        """Return how many threads of its pools are in use."""
        return sum(self.threads.busy(pool) for pool in self.threads.pools)

    def begin(self) -> None:
        """Start the background tasks of the process. Runs in one of its tasks."""
        hub = self.world.servers.hub
        self.wiring.state.presence.begin()
        hub.spawn("join", self, self._keep_joining, after_s=JOIN_EVERY_S)
        pools = self.threads.pools
        if "coordinator" in pools:
            hub.spawn("sweeper", self, self._sweep, after_s=hub.rng.random())
            _ = self.wiring.coordinator
        if pools & {"parallel", "serial"}:
            executor: Any = self.wiring.runner.executor
            executor._processes = VirtualToolProcesses(executor)
        if "finalizer" in pools:
            self.wiring.finalizer.late.jobs.backoff = Backoff(0.0, 1.0, 0.0, (1.0, 1.0))  # SQL's clock is the machine's

    def listen(self, channels: Any) -> None:
        """Subscribe to the process's own channel, by which Redis knows that it lives."""
        alive = self.wiring.state.keys.alive
        self.lines += [Line(self.world.servers.socket_path, name) for name in channels if name.startswith(alive)]

    def answer(self, task: str, args: list[Any], place: Place) -> str:
        """Answer a doorbell as a worker does. Returns the outcome as a word."""
        visits: Any = self.wiring.visits
        match task:
            case names.TURN_ADVANCE:
                return visits.advance(*args, self.world.events, place.abandon)
            case names.CALL_RUN:
                return visits.run_call(*args, self.world.events, place.abandon)
            case names.FINALIZE_STEP:
                return self.wiring.finalizer.run(*args)
            case _:
                raise AssertionError(f"nobody answers {task}")

    def hang_up(self) -> None:
        for line in self.lines:
            line.close()
        self.lines.clear()

    def _client(self, url: str) -> VirtualClient:
        return self.world.servers.client

    def _scripts(self, *given: object) -> Scripts:
        return self.world.servers.scripts

    def _make_stops(self, url: str, channel: str, on_gap: Callable[[], None]) -> VirtualStops:
        self.stops = VirtualStops(self.world, self, channel, on_gap)
        return self.stops

    def _keep_joining(self) -> None:
        hub = self.world.servers.hub
        while True:
            try:
                self.wiring.state.presence.join()
            except Exception as away:
                self.world.note(self.name, "not joined", type(away).__name__)
            hub.sleep(JOIN_EVERY_S)

    def _sweep(self) -> None:
        stop: Any = VirtualEvent(self.world.servers.hub)
        self.wiring.sweeper.run(stop)


class Place:
    """A thread of a pool that answers one doorbell, until the answer is complete or abandoned."""

    def __init__(self, world: World, process: Process, pool: str) -> None:
        self._world = world
        self._process = process
        self._pool = pool
        self._is_taken = process.threads.try_take(pool)
        assert self._is_taken

    def leave(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._process.threads.give_back(self._pool)
            self._world.take_soon()

    def abandon(self, settle: Callable[[], str]) -> None:
        """Give the pool another thread: the call's function keeps this one."""
        self._world.note(self._process.name, "abandoned", settle())
        self.leave()


class VirtualToolProcesses:
    """A replacement for `engine.calls.tool_processes.ToolProcesses`. A tool process is a thread here, and dies with the
    worker."""

    def __init__(self, executor: BoundedToolExecutor) -> None:
        self._executor = executor

    def run(self, tool: Tool, arguments: Mapping[str, Any], context: RunContext, token: object) -> CallReturn:
        cut: list[ToolTimeout] = []
        ended = self._executor.run(tool, arguments, context, on_cut=cut.append)
        if ended is None:  # a child would have been killed, so the function counts as ended
            return cut[0].model_copy(update={"still_running": False})
        return ended

    def close(self) -> None: ...


class VirtualQuarantine:
    """A replacement for `app.wiring.quarantine.Quarantine`: a child process for each turn or step."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        child, did = self._world.child(self._process), list[str]()
        ended = self._run(child, lambda: did.append(self._lone(child).advance(session_id, turn_id, fence)))
        if ended and did:
            return did[0]
        if ended:
            return "lost"
        word = self._process.wiring.state.turns.blame(session_id, turn_id, child.name, "was killed by signal 9")
        return f"died: {word.lower()}"

    def run_step(self, claim: FinalStepClaim, limit_s: float | None) -> None:
        child, failed = self._world.child(self._process), list[Exception]()

        def run() -> None:
            try:
                make_finalizer(child.wiring, quarantine=None).run_claimed(claim)
            except Exception as failure:
                failed.append(failure)

        if not self._run(child, run):
            raise QuarantinedStepError("ProcessDied", "its process was killed by signal 9")
        if failed:
            raise QuarantinedStepError(type(failed[0]).__name__, str(failed[0]))

    def close(self) -> None: ...

    @staticmethod
    def _lone(child: Process) -> Any:
        return make_coordinator(child.wiring, quarantine=None)

    def _run(self, child: Process, body: Callable[[], object]) -> bool:
        """Run `body` in the child. Returns False if the child died."""
        hub = self._world.servers.hub
        ended = child.on_death = VirtualEvent(hub)

        def run() -> None:
            child.wiring.state.presence.begin()
            try:
                body()
            except Exception as failure:
                self._world.note(child.name, "advance failed", type(failure).__name__)
            ended.set()

        hub.spawn("alone", child, run)
        ended.wait()
        if not child.is_dead:
            self._world.end_child(child)
            return True
        return False

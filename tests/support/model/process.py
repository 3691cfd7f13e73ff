"""One worker process: all four machines and the sweeper, over the model's scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from brainq.adapters.redis.calls import RedisCalls
from brainq.adapters.redis.finals import RedisFinalChain
from brainq.adapters.redis.fleet import RedisWorkers
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.outside import RedisOutsideResults
from brainq.adapters.redis.people import RedisHolds, RedisSessions
from brainq.adapters.redis.sweeper import RedisSweeperState
from brainq.adapters.redis.turns import RedisTurns
from brainq.contracts.build import WorkerBuild
from brainq.contracts.file import FileLimits
from brainq.contracts.fleet import ComparedPage, GoneProcess
from brainq.contracts.turn import Limits
from brainq.engine.calls.run import CallRunner
from brainq.engine.calls.settle import ResultFiles
from brainq.engine.finalize.finalizer import TurnFinalizer
from brainq.engine.finalize.result import make_result
from brainq.engine.finalize.step_order import FinalizerRuntime, StepOrder
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.people.admission import Admission
from brainq.engine.people.bounced_inputs import BouncedInputs
from brainq.engine.people.inputs import InputDesk
from brainq.engine.people.lost_turns import LostTurns
from brainq.engine.people.outside import OutsideDesk
from brainq.engine.people.turn_queue import TurnQueue
from brainq.engine.turn.coordinator import ANY_LOSSES, Coordinator, CoordinatorRuntime
from brainq.engine.turn.ending import Ender
from brainq.engine.turn.reflection import ThinkingManager
from brainq.engine.upkeep.due_checks import DueChecks
from brainq.engine.upkeep.lost_calls import Rescuer
from brainq.engine.upkeep.sweeper import Sweeper
from tests.support.blobs import BlobsInMemory
from tests.support.model.auxiliary import RandomAuxiliary
from tests.support.model.functions import Executor, Functions
from tests.support.model.inputs import Inputs
from tests.support.model.room_rules import CAPPED
from tests.support.model.scripts import WatchedScripts
from tests.support.model.stand_ins import BRAIN, Accepted, Beats, Intents, NoChildren, NoLateSteps, Step, Stops
from tests.support.model.thinker import RandomThinker
from tests.support.model.visits import ModelVisits
from tests.support.only import only
from tests.support.stand_in import stand_in

LEASE_S = 1000.0  # ends when the schedule says so, or in the healing after it
RERING_S = 5.0
FIRST_STEP = "log"
BUILD = WorkerBuild.of_names((CAPPED,))


class SweeperState(RedisSweeperState):
    """Processes that are gone are not modelled."""

    def lapse_gone(self) -> list[GoneProcess]:
        return []


class State:
    """The operations of `state/`, over the model's scripts."""

    def __init__(self, scripts: WatchedScripts, keys: Keys) -> None:
        self.client, self.keys = scripts.client, keys
        self.turns = RedisTurns(scripts, lease_s=LEASE_S, keep_session_s=3600, first_step=FIRST_STEP, build=BUILD)
        self.calls = RedisCalls(scripts, lease_s=LEASE_S, build=BUILD)
        self.finals = RedisFinalChain(scripts, lease_s=LEASE_S, keep_turn_s=3600, build=BUILD)
        self.sweeper = SweeperState(
            scripts,
            RedisWorkers(scripts.client, keys),
            rering_s=RERING_S,
            failing_s=5,
            unserved_s=5,
            cap_lifetime_ms=0,  # a cap is lifted by the next sweeper that does not tell it
        )
        self.holds = RedisHolds(scripts, keep_session_s=3600)
        self.sessions = RedisSessions(scripts, keep_session_s=3600)
        self.outside = RedisOutsideResults(scripts, lease_s=LEASE_S)


@dataclass(frozen=True, slots=True)
class Outside:
    """What processes share beside Redis."""

    rng: Random
    functions: Functions
    intents: Intents
    accepted: Accepted
    inputs: Inputs
    give_way: Callable[[], None]
    fails: Callable[[], bool]
    waits: Callable[[], bool]
    seed: int


class AloneProcess:
    """`app.wiring.quarantine.AloneProcesses`, whose child now and then dies as soon as it has claimed the turn."""

    def __init__(self, rng: Random, turns: RedisTurns, lone: Coordinator, name: str) -> None:
        self._rng = rng
        self._turns = turns
        self._lone = lone
        self._name = name

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        if self._rng.random() < 0.7:
            return self._lone.advance(session_id, turn_id, fence)
        self._turns.claim(session_id, turn_id, fence, f"0@{self._name}", ANY_LOSSES)
        return self._turns.blame(session_id, turn_id, self._name, "was killed by signal 9")


@dataclass(frozen=True, slots=True)
class BrakesOfRedis:
    """`engine.people.brakes.BrakeDesk` without SQL."""

    state: State

    def release(self, session_id: str, turn_id: str, hold_id: str) -> bool:
        return self.state.holds.release(session_id, turn_id, hold_id) == "RELEASED"

    def record_taken(self, session_id: str, flag_id: str, turn_id: str) -> None:
        """A flag is a hold of its turn as soon as that is live."""

    def heal(self, after_row: int) -> ComparedPage:
        return ComparedPage(after_row, more=False)


class Process:
    """A worker process. `spawn` starts another task in it."""

    def __init__(
        self, owner: str, state: State, outside: Outside, spawn: Callable[[str, Process, Callable[[], object]], None]
    ) -> None:
        self.owner = owner
        self.beats = Beats()
        beats: Any = self.beats
        rng, accepted = outside.rng, outside.accepted
        self.stops = Stops()
        stops: Any = self.stops
        # Of SQL only what these machines ask for is modelled.
        inputs = stand_in(outside.inputs)
        self.turn_queue = TurnQueue(
            stand_in(accepted), state.turns, only(Limits()), calls=stand_in(outside.intents), inputs=inputs
        )
        self.admission = Admission(stand_in(accepted), self.turn_queue)
        # Their rows are in SQL, which is not modelled: only Redis' side of them is.
        brakes: Any = BrakesOfRedis(state)
        bounced = BouncedInputs(
            inputs=inputs,
            requests=stand_in(accepted),
            admission=self.admission,
            redact=lambda turn_id: True,
            blobs=BlobsInMemory(),
        )
        self.desk = InputDesk(
            inputs=inputs,
            sessions=state.sessions,
            requests=stand_in(accepted),
            bounced=bounced,
            turn_queue=self.turn_queue,
            holds=state.holds,
            brakes=brakes,
            redact=lambda turn_id: True,
            blobs=BlobsInMemory(),
        )
        children: Any = NoChildren()
        ender = Ender(turns=state.turns, bounce=bounced.bounce, children=children, first_final_step=FIRST_STEP)

        def coordinator(name: str, alone: AloneProcess | None) -> Coordinator:
            return Coordinator(
                owner=name,
                brains=only(
                    CoordinatorRuntime(
                        BRAIN,
                        cast(Any, RandomThinker(rng, state.turns, outside.waits)),
                        cast(Any, RandomAuxiliary(state.turns)),
                        ThinkingManager(BRAIN.thinking),
                    )
                ),
                turns=state.turns,
                beats=beats,
                stops=stops,
                brakes=brakes,
                ender=ender,
                permits=PermitPolicy(stand_in(None)),
                is_unavailable=lambda failure: True,  # what a process raises in a schedule is its death
                quarantine=None if alone is None else alone.advance,
            )

        lone = coordinator(f"{owner}-alone", None)
        self.coordinator = coordinator(owner, AloneProcess(rng, state.turns, lone, f"{owner}-alone"))

        def in_this_process(label: str, body: Callable[[], None]) -> None:
            spawn(label, self, body)

        executor: Any = Executor(rng, outside.functions, self, outside.give_way, in_this_process, outside.waits)
        intents: Any = outside.intents
        self.runner = CallRunner(
            owner=owner,
            brains=only(BRAIN),
            calls=state.calls,
            intents=intents,
            beats=beats,
            executor=executor,
            stops=stops,
            holds=state.holds,
            outside=state.outside,
            files=ResultFiles(BlobsInMemory(), FileLimits()),
        )
        self.outside = OutsideDesk(
            outside=state.outside,
            calls=state.calls,
            holds=state.holds,
            intents=intents,
            blobs=BlobsInMemory(),
            limits=FileLimits(),
        )
        self.finalizer = TurnFinalizer(
            owner=owner,
            chain=state.finals,
            beats=beats,
            late=cast(Any, NoLateSteps(only(FinalizerRuntime(BRAIN, StepOrder(_steps(state, outside)))), rng)),
            visit_s=0.0 if owner.startswith("w0") else 3600.0,
        )
        self.visits = ModelVisits(outside.seed, self)
        self.lost_turns = LostTurns(
            state=state.sweeper,
            accepted=stand_in(accepted),
            turn_queue=self.turn_queue,
            calls=stand_in(outside.intents),
            patience_s=0.0,
        )

        self.sweeper = Sweeper(
            every_s=1.0,
            state=state.sweeper,
            checks=DueChecks(
                every_s=1.0,
                state=state.sweeper,
                calls=state.calls,
                turns=state.turns,
                rescuer=Rescuer(calls=state.calls, intents=intents, max_attempts=3),
                lost_turns=self.lost_turns,
                coordinator=self.coordinator,
                finalizer=self.finalizer,
                children=children,
            ),
            comparisons=(),  # SQL is not modelled: the schedule compares by itself
            due_work=(),
        )


def _steps(state: State, outside: Outside) -> list[Step]:
    accepted, fails = outside.accepted, outside.fails

    def log(context: Any) -> None:
        request = context.turn.request
        key = state.keys.named("receipts", request.session_id, request.turn_id)
        receipts = cast("dict[str, str]", state.client.hgetall(key))
        outside.inputs.settle(request.session_id, receipts)
        accepted.ended.setdefault(request.turn_id, context.turn.ending.value)

    def send(context: Any) -> None:
        context.send(make_result(context.turn))

    def end(context: Any) -> None: ...

    return [Step(FIRST_STEP, fails, log), Step("result", fails, send, FIRST_STEP), Step("end", fails, end)]

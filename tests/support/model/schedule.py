"""One schedule: work and faults in an order drawn from a seed, then healing, then the final checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from brainq.contracts.limits import Limits
from brainq.contracts.status import TurnState
from brainq.contracts.turn import LimitsOverride, TurnRequest
from tests.support.model.bells import Bells
from tests.support.model.client import ModelClient
from tests.support.model.ending import check_ending
from tests.support.model.faults import Faults
from tests.support.model.functions import Functions
from tests.support.model.process import FIRST_STEP, LEASE_S, RERING_S, Outside, Process, State
from tests.support.model.rules import require
from tests.support.model.scripts import CLOCK, WatchedScripts
from tests.support.model.stand_ins import Accepted, Intents
from tests.support.model.state import Known, StateRules
from tests.support.model.tasks import Tasks

OPERATIONS = 40  # of the schedule, each one fault, one thing begun, or a few commands of a task
WORKERS = 3
SESSIONS = ("s1", "s2")
MOST_TURNS = 3
MOST_BURST = 8  # commands that one task may run before another one may
HEALING_ROUNDS = 24
MOST_STEPS_TO_QUIET = 4000
TIMEOUT_S = 80_000.0  # healing ends well before, so a turn that only its deadline could end is found


class Schedule:
    """What happens in one seed. `log` is the list of operations."""

    def __init__(
        self,
        seed: int,
        client: ModelClient,
        scripts: WatchedScripts,
        state: State,
        bells: Bells,
        look_sha: str,
    ) -> None:
        self.rng = Random(seed)
        self.log: list[tuple[str, ...]] = []
        self.tasks = Tasks()
        self.client = client
        self.keys = bells.keys
        self.bells = bells
        self.rules = StateRules(self.keys, look_sha)
        self.functions = Functions()
        self.accepted = Accepted()
        self.healing = False
        self.now_ms = 1_000_000_000
        self._state = state
        self._outside = Outside(
            self.rng,
            self.functions,
            Intents(self.tasks.give_way),
            self.accepted,
            self.tasks.give_way,
            self._step_fails,
        )
        self.processes = [self._process(f"w{number}") for number in range(WORKERS)]
        self._faults = Faults(self)
        self._common: list[tuple[int, Callable[[], None]]] = [
            (34, self._answer_bell),
            (9, self._sweep),
            (7, self._submit),
            (9, self._pass_some_time),
            (5, self._beat),
        ]

    def run(self) -> None:
        """Raises BrokenRule."""
        self.client.many([("FLUSHDB",)])
        self.pass_time(0)
        for _ in range(self.rng.randint(1, 3)):
            self._submit()
        operations = [*self._common, *self._faults.weighted]
        weights = [weight for weight, _ in operations]
        acts = [act for _, act in operations]
        for _ in range(OPERATIONS):
            if self.tasks.alive and self.rng.random() < 0.5:
                self._burst()
            else:
                self.rng.choices(acts, weights)[0]()
        self._heal()
        check_ending(self.client, self.keys, list(self.rules.turns.values()))

    # What scripts ask and tell.

    def fate(self) -> str:
        if self.healing or self.tasks.current is None:
            return ""
        roll = self.rng.random()
        return (
            "request lost"
            if roll < 0.015
            else "reply lost"
            if roll < 0.03
            else "twice"
            if roll < 0.08
            else ""
        )

    def told(self, name: str, given: Mapping[str, Any], reply: list[str], state: list[str] | None) -> None:
        task = self.tasks.current
        self.log.append((task.label if task else "", name, str(given.get("call", "")), *map(str, reply[:3])))
        if state is not None:
            self.rules.check(name, given, reply, state)

    # What the schedule does.

    def spawn(self, label: str, process: Process, body: Callable[[], object]) -> None:
        self.log.append((f"{process.owner} begins", label))
        self.tasks.spawn(f"{process.owner} {label}", process, body)

    def pass_time(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.client.many([("HSET", CLOCK, "s", self.now_ms // 1000, "us", self.now_ms % 1000 * 1000)])

    def replace(self, place: int) -> None:
        """A process is killed, and its supervisor starts another."""
        old = self.processes[place]
        killed = self.tasks.kill_of(old)
        self.functions.kill_of(old)
        number = int(old.owner.partition(".")[2] or 0) + 1
        self.log.append((f"{old.owner} dies", f"with {killed} tasks"))
        self.processes[place] = self._process(f"w{place}.{number}")

    def answer(self, bell: str) -> None:
        """Some worker takes a doorbell."""
        task, args = self.bells.read(bell)
        process = self.rng.choice(self.processes)
        machine: Mapping[str, Callable[..., str]] = {
            "brainq.turn.advance": process.coordinator.advance,
            "brainq.call.run": process.runner.run,
            "brainq.finalize.step": process.finalizer.run,
        }
        self.spawn(f"{task[7:]} {args[1:]}", process, lambda: machine[task](*args))

    def cancel(self, known: Known) -> None:
        process = self.rng.choice(self.processes)
        self.spawn(
            f"cancel {known.turn_id}",
            process,
            lambda: self._state.turns.cancel(known.session_id, known.turn_id, "stop", FIRST_STEP),
        )

    def _process(self, owner: str) -> Process:
        return Process(owner, self._state, self._outside, self.spawn)

    def _step_fails(self) -> bool:
        return not self.healing and self.rng.random() < 0.15

    def _burst(self) -> None:
        place = self.rng.randrange(len(self.tasks.alive))
        for _ in range(self.rng.randint(1, MOST_BURST)):
            if self.tasks.step(place).done:
                return

    def _answer_bell(self) -> None:
        if bell := self.bells.pop(self.rng):
            self.answer(bell)

    def _sweep(self) -> None:
        process = self.rng.choice(self.processes)
        self.spawn("sweep", process, process.sweeper.sweep)

    def _compare(self) -> None:
        process = self.rng.choice(self.processes)
        self.spawn("compare", process, process.comparer.compare)

    def _submit(self) -> None:
        number = len(self.accepted.requests) + 1
        if number > MOST_TURNS:
            return
        limits = LimitsOverride(
            timeout_s=TIMEOUT_S, max_steps=self.rng.randint(1, 2), max_tool_calls=self.rng.randint(1, 5)
        )
        request = TurnRequest(
            turn_id=f"t{number:02d}",
            session_id=SESSIONS[(number + (self.rng.random() < 0.2)) % 2],
            user_message="do",
            limits=limits,
        )
        full: Limits = limits.over(Limits())
        self.accepted.requests[request.turn_id] = request
        self.rules.watch(Known(request.session_id, request.turn_id, full.max_steps, full.tool_calls))
        process = self.rng.choice(self.processes)
        self.spawn(f"submit {request.turn_id}", process, lambda: process.admission.queue(request))

    def _pass_some_time(self) -> None:
        passed_ms = self.rng.choice((1, 700, 3000, 6000))
        self.log.append(("time passes", f"{passed_ms} ms"))
        self.pass_time(passed_ms)

    def _beat(self) -> None:
        process = self.rng.choice(self.processes)
        if process.beats.holds:
            hold = self.rng.choice(process.beats.holds)
            self.spawn("beat", process, lambda: process.beats.beat_once(hold))

    # After the faults.

    def _heal(self) -> None:
        """Workers work, sweepers sweep, time passes: each turn must end without its deadline's help."""
        self.healing = True
        self.log.append(("healing",))
        for number in range(HEALING_ROUNDS):
            self._run_to_quiet()
            self._compare()
            self._sweep()
            self._run_to_quiet()
            if self._is_over():
                return
            self.pass_time(int(1000 * ((LEASE_S if number % 2 else RERING_S) + 1)))
        states = {known.turn_id: known.line for known in self.rules.turns.values()}
        require(False, "it does not come to its end", json.dumps(states), *self._left())

    def _run_to_quiet(self) -> None:
        for _ in range(MOST_STEPS_TO_QUIET):
            if self.tasks.alive:
                self.tasks.step(self.rng.randrange(len(self.tasks.alive)))
            elif bells := self.bells.pop_all():
                for bell in bells:
                    self.answer(bell)
            else:
                return
        require(False, "it goes on for ever")

    def _is_over(self) -> bool:
        ended = all(TurnState(known.state or "queued").is_final for known in self.rules.turns.values())
        return ended and not self._left()

    def _left(self) -> list[str]:
        """Keys that empty themselves when all is done."""
        lanes, index = self.client.many([("KEYS", "*{lanes}*"), ("KEYS", "*index")])
        return [*lanes, *index]

    def end(self) -> None:
        """Leave no greenlet behind."""
        for process in {id(task.process): task.process for task in self.tasks.alive}.values():
            self.tasks.kill_of(process)

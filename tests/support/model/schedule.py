"""One schedule: work and faults in an order drawn from a seed, then healing, then the final checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from brainq.adapters.celery.names import FINALIZE_QUEUE, TAKEN_IN_TURN
from brainq.contracts.claim import CallRef
from brainq.contracts.status import TurnState
from brainq.contracts.turn import Limits, Priority, TurnRequest
from brainq.errors import SessionBusy
from tests.support.model.bell_rules import BellRules
from tests.support.model.bells import Bells
from tests.support.model.client import ModelClient
from tests.support.model.ending import check_ending
from tests.support.model.faults import Faults
from tests.support.model.functions import Functions
from tests.support.model.inputs import Inputs
from tests.support.model.known import Known
from tests.support.model.people import People
from tests.support.model.process import LEASE_S, RERING_S, Outside, Process, State
from tests.support.model.requests import draw_request
from tests.support.model.room_rules import CAPPED, RoomRules
from tests.support.model.rules import require
from tests.support.model.scripts import CLOCK, WatchedScripts
from tests.support.model.stand_ins import REFUSED, Accepted, Intents
from tests.support.model.state import StateRules
from tests.support.model.tasks import Tasks
from tests.support.model.visits import VisitRules

OPERATIONS = 28  # of the schedule, each one fault, one thing begun, or a few commands of a task
WORKERS = 3
SESSIONS = ("a:1", "b:1")
MOST_TURNS = 3
CROWD = ("a:1", "b:1", "a:2", "b:2")  # and as many turns, in a fleet that has little room
ROOMS = ((125, 100), (1, 1), (2, 1), (2, 2))  # the fleet's, and a tenant's share of it: by the seed
CAPS = (0, 0, 1)  # how many turns of the brain may be live, or no cap: by the seed, too
CHANGED = (0, 0, 1, 1, 2)  # where it has one, what sweepers tell by turns, in every second seed
BACKLOG = 14  # of sixteen seeds: the finalizer pool is behind, and sweepers send results
USUAL_PLACES = {"finalize": 8, "read_only": 16}  # in the lists that tenants take turns for
PLACES_OF_WRITES = 2
PLACES = (1, 2, 8)  # in each of them, in each eighth seed, those with a backlog among them: by the seed, too
CROWDED_VISITS = 7  # of eight seeds, and threads continue with what they open
CROWDED = 4  # of eight seeds: one place in each, and much room, so that calls wait
POOL_IS_AWAY = 0.9  # how often, then, nobody looks at its queue
MOST_BURST = 8  # commands that one task may run before another one may
PEOPLE = 20  # how often a verb is drawn, beside 98 for work and faults
PEOPLE_ROUNDS = 2  # of healing, in which people still do what they like
MOST_VERBS = 5  # in each of them, beside those that come while workers work
HEALING_ROUNDS = 24
MOST_STEPS_TO_QUIET = 4000
PRIORITIES: tuple[Priority, ...] = ("normal", "low", "high")
MAX_WAIT_S = 4.0  # of a crowd's third turn, or of the second one of a brain with a cap
TIMEOUT_S = 80_000.0  # healing ends well before, so a turn that only its deadline could end is found


class Schedule:
    """What happens in one seed. `log` is the list of operations."""

    def __init__(
        self, seed: int, client: ModelClient, scripts: WatchedScripts, state: State, bells: Bells, look_sha: str
    ) -> None:
        self.rng = Random(seed)
        self.log: list[tuple[str, ...]] = []
        self.tasks = Tasks()
        self.client = client
        self.keys = bells.keys
        self.bells = bells
        self.room = ROOMS[seed % len(ROOMS)]
        self.cap = CAPS[seed // len(ROOMS) % len(CAPS)]
        self._cap_changes = seed // len(ROOMS) // len(CAPS) % 2 == 0
        self._backlog = seed % 16 == BACKLOG
        few = {BACKLOG % 8: PLACES[seed // 16 % len(PLACES)], CROWDED: 1, CROWDED_VISITS: 1}
        self._places = few.get(seed % 8)
        self._sessions = CROWD if self.room[0] < MOST_TURNS else SESSIONS
        self._most = max(MOST_TURNS + bool(self.cap), len(self._sessions))
        self.rules = StateRules(self.keys, look_sha, RoomRules(*self.room, self.cap), BellRules(self._places_of))
        self.visit_rules = VisitRules(bells)
        self.functions = Functions(self._may_start, lambda token: self._people.answer_at_once(token))
        self.accepted = Accepted(self._watch)
        self.inputs = Inputs(self.tasks.give_way)
        self.healing = False
        self.calm = False
        self.now_ms = 1_000_000_000
        self.ports = state
        self._submitted = 0
        self._outside = Outside(
            self.rng,
            self.functions,
            Intents(self.tasks.give_way),
            self.accepted,
            self.inputs,
            self.tasks.give_way,
            self._step_fails,
            self._waits,
            seed,
        )
        self.processes = [self._process(f"w{number}") for number in range(WORKERS)]
        self._faults = Faults(self)
        self._people = People(self)
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
        self.client.many([("HSET", CLOCK, "places", self._places or "")])
        self.pass_time(0)
        self._keep_room()
        for _ in range(self.rng.randint(1, 3)):
            self._submit()
        operations = [*self._common, *self._faults.weighted, (PEOPLE, self._people.act)]
        if self.cap and self._cap_changes:
            operations += [(5, self._change_cap), (1, self._forget_room)]
        if self._backlog:
            operations += [(12, self._faults.deliver), (12, self._pass_some_time), (12, self._sweep)]
        acts = [act for _, act in operations]
        weights = [weight for weight, _ in operations]
        for _ in range(OPERATIONS * (3 if self._backlog else 1)):
            if self.tasks.alive and self.rng.random() < 0.5:
                self._burst()
            else:
                self.rng.choices(acts, weights)[0]()
        self._heal()
        check_ending(self)

    def _places_of(self, word: str) -> int:
        return self._places or USUAL_PLACES.get(word, PLACES_OF_WRITES)

    # What scripts ask and tell.

    def fate(self) -> str:
        if self.calm or self.tasks.current is None:
            return ""
        roll = self.rng.random()
        if self.healing:
            return "twice" if roll < 0.05 else ""
        return "request lost" if roll < 0.015 else "reply lost" if roll < 0.03 else "twice" if roll < 0.08 else ""

    def told(self, name: str, given: Mapping[str, Any], reply: list[str], state: list[str] | None) -> None:
        task = self.tasks.current
        self.log.append((task.label if task else "", name, str(given.get("call", "")), *map(str, reply[:3])))
        if state is not None:
            self.rules.check(name, given, reply, state, self.now_ms)
            self.visit_rules.check(name, given, reply)
            for known in self.rules.newly_cancelled:
                for process in self.processes:
                    process.stops.tell(self.rng, known.session_id, known.turn_id)

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
        self.rules.bells.taken(args)
        process = self.rng.choice(self.processes)
        self.spawn(f"{task[7:]} {args[1:]}", process, process.visits.answer(self.bells.queue(bell), task, args))

    def some_turn(self, *states: str) -> Known | None:
        """A turn in one of the states."""
        fit = [known for known in self.rules.turns.values() if known.state in states]
        return self.rng.choice(fit) if fit else None

    def some_session(self) -> str:
        return self.rng.choice(self._sessions)

    def cancel(self, known: Known) -> None:
        process = self.rng.choice(self.processes)
        self.spawn(
            f"cancel {known.turn_id}", process, lambda: self.ports.turns.cancel(known.session_id, known.turn_id, "stop")
        )

    def _process(self, owner: str) -> Process:
        return Process(owner, self.ports, self._outside, self.spawn)

    def _step_fails(self) -> bool:
        return not self.healing and self.rng.random() < 0.15

    def _waits(self) -> bool:
        """Whether a call needs an approval, or its result is to come from outside."""
        return not self.calm and self.rng.random() < 0.2

    def _may_start(self, ref: CallRef, arguments: dict[str, Any]) -> None:
        self.rules.people.may_start(self.rules.of(ref.session_id, ref.turn_id), ref.call_id, arguments)

    def _watch(self, request: TurnRequest) -> None:
        full: Limits = request.limits.applied_to(Limits())
        self.rules.watch(
            Known(
                request.session_id,
                request.turn_id,
                full.max_steps,
                full.tool_calls,
                request.priority,
                request.brain or "",
                bool(self.cap) and request.on_busy in ("interrupt", "replace"),
            )
        )

    def _burst(self) -> None:
        place = self.rng.randrange(len(self.tasks.alive))
        for _ in range(self.rng.randint(1, MOST_BURST)):
            if self.tasks.step(place).done:
                return

    def _answer_bell(self) -> None:
        away = self._backlog and self.rng.random() < POOL_IS_AWAY
        if bell := self.bells.pop(self.rng, without=FINALIZE_QUEUE if away else ""):
            self.answer(bell)

    def _sweep(self) -> None:
        process = self.rng.choice(self.processes)
        self.spawn("sweep", process, process.sweeper.sweep)

    def _compare(self) -> None:
        process = self.rng.choice(self.processes)
        self.spawn("compare", process, lambda: process.lost_turns.compare(0))
        self.spawn("keep room", process, self._keep_room)
        self.spawn("heal inputs", process, lambda: process.desk.heal(0))

    def _keep_room(self) -> None:
        self.ports.sweeper.set_capacity(*self.room, {}, {CAPPED: self.cap} if self.cap else {})

    def _change_cap(self) -> None:
        """A sweeper of another deployment, which tells another cap, or none."""
        cap = self.rng.choice(CHANGED)
        process = self.rng.choice(self.processes)
        self.spawn(
            f"cap {cap}", process, lambda: self.ports.sweeper.set_capacity(*self.room, {}, {CAPPED: cap} if cap else {})
        )

    def _forget_room(self) -> None:
        """What sweepers said of the room has ended, and another one says it later."""
        self.log.append(("what was said of the room ends",))
        self.client.many([("DEL", self.keys.room)])
        self.rules.room.is_known = False
        self.spawn("keep room", self.rng.choice(self.processes), self._keep_room)

    def _submit(self) -> None:
        if self._submitted == self._most:
            return
        self._submitted += 1
        request = draw_request(self.rng, self._submitted, self._sessions, TIMEOUT_S)
        if self._sessions is CROWD:
            request = request.model_copy(update={"priority": PRIORITIES[self._submitted % 3]})
        # In a crowd all but one are of that brain; else one is live, and others wait behind one that stands aside.
        if self.cap and (self._submitted != 2 if self._sessions is CROWD else self._submitted < 3):
            request = request.model_copy(update={"brain": CAPPED})
        if self._submitted == (3 if self._sessions is CROWD else 2 if self.cap else 0):
            request = request.model_copy(
                update={"limits": request.limits.model_copy(update={"max_wait_s": MAX_WAIT_S})}
            )
        self.accepted.accept(request)
        process = self.rng.choice(self.processes)

        def submit() -> None:
            try:
                process.turn_queue.queue(request)
            except SessionBusy:
                self.log.append(("refused", request.turn_id))

        self.spawn(f"submit {request.turn_id} {request.on_busy} {request.kind}", process, submit)

    def _pass_some_time(self) -> None:
        passed_ms = self.rng.choice((1, 700, 3000, 6000))
        self.log.append(("time passes", f"{passed_ms} ms"))
        self.pass_time(passed_ms)

    def _beat(self) -> None:
        process = self.rng.choice(self.processes)
        if process.beats.renewals:
            renewal = self.rng.choice(process.beats.renewals)
            self.spawn("beat", process, lambda: process.beats.beat_once(renewal))

    # After the faults.

    def _heal(self) -> None:
        """Workers work, sweepers sweep, time passes: each turn must end without its deadline's help."""
        self.healing = True
        self.log.append(("healing",))
        for _ in range(PEOPLE_ROUNDS):
            self._run_to_quiet()
            self._sweep()
            for _ in range(MOST_VERBS):
                self._people.act()
        self.calm = True
        self.log.append(("people go home",))
        for number in range(HEALING_ROUNDS):
            self._run_to_quiet()
            self._people.go_home()
            self._compare()
            self._sweep()
            self._run_to_quiet()
            if self._is_over():
                return
            self.pass_time(int(1000 * ((LEASE_S if number % 2 else RERING_S) + 1)))
        states = {known.turn_id: known.line for known in self.rules.turns.values()}
        inputs = [row for row in self.inputs.rows.values() if row.state == "accepted"]
        require(False, "it does not come to its end", json.dumps(states), *inputs, *self._left())

    def _run_to_quiet(self) -> None:
        for _ in range(MOST_STEPS_TO_QUIET):
            if self.tasks.alive:
                self.tasks.step(self.rng.randrange(len(self.tasks.alive)))
                if not self.calm and self.rng.random() < 0.04:
                    self._people.act()
            elif bells := self.bells.pop_all():
                for bell in bells:
                    self.answer(bell)
            else:
                return
        require(False, "it goes on for ever")

    def _is_over(self) -> bool:
        ended = all(
            TurnState(known.state or "queued").is_final or self.accepted.ended.get(known.turn_id) == REFUSED
            for known in self.rules.turns.values()
        )
        settled = all(row.state != "accepted" for row in self.inputs.rows.values())
        return ended and settled and not self.rules.paused and not self._left()

    def _left(self) -> list[str]:
        """Keys that empty themselves when all is done."""
        names = ["*{lanes}*", "*index", "*{room}:[^s]*"]  # but for how large the room is
        names += [f"*{{{word}}}:*" for word in TAKEN_IN_TURN.values()]
        return [key for found in self.client.many([("KEYS", name) for name in names]) for key in found]

    def end(self) -> None:
        """Leave no greenlet behind."""
        for process in {id(task.process): task.process for task in self.tasks.alive}.values():
            self.tasks.kill_of(process)

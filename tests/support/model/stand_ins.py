"""What stands where SQL, threads, tools and the finalizer's callbacks are outside of tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from brainq.contracts.call import NOT_STARTED, ToolOutcome
from brainq.contracts.claim import CallRef, FinalStepClaim
from brainq.contracts.rows import StartedWord
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest
from brainq.engine.brain.brains import ByBrain
from brainq.engine.brain.middleware import Hooks
from brainq.engine.finalize.step_order import FinalizerRuntime
from brainq.engine.finalize.steps import FinalStepRunner
from brainq.engine.jobs import SOON


class Renewal:
    """A lease under renewal, as `brainq.runtime.leases.LeaseRenewal`; the schedule decides when it beats."""

    __slots__ = ("_renewals", "beat", "on_lost")

    def __init__(self, renewals: list[Renewal], beat: Callable[[], str], on_lost: Callable[[str], None]) -> None:
        self._renewals = renewals
        self.beat = beat
        self.on_lost = on_lost

    def __enter__(self) -> Renewal:
        return self

    def __exit__(self, *raised: object) -> None:
        if self in self._renewals:
            self._renewals.remove(self)


class Beats:
    """`brainq.runtime.leases.LeaseRenewer` without its thread."""

    def __init__(self) -> None:
        self.renewals: list[Renewal] = []

    def renew(self, beat: Callable[[], str], on_lost: Callable[[str], None]) -> Renewal:
        renewal = Renewal(self.renewals, beat, on_lost)
        self.renewals.append(renewal)
        return renewal

    def beat_once(self, renewal: Renewal) -> None:
        """One round of the beating thread for one lease."""
        word = renewal.beat()
        if word != "OK" and renewal in self.renewals:
            self.renewals.remove(renewal)
            renewal.on_lost(word)


class Stops:
    """`brainq.adapters.redis.stops` without its connection; the schedule decides who hears of a cancel."""

    def __init__(self) -> None:
        self._watching: list[tuple[str, str, Callable[[str], None]]] = []

    @contextmanager
    def watch(self, session_id: str, turn_id: str, callback: Callable[[str], None]) -> Generator[None]:
        entry = (session_id, turn_id, callback)
        self._watching.append(entry)
        try:
            yield
        finally:
            self._watching.remove(entry)

    def tell(self, rng: Random, session_id: str, turn_id: str) -> None:
        """The turn was cancelled: some of those who watch it hear of it at once, the others from their beats."""
        for session, turn, callback in self._watching:
            if (session, turn) == (session_id, turn_id) and rng.random() < 0.7:
                callback("cancelled")


@dataclass(slots=True)
class Intent:
    state: str
    owner: str = ""
    outcome_json: str | None = None


class Intents:
    """The `calls` table: one row an attempt."""

    def __init__(self, give_way: Callable[[], None]) -> None:
        self.rows: dict[tuple[str, str, int], Intent] = {}
        self._give_way = give_way

    def start(self, *, turn_id: str, call_id: str, attempt: int, owner: str, **_: Any) -> bool:
        self._give_way()
        return self._insert((turn_id, call_id, attempt), "intent", owner)

    def void(self, *, turn_id: str, call_id: str, attempt: int, **_: Any) -> SimpleNamespace:
        self._give_way()
        self._insert((turn_id, call_id, attempt), "void")
        row = self.rows[turn_id, call_id, attempt]
        state = "started" if row.state == "intent" else row.state
        return SimpleNamespace(state=state, outcome_json=row.outcome_json, owner=row.owner)

    def void_unstarted(self, turn_id: str, call_id: str, attempt: int) -> bool:
        self._give_way()
        row = self.rows.get((turn_id, call_id, attempt))
        if row is None or row.state != "intent":
            return False
        row.state = "void"
        return True

    def record_outcome(self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool) -> bool:
        self._give_way()
        row = self.rows.get((turn_id, call_id, attempt))
        if row is None or row.state != "intent":
            return False
        row.state, row.outcome_json = "done", json.dumps(outcome.model_dump(mode="json"))
        return True

    def of_turn(self, turn_id: str) -> tuple[()]:
        """Attempts with their arguments, which are not kept here."""
        return ()

    def started(self, turn_id: str) -> StartedWord:
        rows = [row for key, row in self.rows.items() if key[0] == turn_id and row.state != "void"]
        states = {row.state for row in rows if NOT_STARTED not in (row.outcome_json or "")}
        return "yes" if "done" in states else "unsaid" if states else "no"

    def _insert(self, key: tuple[str, str, int], state: str, owner: str = "") -> bool:
        if key in self.rows:
            return False
        self.rows[key] = Intent(state, owner)
        return True


@dataclass(slots=True)
class Accepted:
    """The `turns` table. `on_accept` is told of each new row."""

    on_accept: Callable[[TurnRequest], None]
    requests: dict[str, TurnRequest] = field(default_factory=dict[str, TurnRequest])
    ended: dict[str, str] = field(default_factory=dict[str, str])

    def accept(self, request: TurnRequest, as_sent: TurnRequest | None = None) -> SimpleNamespace:
        turn_id = request.turn_id
        created = turn_id not in self.requests
        if created:
            self.requests[turn_id] = request
            self.on_accept(request)
        return SimpleNamespace(
            turn_id=turn_id, session_id=request.session_id, created=created, ended=turn_id in self.ended
        )

    def refuse(self, turn_id: str, reason: str) -> bool:
        return self.ended.setdefault(turn_id, REFUSED) == REFUSED

    def is_open(self, turn_id: str) -> bool:
        return turn_id in self.requests and turn_id not in self.ended

    def unended(self, after_row: int, limit: int) -> list[SimpleNamespace]:
        rows = enumerate(self.requests.values(), 1)
        return [
            SimpleNamespace(row=row, turn_id=request.turn_id, session_id=request.session_id)
            for row, request in rows
            if row > after_row and request.turn_id not in self.ended
        ]

    def result(self, turn_id: str) -> str | None:
        return self.ended.get(turn_id)

    def request(self, turn_id: str) -> TurnRequest | None:
        return self.requests.get(turn_id)


REFUSED = "refused"


class Step:
    """A finalizer step: does `act`, or fails when `fails` says so."""

    limit_s = None  # a time limit would take another thread, which no schedule decides about

    def __init__(self, name: str, fails: Callable[[], bool], act: Callable[[Any], None], *needs: str) -> None:
        self.name = name
        self.needs = needs
        self._fails = fails
        self._act = act

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: Any) -> None:
        if self._fails():
            raise RuntimeError(f"step {self.name} fails")
        self._act(context)


class Records:
    """The finalizer's rows: nothing reads them here."""

    def note_failure(self, claim: FinalStepClaim, error: str, dead: bool) -> None:
        return None

    def note_done(self, claim: FinalStepClaim) -> None:
        return None


class NoLateSteps:
    """`engine.finalize.late_steps.LateSteps` without SQL: a step that fails stays in its chain."""

    parents = None
    records = Records()
    steps = FinalStepRunner()

    def __init__(self, brains: ByBrain[FinalizerRuntime], rng: Random) -> None:
        self.brains = brains
        self.jobs = SimpleNamespace(max_tries=3, backoff=self)
        self._rng = rng

    def after_s(self, tries: int) -> float:
        return SOON.after_s(tries, self._rng.random())

    def waits(self, turn_id: str, needs: Sequence[str]) -> bool:
        return False

    def open(self, claim: FinalStepClaim, tries: int, **how: Any) -> None:
        raise OSError("SQL is not modelled")

    def answer(self, session_id: str, turn_id: str, step: str) -> str:
        return "dropped: stale"


EFFECTS = (Effect.READ_ONLY, Effect.LOCAL_WRITE, Effect.NETWORK, Effect.DESTRUCTIVE)


class NoChildren:
    """`engine.people.children.ChildDesk` where no call starts a turn."""

    def cancel_children(self, turn_ids: Sequence[str]) -> None:
        return None

    def check_parent(self, session_id: str, turn_id: str, parent: CallRef) -> bool:
        return False


def _tool(name: str) -> SimpleNamespace:
    return SimpleNamespace(context_param="", name=name)


BRAIN: Any = SimpleNamespace(
    tools=SimpleNamespace(get=_tool),
    hooks=Hooks(),
    name="brain",
    redact_logs=True,
    thinking="high",
    complete=lambda request: request,  # pyright: ignore[reportUnknownLambdaType]
)

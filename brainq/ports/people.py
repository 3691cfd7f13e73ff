"""What one machine needs of another, or of the tasks: brakes, child turns, and watchers of what no task shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.budgets import (
    AtCap,
    Budget,
    BudgetWindow,
    GrantedWindow,
    MoneyGrant,
    MoneyHold,
    MoneyRefusal,
    WindowCounter,
)
from brainq.contracts.call import ChildTurn
from brainq.contracts.claim import CallClaim, CallRef, FinalStepClaim
from brainq.contracts.stop import Stop
from brainq.contracts.turn import TurnRequest, TurnResult


class Brakes(Protocol):
    """What was promised to keep turns from changing anything. Fitted by `people.brakes.BrakeDesk`.

    record_taken   the turn took a flag of its session when it became live
    lift           a newer word on its readiness takes the place of that flag
    restore        put back what Redis has lost of a turn's brakes; how many that were, cancels always among them
    """

    def record_taken(self, session_id: str, flag_id: str, turn_id: str) -> None: ...
    def lift(self, session_id: str, turn_id: str) -> None: ...
    def restore(self, session_id: str, turn_id: str) -> int: ...


class StopSwitch(Protocol):
    """Where claims and submits meet operators' stops. Fitted by `state.stops.RedisStops`.

    put      they are met from now on
    drop     it is met no more; False where it was not
    fields   those that are met now
    hasten   have every turn looked at: what waited may go on
    """

    def put(self, standing: Sequence[Stop]) -> None: ...
    def drop(self, field: str) -> bool: ...
    def fields(self) -> set[str]: ...
    def hasten(self) -> None: ...


class StopsInForce(Protocol):
    """What is stopped now, for what no script of Redis claims. Fitted by `state.stops.RedisStops`."""

    def in_force(self) -> Sequence[Stop]: ...


class ChildTurns(Protocol):
    """Turns that calls start. Fitted by `people.children.ChildDesk`.

    start             (`STARTED`, child turn id) or (`REFUSED`, why). The same call again is the same child
    cancel_children   their turn is over, or their call could not park
    deliver           brings a child's result to the call that waits for it
    """

    def start(self, claim: CallClaim, child: ChildTurn) -> tuple[str, str]: ...
    def cancel_children(self, turn_ids: Sequence[str]) -> None: ...
    def deliver(self, request: TurnRequest, result: TurnResult) -> str: ...


class Budgets(Protocol):
    """What model calls are held to. Fitted by `people.budgets.BudgetDesk`.

    windows   the budgets that a call of this session and brain is held to
    """

    def windows(self, session_id: str, brain: str) -> tuple[BudgetWindow, ...]: ...
    def grant(self, windows: Sequence[BudgetWindow], refusal: MoneyRefusal) -> AtCap | None: ...
    def reserve(
        self, call_id: str, session_id: str, brain: str, usd: float | None, least_usd: float | None
    ) -> str | None: ...
    def settle(self, call_id: str, usd: float) -> None: ...
    def queue_key(self, at_cap: AtCap) -> str: ...
    def remaining_ms(self, at_cap: AtCap) -> int: ...


class BudgetRows(Protocol):
    """Budgets in SQL. Fitted by `store.repositories.budgets.Budgets`."""

    def standing(self) -> Sequence[Budget]: ...
    def set(self, scope: str, per: str, usd: float | None, at_cap: str, by: str) -> None: ...
    def grant(self, scope: str, budget: Budget, refusal: MoneyRefusal) -> MoneyGrant | None: ...
    def raise_by(self, scope: str, budget: Budget, start_ms: int, more: float, by: str) -> float: ...
    def windows(self, since_ms: int) -> Sequence[GrantedWindow]: ...
    def is_spent(self, scope: str, per: str, start_ms: int) -> bool: ...
    def mark_spent(self, scope: str, per: str, start_ms: int, *, is_spent: bool) -> None: ...


class MoneyCounters(Protocol):
    """Budgets in Redis. Fitted by `state.money.RedisMoney`."""

    def now_ms(self) -> int: ...
    def grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant) -> None: ...
    def restore(self, granted: Sequence[tuple[BudgetWindow, int, MoneyGrant]]) -> None: ...
    def line(self, window: BudgetWindow) -> str: ...
    def resume(self, name: str) -> int: ...
    def take(self, call_id: str, hold: MoneyHold) -> MoneyRefusal | None: ...
    def settle(self, call_id: str, usd: float) -> None: ...
    def counters(self, windows: Sequence[tuple[str, int]]) -> Sequence[WindowCounter]: ...
    def tell(self) -> None: ...


class WorkEvents:
    """Tells watchers of what was done without a queue message of its own; this one has no watchers. Celery's are told
    by `tasks.task_events.TaskEvents`.

    turn         the sweeper ended a turn
    call         the sweeper gave an attempt of a call up, or found it lost; `rung_again_ms` as `Calls` returns it
    step_began, step_ended   a visit went on with this step of the finalizer
    """

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None:
        return

    def call(self, ref: CallRef, attempt: int, tool: str, did: str, rung_again_ms: int | None) -> None:
        return

    def step_began(self, claim: FinalStepClaim) -> None:
        return

    def step_ended(self, claim: FinalStepClaim, did: str, took_s: float) -> None:
        return


UNWATCHED = WorkEvents()

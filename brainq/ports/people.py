"""What one machine needs of another, or of wiring: brakes, child turns, an answer's context, task events,
threads for later steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from brainq.contracts.call import ChildTurn
from brainq.contracts.claim import CallClaim, CallRef, FinalStepClaim
from brainq.contracts.people import Brake, EditedCall, HoldSpec
from brainq.contracts.turn import TurnRequest, TurnResult


class CallEditor(Protocol):
    """Puts a person's arguments in place of the model's. Fitted by `turn.call_plan.BrainCallEditor`."""

    def edit_call(self, tool: str, arguments: Mapping[str, Any], session_id: str, request: TurnRequest) -> EditedCall:
        """The call as it will run. Raises InvalidInput."""
        ...


# What keeps turns from changing anything: in SQL, and put back into Redis from there.


class BrakeRows(Protocol):
    """Holds, readiness flags and cancels in SQL. Fitted by `store.repositories.brakes.Brakes`."""

    def hold(self, session_id: str, turn_id: str, spec: HoldSpec) -> None: ...
    def flag(self, session_id: str, spec: HoldSpec) -> None: ...
    def cancel(self, session_id: str, turn_id: str, reason: str) -> None: ...
    def assign_flag(self, session_id: str, flag_id: str, turn_id: str) -> bool: ...
    def end(self, session_id: str, brake_id: str) -> bool: ...
    def released(self, session_id: str, turn_id: str, brake_id: str) -> None: ...
    def those_released(self, session_id: str, brake_ids: Sequence[str]) -> set[str]: ...
    def withdraw(self, session_id: str, brake_id: str) -> None: ...
    def lift(self, session_id: str, turn_id: str) -> int: ...
    def of_turn(self, session_id: str, turn_id: str) -> Sequence[Brake]: ...
    def is_in_force(self, session_id: str, brake_id: str) -> bool: ...
    def of_turns(self, after_row: int, limit: int) -> Sequence[tuple[int, Brake]]: ...
    def close(self, after_row: int, last_row: int) -> int: ...


class Brakes(Protocol):
    """What was promised to keep turns from changing anything. Fitted by `people.brakes.BrakeDesk`.

    record_taken   the turn took a flag of its session when it became live
    lift           a newer word on its readiness takes the place of that flag
    restore        put back what Redis has lost of a turn's brakes; how many that were, cancels always among them
    """

    def record_taken(self, session_id: str, flag_id: str, turn_id: str) -> None: ...
    def lift(self, session_id: str, turn_id: str) -> None: ...
    def restore(self, session_id: str, turn_id: str) -> int: ...


# Turns that calls start.


class ChildTurns(Protocol):
    """Fitted by `people.children.ChildDesk`.

    start             (`STARTED`, child turn id) or (`REFUSED`, why). The same call again is the same child
    cancel_children   their turn is over, or their call could not park
    deliver           brings a child's result to the call that waits for it
    """

    def start(self, claim: CallClaim, child: ChildTurn) -> tuple[str, str]: ...
    def cancel_children(self, turn_ids: Sequence[str]) -> None: ...
    def deliver(self, request: TurnRequest, result: TurnResult) -> str: ...


# Those who watch tasks, and hear here of what no task of its own did.


class TaskEvents(Protocol):
    """Tells of what was done without a doorbell of its own. Fitted by `tasks.task_events.TaskEvents`.

    turn         the sweeper ended a turn
    call         the sweeper gave an attempt of a call up, or found it lost; `rung_again_ms` as `Calls` tells it
    step_began, step_ended   a visit went on with this step of the finalizer
    """

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None: ...
    def call(self, ref: CallRef, attempt: int, tool: str, did: str, rung_again_ms: int | None) -> None: ...
    def step_began(self, claim: FinalStepClaim) -> None: ...
    def step_ended(self, claim: FinalStepClaim, did: str, took_s: float) -> None: ...

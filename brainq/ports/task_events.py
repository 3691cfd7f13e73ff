"""Those who watch tasks, and hear here of what no task of its own did."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.claim import CallRef, StepClaim


class TaskEvents(Protocol):
    """Tells of what was done without a doorbell of its own. Fitted by `tasks.events.TaskEvents`.

    turn         the sweeper ended a turn
    call         the sweeper gave an attempt of a call up, or found it lost; `rung_again_ms` as `Calls` tells it
    step_began, step_ended   a visit went on with this step of the finalizer
    """

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None: ...
    def call(self, ref: CallRef, attempt: int, tool: str, did: str, rung_again_ms: int | None) -> None: ...
    def step_began(self, claim: StepClaim) -> None: ...
    def step_ended(self, claim: StepClaim, did: str, took_s: float) -> None: ...

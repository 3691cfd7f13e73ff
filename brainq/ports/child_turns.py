"""Turns that calls start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.child_turn import ChildTurn
from brainq.contracts.claim import CallClaim, CallRef
from brainq.contracts.turn import TurnRequest, TurnResult


class ChildTurns(Protocol):
    """Fitted by `people.children.ChildDesk`.

    start             (`STARTED`, child turn id) or (`REFUSED`, why). The same call again is the same child
    stop              the call could not park, because its turn no longer wants it: nor does anybody want the child
    cancel_children   their turn is over
    check_parent      stops a child whose parent call no longer waits for it; True when it did so
    deliver           brings a child's result to the call that waits for it
    """

    def start(self, claim: CallClaim, child: ChildTurn) -> tuple[str, str]: ...
    def cancel_children(self, turn_ids: Sequence[str]) -> None: ...
    def check_parent(self, session_id: str, turn_id: str, parent: CallRef) -> bool: ...
    def deliver(self, request: TurnRequest, result: TurnResult) -> str: ...

"""What SQL kept of a turn, given back to Redis with the turn itself: brakes, and input that was accepted."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.hold import HoldPolicy, HoldSpec
from brainq.contracts.mailbox import TurnInput

BrakeKind = Literal["hold", "flag", "cancel"]
"""`flag`: a readiness flag of a session, until a turn takes it, and of that turn from then on."""


class Brake(Wire):
    """A brake that stands, as SQL has it. `left_s` is what is left of its time, by SQL's clock: 0 or less when it is
    up."""

    kind: BrakeKind
    id: str
    session_id: str
    turn_id: str | None
    reason: str
    on_timeout: HoldPolicy
    timeout_s: float
    left_s: float

    @property
    def hold(self) -> HoldSpec:
        """The brake as a hold with the time that is left."""
        return HoldSpec(
            id=self.id, reason=self.reason, timeout_s=max(0.0, self.left_s), on_timeout=self.on_timeout
        )


class Kept(Wire):
    """What SQL knows of a turn that Redis may have lost.

    brakes   of the turn, and the flags of its session that no turn has taken, in the order they were promised
    inputs   that were accepted and that a step of the turn has read or will read, in the order they came
    """

    brakes: tuple[Brake, ...] = ()
    inputs: tuple[TurnInput, ...] = ()


NOTHING_KEPT = Kept()


def cancel_id(turn_id: str) -> str:
    """The id of a turn's cancel among its session's brakes: a turn has one."""
    return f"cancel:{turn_id}"

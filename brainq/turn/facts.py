"""TurnFacts: what a decision about a turn is made from, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.status import Awaits
from brainq.contracts.turn import TurnKind
from brainq.contracts.view import TurnView


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """A live turn at one moment.

    remaining_ms    until its deadline
    step            the last one that was committed
    steps_max       the budget's
    lost_reason     why it cannot go on, where Redis lost its state
    lost_attempts   workers that it lost since it last went on
    died_alone, died_how   how many of them died while they worked on it alone, and how the last of those did
    failed_calls    calls of its last step that did not succeed
    reflected_step  the step whose reflection was tried last
    compacted       its history was compacted in this turn
    """

    awaits: Awaits
    remaining_ms: int
    step: int
    steps_max: int
    kind: TurnKind = "chat"
    cancel: bool = False
    cancel_reason: str = ""
    lost_reason: str = ""
    lost_attempts: int = 0
    died_alone: int = 0
    died_how: str = ""
    failed_calls: int = 0
    reflected_step: int = 0
    compacted: bool = False


def facts_of(view: TurnView) -> TurnFacts:
    return TurnFacts(
        awaits=view.awaits,
        remaining_ms=view.remaining_ms,
        step=view.step,
        steps_max=view.steps_max,
        kind=view.request.kind,
        cancel=view.cancel,
        cancel_reason=view.cancel_reason,
        lost_reason=view.lost_reason,
        lost_attempts=view.lost_attempts,
        died_alone=view.died_alone,
        died_how=view.died_how,
        failed_calls=view.failed_calls,
        reflected_step=view.reflected_step,
        compacted=view.compacted,
    )

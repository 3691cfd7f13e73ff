"""Faults: each is prepared, injected and healed, and shows that it fired."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from lab.faults.effects import NotSeen, wait_for
from lab.faults.load import Submitted
from lab.faults.stage import Stage


@dataclass(frozen=True, slots=True)
class Pace:
    """How long what lasts is to last: seconds of an outage, of how long a worker is frozen, of how long something is
    short, and of a long outage."""

    outage_s: float = 6.0
    frozen_s: float = 15.0
    short_s: float = 12.0
    away_s: float = 75.0
    pieces: int = 10
    """How often what is repeated is done in one fault: resets, lost replies."""


QUICK = Pace(outage_s=2.0, frozen_s=12.0, short_s=5.0, away_s=20.0, pieces=4)


class Fault(ABC):
    """One injection; a new object each time. `name` is for the command line, `title` for the table.

    kind        of stage
    own_stage   it leaves the stage unfit for a second one
    holds       `prepare` holds a worker until then
    completes   every turn has to end as completed
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str] = "plain"
    own_stage: ClassVar[bool] = False
    holds: ClassVar[bool] = False
    completes: ClassVar[bool] = False

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.began = 0.0
        self.unknown = 0  # of calls beside the shop's writes

    @classmethod
    def why_not(cls) -> str:
        """Return why the fault cannot be injected on this machine, or "" if it can."""
        return ""

    def prepare(self, stage: Stage) -> None:  # noqa: B027
        """Prepare the stage for the fault."""

    @abstractmethod
    def inject(self, stage: Stage) -> None:
        """Inject the fault. If it lasts for a time, that time is over when this returns."""

    def heal(self, stage: Stage) -> None:  # noqa: B027
        """Restore what a supervisor or an operator would restore. It is called whatever `inject` did."""

    @abstractmethod
    def fired(self, stage: Stage) -> int:
        """Return how often the fault fired, by exit codes, counters, or refusals. Returns 0 if it did not fire."""

    @classmethod
    def losses(cls, stage: Stage, submitted: Submitted) -> Counter[str]:
        """What these turns have lost that is documented to be lost, by its name; it is made good as documented."""
        return Counter()

    def recovery_s(self, stage: Stage) -> list[float]:
        """Return the seconds to the end of each turn that was live at the fault or came before the fault was over.

        They count from the fault, or from the turn's submit if that was later.
        """
        found: list[float] = []
        for turn, since in stage.producer.live_since(self.began).items():
            try:
                found.append(stage.effects.wait_seen("ended", turn)["at"] - since)
            except NotSeen:
                continue  # whether it is lost is judged later, by its result
        return found

    def strike(self, stage: Stage) -> None:
        """Inject the fault and heal it. `began` is the time of the injection, by time.monotonic()."""
        self.began = time.monotonic()
        try:
            self.inject(stage)
        finally:
            self.heal(stage)


def wait_turns_end(stage: Stage, count: int = 1) -> None:
    """Wait until this many more turns have ended, which shows that the stage works."""
    before = len(stage.effects.ended())
    wait_for(lambda: len(stage.effects.ended()) >= before + count, f"{count} turns end")

"""ThinkingManager: when a turn stops for a moment to look back at itself, and what its level asks of every step.

Whether it does follows from the level, the last step, how many of its calls failed and which step was reflected
on last. All of that is in the turn's state, so every process comes to the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from brainq.contracts.brain import ThinkLevel

PERIODS: dict[ThinkLevel, int | None] = {
    ThinkLevel.OFF: None,
    ThinkLevel.LOW: 8,  # past what most turns need: only long ones pay for it
    ThinkLevel.MEDIUM: 4,
    ThinkLevel.HIGH: 2,
}
"""Level -> after every how many steps a turn reflects, whether or not a call failed."""

PREFIXES: dict[ThinkLevel, str] = {
    ThinkLevel.OFF: "",
    ThinkLevel.LOW: "Before you act, think: what is asked, and which one step brings it nearer?",
    ThinkLevel.MEDIUM: (
        "Think before each step: what do you know, what is missing, and which tool finds it? After each result check "
        "whether it is what you expected, and change your plan if it is not."
    ),
    ThinkLevel.HIGH: (
        "Think hard. Plan before you act: list what is asked and the steps to it. Before each step weigh another way. "
        "After each result compare it with the plan, and change the plan where they differ. Before you answer check "
        "that every part of the request is done, and that a result shows each thing you claim."
    ),
}
"""Level -> what follows the system prompt of each step, before the runtime's metadata."""


def should_reflect(level: ThinkLevel, step: int, failed_calls: int, reflected_step: int = 0) -> bool:
    """Whether to reflect before the step that follows `step`.

    step             the step whose calls have just ended; 0 before the first one
    failed_calls     calls of that step that did not succeed
    reflected_step   the step whose reflection was tried last: a step is reflected on once
    """
    period = PERIODS[level]
    if period is None or step < 1 or step <= reflected_step:
        return False
    return failed_calls > 0 or step % period == 0


@dataclass(frozen=True, slots=True)
class ThinkingManager:
    """`should_reflect` for a level, from the start of a turn on. Frozen: there is nothing to share or to lose.

    level         a ThinkLevel or its word; ValueError for another one
    turn_number   which turn of its session this is, counted from 1; 0: no turn yet
    """

    level: ThinkLevel | str = ThinkLevel.OFF
    turn_number: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", ThinkLevel(self.level))

    @property
    def reflects(self) -> bool:
        """Whether it ever does; what it would be asked with need not be worked out otherwise."""
        return self.level is not ThinkLevel.OFF

    def on_turn_start(self, turn_number: int) -> ThinkingManager:
        """The manager for this turn of the session. Redis counts the turns; ValueError for a number under 1."""
        if turn_number < 1:
            raise ValueError(f"turn_number={turn_number} must be 1 or more; turns are counted from 1")
        return replace(self, turn_number=turn_number)

    def should_reflect(self, step: int, failed_calls: int, reflected_step: int = 0) -> bool:
        """See the function of this name."""
        return should_reflect(ThinkLevel(self.level), step, failed_calls, reflected_step)

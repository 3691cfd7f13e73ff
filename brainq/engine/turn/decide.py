"""The decision about a turn's next action. It is a pure function of the known facts and the time."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.brain import ThinkLevel
from brainq.contracts.status import Awaits, Ending, StopReason
from brainq.contracts.turn import TurnKind
from brainq.contracts.view import TurnView
from brainq.engine.turn.reflection import ThinkingManager

MAX_QUARANTINE_DEATHS = 2  # of processes that worked on this turn alone; a single death may be an accident
MAX_LOST_WORKERS = 8  # workers that a turn lost without progress; the last of them worked on this turn alone
LIMIT_HINT = "Your next message lets me go on from here; a higher limit lets one turn do more."
FALLBACK_TEXTS = {
    StopReason.DEADLINE: "I ran out of time before I could finish this.",
    StopReason.WAITED: "I was not begun in the time that this could wait.",
    StopReason.MAX_STEPS: "I used up the steps allowed for this turn (max_steps) before I could finish. " + LIMIT_HINT,
    StopReason.MAX_TOTAL_TOKENS: (
        "I used up the tokens allowed for this turn (max_total_tokens) before I could finish. " + LIMIT_HINT
    ),
    StopReason.MAX_COST: (
        "I used up the money allowed for this turn (max_cost_usd) before I could finish. " + LIMIT_HINT
    ),
    StopReason.EMPTY_REPLY: "I could not produce a response.",
    StopReason.LENGTH: "My reply was cut off before its first word.",
    StopReason.FILTERED: "A content filter stopped my reply.",
    StopReason.INVALID_OUTPUT: "I could not give my answer in the form that was asked for.",
    StopReason.CANCELLED: "",
    StopReason.MODEL_ERROR: "",
    StopReason.LIMITED: "",
    StopReason.LOST: "",
    StopReason.INTERNAL_ERROR: "",
}
NEVER_REFLECTS = ThinkingManager(ThinkLevel.OFF)


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """The facts about a live turn at one moment, from which the next decision is made.

    remaining_ms        the time until its deadline
    step                the last committed step
    steps_max           the step limit of the budget
    lost_reason         why it cannot continue, if Redis has lost its state; otherwise ""
    lost_attempts       the number of workers lost since its last progress
    quarantine_deaths   the number of those that died in quarantine
    death_reason        how the last of those died
    failed_calls        the number of calls of the last step that did not succeed
    reflected_step      the last step for which a reflection was tried
    compacted           whether the history was compacted in this turn
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
    quarantine_deaths: int = 0
    death_reason: str = ""
    failed_calls: int = 0
    reflected_step: int = 0
    compacted: bool = False


def turn_facts(view: TurnView) -> TurnFacts:
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
        quarantine_deaths=view.quarantine_deaths,
        death_reason=view.died_how,
        failed_calls=view.failed_calls,
        reflected_step=view.reflected_step,
        compacted=view.compacted,
    )


@dataclass(frozen=True, slots=True)
class Think:
    """The decision to call the model. `why` is for people."""

    why: str


@dataclass(frozen=True, slots=True)
class End:
    """The decision to end the turn. `why` is for people, and `error` goes into the result of a failed turn."""

    ending: Ending
    stop_reason: StopReason
    why: str
    error: str = ""
    standard_text: str = ""

    @property
    def text(self) -> str:
        return self.standard_text or FALLBACK_TEXTS[self.stop_reason]


@dataclass(frozen=True, slots=True)
class Wait:
    """The decision to do nothing now. `why` names what the turn waits for."""

    why: str


@dataclass(frozen=True, slots=True)
class Reflect:
    """The decision to reflect before the next step. `why` is for people."""

    why: str


@dataclass(frozen=True, slots=True)
class Compact:
    """The decision to replace older messages of the session by a summary, which is all that a compaction turn does.
    `why` is for people."""

    why: str


Decision = Think | Reflect | Compact | End | Wait

COMPACTED = End(
    Ending.COMPLETED, StopReason.ANSWERED, "it is compacted", standard_text="The conversation was compacted."
)

NOTHING_TO_COMPACT = End(
    Ending.COMPLETED,
    StopReason.ANSWERED,
    "there is nothing to compact",
    standard_text="There was nothing to compact: the conversation is short, or its newest messages are all there is.",
)


def decide(facts: TurnFacts, thinking: ThinkingManager = NEVER_REFLECTS) -> Decision:
    """Return the next decision. They are checked in this order: cancel, deadline, what the turn waits for, losses,
    limits, reflection, next step."""
    if facts.cancel:
        return End(Ending.CANCELLED, StopReason.CANCELLED, "it was cancelled", facts.cancel_reason)
    if facts.remaining_ms <= 0:
        return End(Ending.TIMED_OUT, StopReason.DEADLINE, "its deadline has passed")
    if facts.awaits is not Awaits.COORDINATOR:
        return Wait(f"it waits for {facts.awaits}")
    if facts.lost_reason:
        return End(Ending.FAILED, StopReason.LOST, "Redis lost its state", facts.lost_reason)
    if facts.quarantine_deaths >= MAX_QUARANTINE_DEATHS:
        return End(
            Ending.FAILED,
            StopReason.LOST,
            "it kills the process that works on it",
            f"quarantined: the process that worked on this turn, and on nothing else, {facts.death_reason}, "
            f"{facts.quarantine_deaths} times; look at what its system prompt, callbacks and provider do",
        )
    if facts.lost_attempts >= MAX_LOST_WORKERS:
        return End(
            Ending.FAILED,
            StopReason.LOST,
            "its coordinators kept dying",
            f"quarantined: {facts.lost_attempts} workers were lost one after the other while they worked on it",
        )
    if facts.kind == "compact":
        return COMPACTED if facts.compacted else Compact("the turn only compacts its session")
    next_step = facts.step + 1
    if next_step > facts.steps_max:
        return _all_steps_used(facts.steps_max)
    if thinking.reflects and thinking.should_reflect(facts.step, facts.failed_calls, facts.reflected_step):
        return Reflect(f"a reflection on step {facts.step} is next")
    return Think(f"step {next_step} of {facts.steps_max} is next")


def _all_steps_used(steps_max: int) -> End:
    text = f"I used all {steps_max} steps allowed for this turn (max_steps) before I could finish. {LIMIT_HINT}"
    return End(
        Ending.COMPLETED, StopReason.MAX_STEPS, f"all {steps_max} steps are used (max_steps)", standard_text=text
    )


BUDGET_ENDS = {
    "steps": End(Ending.COMPLETED, StopReason.MAX_STEPS, "all steps are used"),
    "tokens": End(Ending.COMPLETED, StopReason.MAX_TOTAL_TOKENS, "the next step could exceed max_total_tokens"),
    "cost": End(Ending.COMPLETED, StopReason.MAX_COST, "the next step could exceed max_cost_usd"),
}

"""The order of a brain's finalizer steps: which step comes next, and which steps the result depends on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from brainq.engine.brain.brain import Brain
from brainq.engine.finalize.steps import FIRST_STEP, FinalStep, RecordDecision, StepContext, wants_citations

RESULT = "result"  # every step after it needs it
DECISION = RecordDecision.name


class StepOrder:
    """The configured steps of one brain, in order."""

    def __init__(self, steps: Sequence[FinalStep]) -> None:
        self._steps = {step.name: step for step in steps}
        self._names = [step.name for step in steps]
        self._joined = {step.name: _joined_to(step, steps[at + 1 :]) for at, step in enumerate(steps)}
        self._leading: set[str] = set()
        needed = [RESULT]
        while needed:
            self._leading.add(needed[-1])
            needed += [name for name in self.needs(needed.pop()) if name not in self._leading]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the steps' names, in order."""
        return tuple(self._names)

    def get(self, name: str) -> FinalStep | None:
        """Return the step of this name, or None if the brain does not have it."""
        return self._steps.get(name)

    def needs(self, name: str) -> Sequence[str]:
        """Return the names in the step's `needs`. They never include the result, which every step after it needs."""
        return getattr(self._steps.get(name), "needs", ())

    def leads_to_result(self, name: str) -> bool:
        """Return whether the result depends on this step. If it fails, the chain retries it before it continues."""
        return name in self._leading

    def next_step(self, name: str, done: Collection[str] = ()) -> str:
        """Return the next step that is not in `done`, or "" after the last one.

        After an unknown step comes the log, so that a chain that another build began is still recorded and delivered.
        """
        if name not in self._steps:
            return "log" if "log" in self._steps else ""
        following = self._names[self._names.index(name) + 1 :]
        return next((step for step in following if step not in done), "")

    def has_result(self, first: str, last: str) -> bool:
        """Return whether the result is among the steps from `first` to `last`."""
        names = self._names
        return first in names and RESULT in names[names.index(first) : names.index(last) + 1]

    def joined_to(self, context: StepContext) -> Sequence[FinalStep]:
        """Return the steps that may run under the claim of this one: brainq's own steps that follow it, up to the
        result.

        There are none after a loss or a failure, so that the next one shows which step causes it; none if the text
        changed and must be read again; and none if a middleware watches the steps.
        """
        changed = context.claim.step == FIRST_STEP and wants_citations(context)
        return () if changed or not _may_share(context) else self._joined.get(context.claim.step, ())

    def beside(self, context: StepContext) -> Sequence[str]:
        """Return the steps whose rows the log may write with its own: the decision, unless the brain has a decision
        store."""
        is_ours = DECISION in self._steps and context.brain.decisions is None
        return (DECISION,) if is_ours and _may_share(context) else ()


def _may_share(context: StepContext) -> bool:
    """Return whether steps may share a claim: no step of the chain has failed or was lost, and no middleware watches
    them."""
    claim, hooks = context.claim, context.brain.hooks
    is_first_try = claim.tries == 1 and not claim.lost and not claim.done_before
    return is_first_try and not hooks.before_final_step and not hooks.after_final_step


def _joined_to(step: FinalStep, following: Sequence[FinalStep]) -> Sequence[FinalStep]:
    leading = takewhile(lambda each: getattr(each, "is_joined", False), [step, *following])
    return [each for each in leading if each is not step] if step.name != RESULT else ()


@dataclass(frozen=True, slots=True)
class FinalizerRuntime:
    """The parts of the finalizer that differ between brains."""

    brain: Brain
    order: StepOrder

    @property
    def redacts(self) -> bool:
        """Return whether SQL must not keep content of the brain's turns."""
        return self.brain.redact_logs

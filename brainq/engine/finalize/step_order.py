"""The order of a brain's finalizer steps: which one follows, and which the result waits for. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from brainq.engine.brain.brain import Brain
from brainq.engine.finalize.steps import FIRST_STEP, FinalStep, RecordDecision, StepContext, wants_citations

RESULT = "result"  # every step behind it needs it
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
        """Return the step of this name; None if the brain has none."""
        return self._steps.get(name)

    def needs(self, name: str) -> Sequence[str]:
        """Return the steps that this one says it needs. The result, which all behind it need, is not among them."""
        return getattr(self._steps.get(name), "needs", ())

    def leads_to_result(self, name: str) -> bool:
        """Return whether the result goes out only after this step. Such a step is tried again in the chain; the chain
        goes on without any other that failed."""
        return name in self._leading

    def next_step(self, name: str, done: Collection[str] = ()) -> str:
        """Return the step that follows and is not among those `done` before; "" after the last.

        An unknown step is followed by the log: a chain that a newer or older release began is still recorded and
        delivered, and what it had done before is not done twice.
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
        """Return the steps that may be done under the claim of this one: brainq's own that follow it, up to the result.

        There are none if the step failed or was lost before, because it must be seen which one does so; if it changed
        the text, which is then read again; and if a middleware, code of the brain, watches each step.
        """
        changed = context.claim.step == FIRST_STEP and wants_citations(context)
        return () if changed or not _may_share(context) else self._joined.get(context.claim.step, ())

    def beside(self, context: StepContext) -> Sequence[str]:
        """Return the steps whose rows the log may write with its own: the decision's, which comes later, unless the
        brain keeps decisions elsewhere. There are none for the reasons of `joined_to`."""
        is_ours = DECISION in self._steps and context.brain.decisions is None
        return (DECISION,) if is_ours and _may_share(context) else ()


def _may_share(context: StepContext) -> bool:
    """Return whether no step of the chain has failed so far, and no middleware watches the steps."""
    claim, hooks = context.claim, context.brain.hooks
    is_first_try = claim.tries == 1 and not claim.lost and not claim.done_before
    return is_first_try and not hooks.before_final_step and not hooks.after_final_step


def _joined_to(step: FinalStep, following: Sequence[FinalStep]) -> Sequence[FinalStep]:
    leading = takewhile(lambda each: getattr(each, "is_joined", False), [step, *following])
    return [each for each in leading if each is not step] if step.name != RESULT else ()


@dataclass(frozen=True, slots=True)
class FinalizerRuntime:
    """What differs between the ended turns of one brain and those of another."""

    brain: Brain
    order: StepOrder

    @property
    def redacts(self) -> bool:
        """Return whether SQL keeps no content of the brain's turns."""
        return self.brain.redact_logs

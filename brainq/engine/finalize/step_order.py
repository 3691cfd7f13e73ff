"""The order of a brain's finalizer steps: what follows what, and which may go ahead of one that fails. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from brainq.contracts.claim import FinalStepClaim
from brainq.engine.brain.brain import Brain
from brainq.engine.finalize.steps import FIRST_STEP, FinalStep, StepContext, wants_citations

RESULT = "result"  # what comes behind it needs it


@dataclass(frozen=True, slots=True)
class StepHistory:
    """What went ahead of a step that is to be tried again.

    done     names of steps that ended: they did their part, or were given up
    failed   tries, and workers lost, of those that failed
    """

    done: frozenset[str] = frozenset()
    failed: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @classmethod
    def read(cls, text: str) -> StepHistory:
        """From `text`: by step `[tries, lost]`, and `null` for one that ended; "" where nothing went ahead."""
        if not text:
            return _NOTHING
        found: dict[str, list[int] | None] = json.loads(text)
        return cls(
            frozenset(name for name, counts in found.items() if counts is None),
            {name: (counts[0], counts[1]) for name, counts in found.items() if counts is not None},
        )

    @property
    def text(self) -> str:
        return json.dumps({**dict.fromkeys(sorted(self.done)), **self.failed})

    def tries(self, step: str) -> int:
        return self.failed.get(step, (0, 0))[0]

    def lost(self, step: str) -> int:
        return self.failed.get(step, (0, 0))[1]

    def with_done(self, step: str) -> StepHistory:
        failed = {name: counts for name, counts in self.failed.items() if name != step}
        return StepHistory(self.done | {step}, failed)

    def with_failed(self, step: str, tries: int, lost: int) -> StepHistory:
        return replace(self, failed={**self.failed, step: (tries, lost)})


_NOTHING = StepHistory()


def with_earlier_tries(claim: FinalStepClaim) -> FinalStepClaim:
    """With the tries, and the lost workers, that the step had ahead of others."""
    if not claim.past and not claim.base:
        return claim
    past = StepHistory.read(claim.past)
    before = past.tries(claim.step)
    return replace(claim, tries=before + (1 if claim.base else claim.tries), lost=past.lost(claim.step) + claim.lost)


class StepOrder:
    """The configured steps of one brain, in order."""

    def __init__(self, steps: Sequence[FinalStep]) -> None:
        self._steps = {step.name: step for step in steps}
        self._names = [step.name for step in steps]
        self._joined = {step.name: _joined_to(step, steps[at + 1 :]) for at, step in enumerate(steps)}

    @property
    def first(self) -> str:
        return self._names[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def get(self, name: str) -> FinalStep | None:
        return self._steps.get(name)

    def next_step(self, name: str, past: StepHistory | None = None) -> str:
        """The step that follows and has not ended before, or "" after the last. A step this brain does not know is
        followed by the log: a chain that was rung by a newer or older release is still recorded and delivered, and what
        it had done before is not done twice."""
        if name not in self._steps:
            return "log" if "log" in self._steps else ""
        done = past.done if past is not None else ()
        return next((step for step in self.steps_after(name) if step not in done), "")

    def ahead_of(self, base: str, past: StepHistory, last: str = "", *, untried: bool = False) -> str:
        """The step that goes ahead of `base` next, which is to be tried again; "" when this round is over.

        last      the step that went ahead before in this round; "": none has
        untried   only one that has not failed yet

        A step goes when it needs none that has not ended. Each goes once a round.
        """
        waiting = {base}
        is_reached = not last
        for name in self.steps_after(base):
            may_go = is_reached and name not in past.done and not waiting.intersection(self._needs(name))
            if may_go and not (untried and name in past.failed):
                return name
            if name not in past.done:
                waiting.add(name)
            is_reached = is_reached or name == last
        return ""

    def joined_to(self, context: StepContext) -> Sequence[FinalStep]:
        """What follows this step and may be done under its claim: steps of brainq's own, up to the result.

        None where the step failed or was lost before, for it is to be seen which of them does so; where it has changed
        the text, which is read again then; and where a middleware, the brain's code, is told of each.
        """
        claim, hooks = context.claim, context.brain.hooks
        is_first_try = claim.tries == 1 and not claim.lost and not claim.base and not claim.past
        if not is_first_try or hooks.before_final_step or hooks.after_final_step:
            return ()
        changed = claim.step == FIRST_STEP and wants_citations(context)
        return () if changed else self._joined.get(claim.step, ())

    def steps_after(self, name: str) -> Sequence[str]:
        """The steps that follow, in order; none after one that this brain does not know."""
        return self._names[self._names.index(name) + 1 :] if name in self._steps else ()

    def _needs(self, name: str) -> Sequence[str]:
        needs: Sequence[str] = getattr(self._steps[name], "needs", ())
        return (*needs, RESULT) if name in self.steps_after(RESULT) else needs


def _joined_to(step: FinalStep, following: Sequence[FinalStep]) -> Sequence[FinalStep]:
    leading = takewhile(lambda each: getattr(each, "is_joined", False), [step, *following])
    return [each for each in leading if each is not step] if step.name != RESULT else ()


@dataclass(frozen=True, slots=True)
class FinalizerRuntime:
    """All that differs between the ended turns of one brain and those of another."""

    brain: Brain
    order: StepOrder

    @property
    def redacts(self) -> bool:
        return self.brain.redact_logs

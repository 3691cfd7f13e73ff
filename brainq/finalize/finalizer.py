"""TurnFinalizer: run one step of a chain, and ring the next."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from brainq.beats import Beats
from brainq.contracts.claim import StepClaim
from brainq.contracts.did import Did, Failed
from brainq.finalize.ended import EndedTurns
from brainq.finalize.order import StepOrder
from brainq.finalize.parts import FinalParts
from brainq.finalize.ports import Chain, FinalStep, Parents, Records, StepContext
from brainq.finalize.result import result_of
from brainq.observe.logs import logger
from brainq.providers.within import within

log = logger("brainq.finalize")

FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 60.0
LIMIT_S = 60.0  # of a step that runs code of the brain's; a step may say otherwise by `limit_s`
MAX_TRIES = 8  # then the step is dead: seen in `show`, and the chain goes on without it
NEVER_DEAD = frozenset({"log", "result"})  # SQL must learn of every ending, and every caller get a result


def retry_after_s(tries: int, chance: float) -> float:
    """Exponential backoff with full jitter in its upper half; `chance` is in [0, 1)."""
    longest = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** (tries - 1))
    return longest * (0.5 + chance / 2)


class TurnFinalizer:
    """Runs finalizer steps. Holds no state of its own: any process may run any step of any turn."""

    def __init__(
        self,
        *,
        owner: str,
        brain: Any,
        order: StepOrder,
        chain: Chain,
        records: Records,
        beats: Beats,
        parts: FinalParts | None = None,
        parents: Parents | None = None,
        max_tries: int = MAX_TRIES,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._owner = owner
        self._brain = brain
        self._order = order
        self._chain = chain
        self._records = records
        self._beats = beats
        self._max_tries = max_tries
        self._parts = parts
        self._parents = parents
        self._chance = chance
        self._read = EndedTurns(chain)

    @property
    def first_step(self) -> str:
        return self._order.first

    def run(self, session_id: str, turn_id: str, step_name: str) -> str:
        """Answer one doorbell. Returns what was done, in a word, for logs and tests."""
        claim = self._chain.claim(session_id, turn_id, step_name, self._owner)
        if isinstance(claim, str):
            log.debug("doorbell dropped", turn_id=turn_id, step=step_name, why=claim)
            return f"dropped: {claim}"
        step = self._order.get(step_name)
        if step is None:
            log.warning("step is not known here", turn_id=turn_id, step=step_name)
            return self._go_on(claim)

        with self._beats.hold(lambda: self._chain.beat(claim), _ignore):
            try:
                if claim.tries > self._max_tries and claim.step not in NEVER_DEAD:
                    raise RuntimeError(f"its worker died, or was cut off, in each of {claim.tries - 1} tries")
                self._run(step, claim)
            except Exception as failure:
                return self._failed(claim, failure)
        if claim.tries > 1:
            self._note_done(claim)
        return self._go_on(claim)

    def _run(self, step: FinalStep, claim: StepClaim) -> None:
        context = StepContext(
            claim,
            lambda: self._read.turn(claim),
            self._chain,
            self._records,
            self._brain,
            self._parts,
            self._parents,
        )
        limit_s: float | None = getattr(step, "limit_s", LIMIT_S)
        if limit_s is None:
            step.run(context)
        else:
            within(limit_s, f"step {step.name!r}", lambda: step.run(context))

    def deliver(self, session_id: str, turn_id: str) -> str:
        """Send the result out though the chain has not come to it: its steps fail, or nobody runs them."""
        turn = self._chain.ended(session_id, turn_id)
        if turn is None:
            return "gone"
        why = turn.failing_error or "no finalizer worker has taken it up"
        result = result_of(turn, warnings=(f"sent before the finalizer was done: {why}",))
        return self._chain.publish(result).lower()

    def _failed(self, claim: StepClaim, failure: Exception) -> str:
        error = f"{claim.step}: {type(failure).__name__}"
        dead = claim.tries >= self._max_tries and claim.step not in NEVER_DEAD
        log.error("step failed", failure=failure, turn_id=claim.turn_id, step=claim.step, tries=claim.tries)
        redact = bool(getattr(self._brain, "redact_logs", False))
        said = type(failure).__name__ if redact else f"{type(failure).__name__}: {failure}"[:2000]
        try:
            self._records.note_failure(claim, said, dead)
        except Exception as worse:
            # SQL itself is away, most likely. A step is given up only where people can see it: until then it is
            # tried again.
            dead = False
            log.warning(
                "failure not recorded", turn_id=claim.turn_id, step=claim.step, why=type(worse).__name__
            )
        seen = Failed.STEP_FAILED, type(failure).__name__
        if dead:
            return Did(self._go_on(claim), *seen)
        self._chain.retry(claim, retry_after_s(claim.tries, self._chance()), error)
        return Did("failed", *seen)

    def _note_done(self, claim: StepClaim) -> None:
        try:
            self._records.note_done(claim)
        except Exception as failure:
            # What people see of the step is behind by one try; the chain does not wait for that.
            log.warning(
                "end not recorded", turn_id=claim.turn_id, step=claim.step, why=type(failure).__name__
            )

    def _go_on(self, claim: StepClaim) -> str:
        return self._chain.go_on(claim, self._order.after(claim.step)).lower()


def _ignore(word: str) -> None:
    """A step that lost its lease finishes; what it writes to SQL commits once all the same."""

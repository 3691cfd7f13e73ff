"""JudgeRunner: what a worker does with one doorbell of `brainq.judges`."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brainq.beats import Beats
from brainq.by_brain import ByBrain
from brainq.contracts.did import Did, Failed
from brainq.contracts.judgement import Judge, JudgeCase, Judgement
from brainq.contracts.recorded import RecordedTurn
from brainq.contracts.usage import Spend, TokenUsage
from brainq.finalize.brain_judges import BrainJudges
from brainq.finalize.finalizer import MAX_TRIES, retry_after_s
from brainq.finalize.judges.case import judge_case
from brainq.finalize.judges.registry import judges_named, unknown_judge
from brainq.observe.content import keeping_out
from brainq.observe.logs import logger
from brainq.observe.turn_spans import judge_span
from brainq.ports.judgement_rows import JudgementRows
from brainq.providers.metering import metered
from brainq.providers.spent import spends_of
from brainq.providers.within import within

log = logger("brainq.finalize")

LIMIT_S = 60.0  # one judge, one turn; a model is given less, so that its fallback still has time
MOST_ERROR_CHARS = 2_000

NO_CONTENT = (
    "the turn's content is gone: Redis has let it go and SQL keeps none of it (redact_logs); judge sooner, or keep "
    "turns longer in Redis (BRAINQ_KEEP_TURN_S)"
)


@dataclass(eq=False, kw_only=True)
class JudgeRunner:
    """Runs one judge on one turn. Holds no state of its own: any process may run any judge of any turn.

    brains      what the judging of each brain's turns takes
    brain_of    the name of a turn's brain, by the turn's id
    recorded    a turn by session, turn and step key; None when its content is nowhere any more, or SQL kept it redacted
    places      how many judges run at once in this process
    limit_s     a judge that has not returned by then is abandoned in its thread, and tried again
    """

    brains: ByBrain[BrainJudges]
    brain_of: Callable[[str], str | None]
    rows: JudgementRows
    recorded: Callable[[str, str, str], RecordedTurn | None]
    beats: Beats
    lease_s: float
    limit_s: float = LIMIT_S
    max_tries: int = MAX_TRIES
    places: int = 4

    def __post_init__(self) -> None:
        self._free = threading.BoundedSemaphore(self.places)

    def run(self, session_id: str, turn_id: str, judge_name: str) -> str:
        """Answer one doorbell: `judged`, `failed` (it is tried again), `dead`, `dropped` or `later`.

        Raises what SQL and Redis raise; the row's lease then lapses, and the next doorbell finds it free.
        """
        if not self._free.acquire(blocking=False):
            return "later"  # the sweeper rings again: results must not wait behind slow judges
        try:
            tries = self.rows.claim(turn_id, judge_name, self.lease_s)
            if tries is None:
                return "dropped"
            with self.beats.renew(lambda: self._beat(turn_id, judge_name, tries), _ignore):
                return self._try(session_id, turn_id, judge_name, tries)
        finally:
            self._free.release()

    def _beat(self, turn_id: str, judge_name: str, tries: int) -> str:
        return "OK" if self.rows.beat(turn_id, judge_name, tries, self.lease_s) else "LOST"

    def _try(self, session_id: str, turn_id: str, judge_name: str, tries: int) -> str:
        if tries > self.max_tries:
            died = f"its worker died, or was cut off, in each of {tries - 1} tries"
            return self._give_up(turn_id, judge_name, tries, died)
        brain = self.brain_of(turn_id)
        work = self.brains.of(brain)
        if work is None:  # a worker that has it may come first to the next try
            error = f"its brain {brain!r} is none of this worker's: {', '.join(self.brains.names)}"
            return self._again(turn_id, judge_name, tries, error, "MissingBrain")
        judge = judges_named([judge_name], work.own, work.auxiliary)[judge_name]
        if judge is None:
            return self._give_up(turn_id, judge_name, tries, unknown_judge(judge_name, work.own))
        try:
            turn = self.recorded(session_id, turn_id, f"{turn_id}:judge:{judge_name}")
            if turn is None:
                return self._give_up(turn_id, judge_name, tries, NO_CONTENT)
            span = judge_span(session_id, turn_id, turn.traceparent, judge_name, tries)
            with span, keeping_out(work.redact), metered() as asked:
                judgement = self._judged(judge, judge_case(turn), work.redact)
        except Exception as failure:
            return self._failed(turn_id, judge_name, tries, failure, work.redact)
        spends = spends_of("judge", tuple(asked), work.price) or _said(judgement)
        self.rows.settle(turn_id, judge_name, judgement, spends)
        return "judged"

    def _judged(self, judge: Judge, case: JudgeCase, redact: bool) -> Judgement:
        found: Any = within(self.limit_s, f"judge {judge.name!r}", lambda: judge.judge(case))
        if not isinstance(found, Judgement):
            raise TypeError(
                f"judge {judge.name!r} returned a {type(found).__name__}; it must return a Judgement"
            )
        judgement = Judgement.model_validate(found.model_dump())  # one made without checks is checked here
        return judgement.model_copy(update={"reason": ""}) if redact else judgement

    def _failed(self, turn_id: str, judge_name: str, tries: int, failure: Exception, redact: bool) -> str:
        log.error("judge failed", failure=failure, turn_id=turn_id, judge=judge_name, tries=tries)
        kind = type(failure).__name__
        return self._again(turn_id, judge_name, tries, kind if redact else f"{kind}: {failure}", kind)

    def _again(self, turn_id: str, judge_name: str, tries: int, error: str, kind: str) -> str:
        """It is tried again, unless that was the last time."""
        seen = Failed.JUDGE_FAILED, kind
        if tries >= self.max_tries:
            return Did(self._give_up(turn_id, judge_name, tries, error), *seen)
        again_after_s = retry_after_s(tries, random.random())
        self.rows.fail(turn_id, judge_name, error[:MOST_ERROR_CHARS], again_after_s, dead=False, tries=tries)
        return Did("failed", *seen)

    def _give_up(self, turn_id: str, judge_name: str, tries: int, error: str) -> str:
        log.warning("judgement is dead", turn_id=turn_id, judge=judge_name)
        self.rows.fail(turn_id, judge_name, error[:MOST_ERROR_CHARS], 0.0, dead=True, tries=tries)
        return Did("dead", Failed.JUDGE_FAILED)


def _ignore(word: str) -> None:
    """Another try has the row: this one's score is written only if it comes first."""


def _said(judgement: Judgement) -> tuple[Spend, ...]:
    """What a judge of the brain's own says it used; nobody knows the price."""
    used = TokenUsage(input_tokens=judgement.input_tokens or 0, output_tokens=judgement.output_tokens or 0)
    return (Spend.of("judge", 0, judgement.model or "", used, None),) if used.total else ()

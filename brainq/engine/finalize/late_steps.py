"""Late steps: finalizer steps that run outside their turn's chain, as jobs in SQL or by a person's command.

A step becomes a job if it failed, lost its worker, needs such a step, or takes longer than the result waits. The chain
continues without it. Sweepers ring for jobs that are due, until the step is done or dead. What a step writes to SQL
still commits once with its own row, and callbacks get the same step key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.turn import LATE_FAILURE_WARNINGS
from brainq.contracts.view import EndedTurn
from brainq.engine.brain.brains import ByBrain
from brainq.engine.finalize.recall import NO_CONTENT, LateChain, Recall
from brainq.engine.finalize.step_order import FinalizerRuntime
from brainq.engine.finalize.steps import FinalStepRunner, StepContext, error_type_name, shown_failure
from brainq.engine.jobs import GivenUp, JobRunner, Postponed, TryFailed, job_key
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.processes.threads import ThreadCall

if TYPE_CHECKING:
    from brainq.adapters.sql.prepared import Record
    from brainq.adapters.sql.records import SqlRecords
    from brainq.adapters.sql.repositories.step_jobs import StepJobs
    from brainq.engine.people.children import ChildDesk

log = logger("brainq.finalize")
LATE_OWNER = "late"
WAITS_S = 1.0  # until it is checked again whether a step that another needs has ended
ELSEWHERE_S = 5.0  # until another worker may try the step that this one may not
MISSING_BRAIN_S = 300.0  # a deployment that brings a brain is rolled out in less


@dataclass(eq=False, kw_only=True)
class LateSteps:
    """The runner of steps outside their chain. It is stateless: any process may run any step of any turn."""

    brains: ByBrain[FinalizerRuntime]
    rows: StepJobs
    records: SqlRecords
    recall: Recall
    steps: FinalStepRunner
    jobs: JobRunner
    parents: ChildDesk | None = None

    def waits(self, turn_id: str, needs: Sequence[str]) -> bool:
        """Return whether one of the steps that a step needs is a job by now."""
        return bool(needs) and not set(needs).isdisjoint(self.rows.steps_of(turn_id))

    def open(self, claim: FinalStepClaim, tries: int, *, error: str | None = None, held: bool = False) -> None:
        """Make a job of a step. Raises what SQL raises: then the step stays in its chain.

        tries   that were made and have ended; with `held`, the last of them is under way in this process
        error   why the last one failed; None if it did not
        """
        after_s = self.jobs.lease_s if held else 0.0 if error is None else self.jobs.backoff.after_s(tries)
        self.rows.open(claim, tries, due_s=after_s, error=error)

    def finish(self, claim: FinalStepClaim, work: FinalizerRuntime, running: ThreadCall[None], limit_s: float) -> str:
        """Wait for a step that still runs after its chain has continued, and end its job."""
        return self._try(claim, lambda: self._end(claim, work, lambda: running.result(limit_s)))

    def answer(self, session_id: str, turn_id: str, step: str) -> str:
        """Answer a doorbell of a job. Returns what was done in a word, as `JobRunner.run` does.

        Raises what SQL raises; the job's lease then lapses, and the next doorbell finds it free.
        """
        job = self.rows.take(job_key(turn_id, step), self.jobs.lease_s)
        if job is None:
            return "dropped: stale"
        ids, lost = (session_id, turn_id, step, LATE_OWNER), job["lost"] - 1  # this try counts until it has ended
        claim = FinalStepClaim(*ids, fence=0, tries=job["tries"], sent=True, lost=lost, is_job=True)
        if lost:
            COUNTERS.add(m.LAPSED, "finalizer_step")
        return self._try(claim, lambda: self._run(claim, job))

    def run_claimed(self, claim: FinalStepClaim) -> None:
        """Run a step that another process has claimed, limits, and will settle. Raises what the step raises."""
        turn = self.recall.ended(claim.session_id, claim.turn_id)
        work = None if turn is None else self.brains.of(turn.request.brain)
        step = None if work is None else work.order.get(claim.step)
        if turn is None or work is None or step is None:
            raise LookupError(f"step {claim.step!r} of this turn is not known here")
        self.steps.run(step, self.context(claim, turn, work), bounded=False)

    def context(self, claim: FinalStepClaim, turn: EndedTurn, work: FinalizerRuntime) -> StepContext:
        """Return what a step is given outside its chain."""
        return StepContext(claim, lambda: turn, LateChain(self.recall), self.records, work.brain, self.parents)

    def _try(self, claim: FinalStepClaim, work: Callable[[], str]) -> str:
        did = self.jobs.run(job_key(claim.turn_id, claim.step), claim.tries, work)
        if did in ("dead", "failed"):
            COUNTERS.add(m.STEP_FAILURES, claim.step, "dead" if did == "dead" else "again")
        if did == "dead" and (warning := LATE_FAILURE_WARNINGS.get(claim.step)):
            self.recall.live.warn_later(claim.session_id, claim.turn_id, warning, applies=True)
        return did

    def _run(self, claim: FinalStepClaim, job: Record) -> str:
        turn = self.recall.ended(claim.session_id, claim.turn_id)
        if turn is not None and self.recall.is_gone(claim.session_id, claim.turn_id):
            raise GivenUp(NO_CONTENT)
        work = None if turn is None else self._work(turn, job)
        step = None if work is None else work.order.get(claim.step)
        if turn is None or work is None or step is None:
            # The turn was erased, or its brain has no such step any more.
            self.rows.remove(job_key(claim.turn_id, claim.step))
            return "dropped"
        if self.waits(claim.turn_id, work.order.needs(claim.step)):
            raise Postponed("it needs a step that is to be tried again", WAITS_S, "waits")
        return self._end(claim, work, partial(self.steps.run, step, self.context(claim, turn, work)))

    def _work(self, turn: EndedTurn, job: Record) -> FinalizerRuntime:
        """Return what the turn's brain does here. Raises Postponed if another process is to run the step."""
        brain = turn.request.brain
        work = self.brains.of(brain)
        if work is None and (job["now"] - job["created_at"]).total_seconds() > MISSING_BRAIN_S:
            raise GivenUp(f"its brain {brain!r} is not among {', '.join(self.brains.names)}")
        if work is None or not self.recall.live.may_finish(turn):
            raise Postponed("another build is to run it", ELSEWHERE_S, "passed")
        return work

    def _end(self, claim: FinalStepClaim, work: FinalizerRuntime, run: Callable[[], object]) -> str:
        """Run a try and end the job of a step that is done. Raises TryFailed if the try failed."""
        try:
            run()
        except Exception as failure:
            log.error("step failed", failure=failure, turn_id=claim.turn_id, step=claim.step, tries=claim.tries)
            raise TryFailed(shown_failure(failure, redact=work.redacts), error_type_name(failure)) from failure
        if claim.tries > 1:
            self.records.note_done(claim)
        self.rows.remove(job_key(claim.turn_id, claim.step))
        return "done"

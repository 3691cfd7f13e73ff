"""Late steps: finalizer steps that run outside their turn's chain, as jobs in SQL or by an operator's command.

A step becomes a job if it fails, loses its worker, takes too long, or needs a step that is a job. The chain continues
without it. Sweepers ring doorbells for due jobs until the step is done or dead. The step's SQL writes still commit
once, with its own row, and callbacks get the same step key.
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
WAITS_S = 1.0  # the time between checks whether a needed step has ended
ELSEWHERE_S = 5.0  # the delay before another worker may try a step that this one must not run
MISSING_BRAIN_S = 300.0  # the maximum time that a rollout with a new brain takes


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
        """Return whether one of the steps in `needs` is now a job."""
        return bool(needs) and not set(needs).isdisjoint(self.rows.steps_of(turn_id))

    def open(self, claim: FinalStepClaim, tries: int, *, error: str | None = None, held: bool = False) -> None:
        """Make a job of a step. Raises what SQL raises; the step then stays in its chain.

        tries   the tries that have ended; with `held`, the last of them is still running in this process
        error   the reason why the last try failed, or None if it did not
        """
        after_s = self.jobs.lease_s if held else 0.0 if error is None else self.jobs.backoff.after_s(tries)
        self.rows.open(claim, tries, due_s=after_s, error=error)

    def finish(self, claim: FinalStepClaim, work: FinalizerRuntime, running: ThreadCall[None], limit_s: float) -> str:
        """Wait for a step that still runs after its chain has continued, and end its job."""
        return self._try(claim, lambda: self._end(claim, work, lambda: running.result(limit_s)))

    def answer(self, session_id: str, turn_id: str, step: str) -> str:
        """Answer the doorbell of a job. Returns the outcome as a word, like `JobRunner.run`.

        Raises what SQL raises; the job's lease then lapses, and the next doorbell can claim it.
        """
        job = self.rows.take(job_key(turn_id, step), self.jobs.lease_s)
        if job is None:
            return "dropped: stale"
        ids, lost = (session_id, turn_id, step, LATE_OWNER), job["lost"] - 1  # this try counts as lost until it ends
        claim = FinalStepClaim(*ids, fence=0, tries=job["tries"], sent=True, lost=lost, is_job=True)
        if lost:
            COUNTERS.add(m.LAPSED, "finalizer_step")
        return self._try(claim, lambda: self._run(claim, job))

    def run_claimed(self, claim: FinalStepClaim) -> None:
        """Run a step that another process has claimed and will settle. Raises what the step raises."""
        turn = self.recall.ended(claim.session_id, claim.turn_id)
        work = None if turn is None else self.brains.of(turn.request.brain)
        step = None if work is None else work.order.get(claim.step)
        if turn is None or work is None or step is None:
            raise LookupError(f"step {claim.step!r} of this turn is not known here")
        self.steps.run(step, self.context(claim, turn, work), bounded=False)

    def context(self, claim: FinalStepClaim, turn: EndedTurn, work: FinalizerRuntime) -> StepContext:
        """Return the context of a step that runs outside its chain."""
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
            # The turn was erased, or its brain no longer has the step.
            self.rows.remove(job_key(claim.turn_id, claim.step))
            return "dropped"
        if self.waits(claim.turn_id, work.order.needs(claim.step)):
            raise Postponed("it needs a step that has not succeeded yet", WAITS_S, "waits")
        return self._end(claim, work, partial(self.steps.run, step, self.context(claim, turn, work)))

    def _work(self, turn: EndedTurn, job: Record) -> FinalizerRuntime:
        """Return the runtime of the turn's brain. Raises Postponed if another process must run the step."""
        brain = turn.request.brain
        work = self.brains.of(brain)
        if work is None and (job["now"] - job["created_at"]).total_seconds() > MISSING_BRAIN_S:
            raise GivenUp(f"its brain {brain!r} is not among {', '.join(self.brains.names)}")
        if work is None or not self.recall.live.may_finish(turn):
            raise Postponed("a worker of another build must run it", ELSEWHERE_S, "passed")
        return work

    def _end(self, claim: FinalStepClaim, work: FinalizerRuntime, run: Callable[[], object]) -> str:
        """Run a try, and remove the job if it succeeds. Raises TryFailed if it fails."""
        try:
            run()
        except Exception as failure:
            log.error("step failed", failure=failure, turn_id=claim.turn_id, step=claim.step, tries=claim.tries)
            raise TryFailed(shown_failure(failure, redact=work.redacts), error_type_name(failure)) from failure
        if claim.tries > 1:
            self.records.note_done(claim)
        self.rows.remove(job_key(claim.turn_id, claim.step))
        return "done"

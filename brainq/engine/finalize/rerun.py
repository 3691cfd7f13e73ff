"""Retries of dead steps and judgements, whether or not Redis still has their turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.rows import StepRow
from brainq.contracts.turn import LATE_FAILURE_WARNINGS
from brainq.contracts.view import EndedTurn
from brainq.engine.finalize.late_steps import LateSteps
from brainq.engine.finalize.step_order import FinalizerRuntime, StepOrder
from brainq.engine.jobs import job_key
from brainq.engine.memory.judge_runner import JudgeRunner
from brainq.errors import InvalidInput, TurnNotFound
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.failures import failure_name, failure_text

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.judgements import Judgements

log = logger("brainq.finalize")

RERUN_OWNER = "retry"
JUDGE_PREFIX = "judge:"
JUDGES_STEP = "judges"


@dataclass(frozen=True, slots=True)
class Retried:
    """The outcome of one more try.

    name: the step, or `judge:` and the judge's name.
    word: `taken` means that a worker is running it now.
    error: one line.
    """

    name: str
    word: Literal["done", "failed", "taken"]
    error: str = ""


@dataclass(eq=False, kw_only=True)
class StepRerunner:
    """A runner that retries steps in the process of a command, even while a worker runs the same step.

    brain_of: returns the name of a turn's brain, by the turn's id.
    """

    late: LateSteps
    brain_of: Callable[[str], str | None]
    steps: Callable[[str], Sequence[StepRow]]
    judgements: Judgements
    judges: JudgeRunner

    def steps_to_run(self, turn_id: str, name: str | None) -> list[str]:
        """Return the names of the steps and judgements to run.

        name: a step, `judge:NAME`, or `judges` for the step of that name and all judgements, if they failed. None
        stands for every dead step and judgement of the turn.

        Raises InvalidInput if the brain or the turn does not know the name, if nothing of that name needs a retry, and
        if this process does not have the brain.
        """
        order = self._work(turn_id).order
        dead = [f"{JUDGE_PREFIX}{row.judge}" for row in self.judgements.of_turn(turn_id) if row.state == "dead"]
        rows = {row.step: row for row in self.steps(turn_id)}
        if name is None:
            failed = [row.step for row in rows.values() if row.state == "dead"]
            return [step for step in order.names if step in failed] + dead
        if name.startswith(JUDGE_PREFIX):
            self._require_dead_judgement(turn_id, name)
            return [name]
        step = rows.get(name)
        if name == JUDGES_STEP and dead:
            return ([name] if step is not None and step.state != "done" else []) + dead
        _require_failed_step(order, name, step)
        return [name]

    def run(self, session_id: str, turn_id: str, name: str) -> Retried:
        """Run the step once.

        Raises TurnNotFound if neither Redis nor SQL knows how the turn ended. Raises InvalidInput if the turn's content
        is lost, because a step must not process a turn without its content.
        """
        if self.late.recall.is_gone(session_id, turn_id):
            raise InvalidInput(
                "TURN",
                f"{turn_id!r} cannot be retried: it has expired in Redis, and SQL keeps none of its content "
                "(redact_logs); retry sooner after a failure, or raise BRAINQ_KEEP_TURN_S to keep ended turns "
                "longer in Redis",
            )
        if name.startswith(JUDGE_PREFIX):
            return self._judge(session_id, turn_id, name)
        turn = self.late.recall.ended(session_id, turn_id)
        if turn is None:
            raise TurnNotFound(f"turn {turn_id!r} has not ended, as far as Redis and SQL know; let it end first")
        return self._step(turn, name)

    def _step(self, turn: EndedTurn, name: str) -> Retried:
        session_id, turn_id = turn.request.session_id, turn.request.turn_id
        row = next((row for row in self.steps(turn_id) if row.step == name), None)
        work = self._work(turn_id)
        step = work.order.get(name)
        if step is None:
            raise InvalidInput("STEP", _unknown_step(work.order, name))
        tries = 1 if row is None else row.tries + 1
        claim = FinalStepClaim(session_id, turn_id, name, RERUN_OWNER, fence=0, tries=tries, sent=True)
        try:
            self.late.steps.run(step, self.late.context(claim, turn, work), bounded=False)
        except Exception as failure:
            log.error("step failed again", failure=failure, turn_id=turn_id, step=name, tries=tries)
            error = failure_name(failure) if work.redacts else failure_text(failure)
            # A step that the chain still retries must not become dead because this try failed.
            dead = row is not None and row.state == "dead"
            self.late.records.note_failure(claim, error[:2000], dead)
            return Retried(name, "failed", " ".join(error.split()))
        self.late.records.note_done(claim)
        self.late.rows.remove(job_key(turn_id, name))
        if name in LATE_FAILURE_WARNINGS:
            self.late.recall.live.warn_later(session_id, turn_id, LATE_FAILURE_WARNINGS[name], applies=False)
        return Retried(name, "done")

    def _judge(self, session_id: str, turn_id: str, name: str) -> Retried:
        judge = name.removeprefix(JUDGE_PREFIX)
        self.judgements.revive_job(job_key(turn_id, judge))
        word = self.judges.run(session_id, turn_id, judge)
        # dropped: a worker claimed it before this try; passed: a worker of another build must run it
        if word in ("judged", "dropped", "passed"):
            return Retried(name, "done" if word == "judged" else "taken")
        row = next(row for row in self.judgements.of_turn(turn_id) if row.judge == judge)
        return Retried(name, "failed", " ".join((row.error or word).split()))

    def _work(self, turn_id: str) -> FinalizerRuntime:
        brain = self.brain_of(turn_id)
        work = self.late.brains.of(brain)
        if work is None:
            raise InvalidInput(
                "TURN",
                f"{turn_id!r} belongs to the brain {brain!r}, but this app has only "
                f"{', '.join(self.late.brains.names)}; name the app that has that brain (-A, or BRAINQ_APP)",
            )
        return work

    def _require_dead_judgement(self, turn_id: str, name: str) -> None:
        rows = {f"{JUDGE_PREFIX}{row.judge}": row.state for row in self.judgements.of_turn(turn_id)}
        if name not in rows:
            known = ", ".join(sorted(rows)) or "none: its prompt names no judges, or it has no answer"
            raise InvalidInput("STEP", f"the turn has no {name!r}; its judgements are {known}")
        if rows[name] == "done":
            raise InvalidInput("STEP", f"{name!r} has its score; there is nothing to retry")
        if rows[name] != "dead":
            raise InvalidInput("STEP", f"{name!r} is pending; a finalizer worker will try it without a command")


def _require_failed_step(order: StepOrder, name: str, row: StepRow | None) -> None:
    if name not in order.names:
        raise InvalidInput("STEP", _unknown_step(order, name))
    if row is None:
        raise InvalidInput(
            "STEP",
            f"SQL has no failed try of {name!r}: the step is done, or the turn has not reached it yet; "
            "the chain runs it without a command",
        )
    if row.state == "done":
        raise InvalidInput("STEP", f"{name!r} is done; there is nothing to retry")


def _unknown_step(order: StepOrder, name: str) -> str:
    return f"this brain has no step {name!r}; its steps are {', '.join(order.names)}"

"""Bugs of the engine of jobs: claims, leases, tries, back-off and revival."""

from __future__ import annotations

from lab.mutants.bug import Bug

RUNNER = "brainq/engine/jobs.py"
TABLE = "brainq/adapters/sql/jobs.py"
FINALIZER = "brainq/engine/finalize/finalizer.py"
FINALS = "tests/integration/engine/test_engine_finals.py::"
JUDGING = ("tests/unit/engine/memory/test_judging.py",)
JUDGEMENTS = ("tests/integration/adapters/sql/test_judgements.py",)
DELIVERIES = ("tests/integration/adapters/sql/test_deliveries.py",)

BUGS = (
    Bug(
        "jobs: a job that another try holds is claimed",
        TABLE,
        ".where(self._pending_here, is_due)",
        ".where(self._pending_here)",
        JUDGEMENTS,
    ),
    Bug("jobs: a claim is no try", TABLE, '{"tries": table.c.tries + 1} if', '{"tries": table.c.tries} if', JUDGEMENTS),
    Bug(
        "jobs: a try that lost its lease ends the later one",
        TABLE,
        '(self._pending_here, table.c.tries == bindparam("nth"))',
        "(self._pending_here,)",
        JUDGEMENTS,
    ),
    Bug(
        "jobs: a second end replaces the first",
        TABLE,
        "update(self._table).where(self._pending_here)",
        "update(self._table).where(self._here)",
        JUDGEMENTS,
    ),
    Bug(
        "jobs: what is pending is revived with the dead",
        TABLE,
        "update(table).where(table.c.state == literal_column(\"'dead'\"))",
        "update(table).where(table.c.state != literal_column(\"'done'\"))",
        DELIVERIES,
    ),
    Bug(
        "jobs: a revived job has no tries left",
        TABLE,
        '"state": "pending", "tries": 0,',
        '"state": "pending",',
        JUDGEMENTS,
    ),
    Bug(
        "jobs: a job that waits for its next try is due",
        TABLE,
        ".where(pending, table.c.due_at <= AFTER)",
        ".where(pending)",
        JUDGEMENTS,
    ),
    Bug(
        "jobs: the last try is followed by another",
        RUNNER,
        "None if tries >= self.max_tries else",
        "None if tries > self.max_tries else",
        JUDGING,
    ),
    Bug(
        "jobs: work that kills its worker is tried for ever", RUNNER, "if tries > self.max_tries:", "if False:", JUDGING
    ),
    Bug("jobs: a try's lease is not renewed", RUNNER, "if self.beats is None:", "if True:", JUDGING),
    Bug(
        "jobs: what no try can do is tried again",
        RUNNER,
        "return self._end(key, tries, str(end), None)",
        "return self._end(key, tries, str(end), again_after_s)",
        JUDGING,
    ),
    Bug(
        "jobs: a postponed try counts",
        TABLE,
        '{"tries": tries - 1, "error": why,',
        '{"error": why,',
        JUDGEMENTS,
    ),
    Bug(
        "jobs: an error quotes what its brain keeps nowhere",
        RUNNER,
        "return self._end(key, tries, show(failure), again_after_s",
        "return self._end(key, tries, failure_words(failure), again_after_s",
        JUDGING,
    ),
    Bug("jobs: waits do not grow", RUNNER, "self.factor ** (tries - 1)", "self.factor", JUDGING),
    Bug(
        "late steps: a step that the result does not wait for is tried again before it",
        FINALIZER,
        "            if not is_dead and not self._work.order.leads_to_result(claim.step):",
        "            if False:",
        (FINALS + "test_a_callback_that_keeps_failing_holds_up_neither_the_result_nor_what_follows",),
    ),
    Bug(
        "late steps: a step whose worker died is tried in its chain before what follows",
        FINALIZER,
        "            if claim.lost or self._finalizer",
        "            if self._finalizer",
        (FINALS + "test_a_step_that_kills_its_workers_holds_up_only_itself",),
    ),
    Bug(
        "late steps: a failed try is not in the step's own row",
        "brainq/adapters/sql/repositories/step_jobs.py",
        "            if error is not None:\n",
        "            if False:\n",
        (FINALS + "test_a_callback_that_keeps_failing_holds_up_neither_the_result_nor_what_follows",),
    ),
    Bug(
        "late steps: a result does not say that a step before it failed",
        FINALIZER,
        "if failing and not claim.sent:",
        "if False:",
        (FINALS + "test_a_callback_that_keeps_failing_holds_up_neither_the_result_nor_what_follows",),
    ),
    Bug(
        "late steps: a callback gets another step key each time",
        "brainq/contracts/claim.py",
        'return f"{self.turn_id}:{self.step}"',
        'return f"{self.turn_id}:{self.step}:{self.tries}"',
        (FINALS + "test_a_callback_that_fails_is_tried_again_with_its_key",),
    ),
)

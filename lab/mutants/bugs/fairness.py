"""Bugs of the result that goes out before a slow callback has ended."""

from __future__ import annotations

from lab.mutants.bug import Bug

FINALIZER = "brainq/engine/finalize/finalizer.py"
BEHIND = "brainq/engine/finalize/result.py"
FINALS = "tests/integration/engine/test_engine_finals.py::"
SLOW = (FINALS + "test_the_result_does_not_wait_for_a_callback_longer_than_a_second",)
FAILS = (FINALS + "test_a_callback_that_fails_behind_its_result_is_called_again",)
AWAY = (FINALS + "test_where_sql_is_away_the_result_goes_out_with_a_warning_while_a_callback_runs",)
FULL = (FINALS + "test_without_a_place_behind_the_worker_itself_waits_for_the_callback",)

BUGS = (
    Bug(
        "a result goes out ahead of a slow callback before SQL has it",
        FINALIZER,
        '        self._go_on(claim)\n        return "behind"',
        '        self._finalizer.deliver(claim.session_id, claim.turn_id)\n        return "behind"',
        SLOW,
    ),
    Bug(
        "nobody renews the lease of a callback that ends behind its result",
        "brainq/app/wiring/finalizer.py",
        "beats=wiring.job_beats)",
        "beats=None)",
        SLOW,
    ),
    Bug(
        "a worker waits for a slow callback though the result is out",
        FINALIZER,
        "        if not running.wait(RESULT_WAITS_S):",
        "        if not running.wait(60.0):",
        SLOW,
    ),
    Bug(
        "a callback that fails behind its result is taken for done",
        "brainq/engine/finalize/late_steps.py",
        "self._end(claim, work, lambda: running.result(limit_s))",
        "self._end(claim, work, lambda: running.wait(limit_s))",
        FAILS,
    ),
    Bug(
        "a result waits for a slow callback that cannot become a job",
        FINALIZER,
        "            late.open(claim, claim.tries, held=True)\n        except Exception as failure:\n"
        "            return self._failed(claim, failure)",
        "            late.open(claim, claim.tries, held=True)\n        except Exception:\n"
        "            running.result(60.0)",
        AWAY,
    ),
    Bug(
        "threads behind results have no bound",
        BEHIND,
        "if not self._places.acquire(blocking=False):",
        "if not self._places.acquire(blocking=False) and self._places is None:",
        FULL,
    ),
)

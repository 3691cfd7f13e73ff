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
        "        for name in order.steps_after(claim.step):\n",
        "        for name in (RESULT,):\n",
        SLOW,
    ),
    Bug(
        "nobody renews the lease of a callback that ends behind its result",
        FINALIZER,
        "            with self._beats.renew(lambda: self._chain.beat(claim), _ignore):\n                try:\n"
        "                    first.wait",
        "            with self._beats.renew(lambda: 'LOST', _ignore):\n                try:\n"
        "                    first.wait",
        SLOW,
    ),
    Bug(
        "a worker waits for a slow callback though the result is out",
        FINALIZER,
        '"behind" if self._behind.start(end) else end()',
        "end()",
        SLOW,
    ),
    Bug(
        "a callback that fails behind its result is taken for done",
        FINALIZER,
        "                    return self._failed(claim, failure, 0.0)[0]",
        "                    log.warning('failed', failure=failure)",
        FAILS,
    ),
    Bug(
        "a result that cannot be recorded waits for a slow callback",
        BEHIND,
        "time.monotonic() - failing_since >= SEND_ANYWAY_S and",
        "False and",
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

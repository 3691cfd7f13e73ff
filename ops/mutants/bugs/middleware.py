"""Bugs of middleware."""

from __future__ import annotations

from ops.mutants.bug import Bug

TESTS = ("tests/integration/test_middleware.py",)

BUGS = (
    Bug(
        "a call that a middleware stops has written its intent",
        "brainq/calls/run.py",
        "                return call.settle(failed)\n",
        "                work.intents.start(claim)\n                return call.settle(failed)\n",
        TESTS,
    ),
    Bug(
        "the first middleware that raises after a call keeps the others from being called",
        "brainq/brain/middleware.py",
        """            hook.log_failure(failure, turn_id)


def notify_hooks_in_time""",
        """            hook.log_failure(failure, turn_id)
            return


def notify_hooks_in_time""",
        TESTS,
    ),
)

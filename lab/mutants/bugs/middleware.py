"""Bugs of middleware."""

from __future__ import annotations

from lab.mutants.bug import Bug

TESTS = ("tests/integration/engine/test_middleware.py",)

BUGS = (
    Bug(
        "a call that a middleware stops has written its intent",
        "brainq/engine/calls/run.py",
        "            return self._settler.settle(call, failed)\n",
        "            self._intents.start(claim, redact=False)\n            return self._settler.settle(call, failed)\n",
        TESTS,
    ),
    Bug(
        "the first middleware that raises after a call keeps the others from being called",
        "brainq/engine/brain/middleware.py",
        """            hook.log_failure(failure, turn_id)


def notify_hooks_in_time""",
        """            hook.log_failure(failure, turn_id)
            return


def notify_hooks_in_time""",
        TESTS,
    ),
)

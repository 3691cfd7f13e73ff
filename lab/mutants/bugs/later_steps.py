"""Bugs of the threads that finalizers leave to what leads to results."""

from __future__ import annotations

from lab.mutants.bug import Bug

LATER = "brainq/runtime/processes/later_threads.py"
TRANSPORT = "brainq/adapters/celery/celery57/transport.py"
FINALIZER = "brainq/engine/finalize/finalizer.py"
TESTS = ("tests/unit/runtime/processes/test_loop_thread.py",)
WHOLE = ("tests/acceptance/promises/test_p09_later_steps.py",)

BUGS = (
    Bug(
        "later steps: their list is read however many run",
        TRANSPORT,
        "            if not free:\n",
        "            if False:\n",
        ("tests/integration/adapters/celery/test_later_threads.py",),
    ),
    Bug(
        "later steps: whoever has sent a result goes on with them, however many do",
        FINALIZER,
        "stay = stay and (finalizer.later is None or finalizer.later.try_enter(claim.turn_id))",
        "stay = stay and (finalizer.later is None or finalizer.later.enter(claim.turn_id) is None)",
        WHOLE,
    ),
    Bug(
        "later steps: a thread is not counted free again when its visit is over",
        FINALIZER,
        "                later.leave(self._first.turn_id)",
        "                pass",
        WHOLE,
    ),
    Bug(
        "later steps: a message counts after its acknowledgement",
        "brainq/adapters/celery/celery57/event_loop.py",
        "        super().ack(delivery_tag)\n        self.later.pop(delivery_tag, None)",
        "        super().ack(delivery_tag)",
        TESTS,
    ),
    Bug(
        "later steps: a turn counts twice",
        LATER,
        "{**dict(list(self._messages.values())), **self._visits.copy()}",
        "{**{tag: at for tag, (_, at) in self._messages.items()}, **self._visits.copy()}",
        TESTS,
    ),
    Bug(
        "callbacks behind: where the system gives no thread a place is lost",
        "brainq/engine/finalize/result.py",
        "            self._places.release()\n            log.warning",
        "            log.warning",
        ("tests/unit/engine/finalize/test_behind.py",),
    ),
    Bug(
        "a later step that was asked for before visits took the last thread is taken all the same",
        "brainq/adapters/celery/celery57/transport.py",
        "min(len(items), LATER_THREADS.free) if is_later else len(items)",
        "len(items)",
        ("tests/integration/adapters/celery/test_later_threads.py",),
    ),
)

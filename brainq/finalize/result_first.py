"""A callback that comes before the result, and takes long: the result goes first, and the callback ends behind it."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from brainq.observe.logs import logger
from brainq.processes.bounded_call import ThreadCall, run_in_thread

log = logger("brainq.finalize")

RESULT_WAITS_S = 1.0  # for a callback of the brain's
SEND_ANYWAY_S = 5.0  # of what leads to the result failing; then the result goes out without it
MAX_BACKGROUND = 512  # callbacks of a process that nobody's thread waits for; those beyond keep their worker's


@dataclass(eq=False, frozen=True, slots=True)
class ResultFirst:
    """Sends the result out while a callback runs.

    send      does what leads to the result, and sends that; it may raise, and be called again
    give_up   sends the result without that, and gets the reason
    """

    turn_id: str
    send: Callable[[], None]
    give_up: Callable[[str], object]

    def wait(self, running: ThreadCall[None], limit_s: float) -> None:
        """Until the callback has ended, or `limit_s` are over; the result is out by then, or was tried each second."""
        until, failing_since = time.monotonic() + limit_s, time.monotonic()
        is_out = self._try(failing_since)
        while not is_out and not running.wait(min(RESULT_WAITS_S, until - time.monotonic())):
            if time.monotonic() >= until:
                return
            is_out = self._try(failing_since)
        running.wait(until - time.monotonic())

    def _try(self, failing_since: float) -> bool:
        try:
            self.send()
        except Exception as failure:
            log.warning("result not sent yet", turn_id=self.turn_id, why=type(failure).__name__)
            return time.monotonic() - failing_since >= SEND_ANYWAY_S and self._give_up(type(failure).__name__)
        return True

    def _give_up(self, why: str) -> bool:
        try:
            self.give_up(why)
        except Exception as failure:
            log.warning("result not sent yet", turn_id=self.turn_id, why=type(failure).__name__)
            return False
        return True


class BackgroundCallbacks:
    """Work that goes on after its doorbell was answered: threads that wait for callbacks, so many at most."""

    def __init__(self, most: int = MAX_BACKGROUND) -> None:
        self._places = threading.BoundedSemaphore(most)

    def start(self, work: Callable[[], object]) -> bool:
        """Have a thread do `work`; False when there is no place for it, or the system gives no more threads."""
        if not self._places.acquire(blocking=False):
            return False
        variables = contextvars.copy_context()

        def until_done() -> None:
            try:
                variables.run(work)
            except Exception as failure:
                log.error("a step that went on behind its result was not settled", failure=failure)
            finally:
                self._places.release()

        try:
            run_in_thread(until_done)
        except RuntimeError as refused:
            self._places.release()
            log.warning("no thread for a step that goes on behind its result", why=str(refused))
            return False
        return True

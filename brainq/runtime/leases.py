"""One thread per process renews every lease that the process holds.

A worker that claims something passes its renewal to `LeaseRenewer.renew`. While the `with` block runs, the lease is
renewed every `every_s`. The first answer other than OK is reported to the holder, once.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from brainq.runtime.observe.logs import OutageLog, logger
from brainq.runtime.observe.threads import KeptThread

log = logger("brainq.runtime.leases")

AGAIN_S = 0.5  # after a heartbeat that failed


def process_name(pid: int | None = None) -> str:
    """Return the name of a process (this one by default) in leases. It is unique, even among containers of one name in
    which every process has the same pid."""
    return f"{socket.gethostname()}-{pid or os.getpid()}-{secrets.token_hex(3)}"


@dataclass(eq=False, slots=True)
class LeaseRenewal:
    """A lease that is being renewed. `word` is the first answer that was not OK, or "". The end of its block drops
    a renewal at once, because it holds a turn. The thread drops those that lost their lease."""

    beat: Callable[[], str]
    on_lost: Callable[[str], None]
    renewer: LeaseRenewer
    word: str = ""
    is_over: bool = False

    def __enter__(self) -> LeaseRenewal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over = True
        with self.renewer.lock:
            self.renewer.renewals.pop(self, None)


class LeaseRenewer:
    """A renewer of leases. Its daemon thread starts with the first lease."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self.lock = threading.Lock()  # of `renewals`
        self.renewals: dict[LeaseRenewal, None] = {}  # renewed in the order of their claims
        self._woken = threading.Event()
        self._thread = KeptThread("brainq-beats", self._run)

    def renew(self, beat: Callable[[], str], on_lost: Callable[[str], None]) -> LeaseRenewal:
        """Renew a lease with `beat` until the returned renewal is released or `beat` returns anything but `OK`.

        Raises RuntimeError if the system refuses the thread: nothing may start under a lease that will lapse.
        """
        renewal = LeaseRenewal(beat, on_lost, self)
        with self.lock:
            self.renewals[renewal] = None
        try:
            self._thread.ensure()
        except RuntimeError:
            renewal.is_over = True
            raise
        return renewal

    def beat_now(self) -> None:
        """Make the thread renew every lease now, so that holders notice lost leases now. Does not wait."""
        self._woken.set()

    def stop(self) -> None:
        self._thread.stop()
        self._woken.set()

    def _run(self, stopping: threading.Event) -> None:
        outage = OutageLog(log, "beat")
        failed: BaseException | None = None
        while True:
            # A heartbeat that a silent connection swallowed is repeated before the lease lapses.
            self._woken.wait(self._every_s if failed is None else min(AGAIN_S, self._every_s))
            # Cleared before the round, so that a request in the middle of the round causes another one.
            self._woken.clear()
            if stopping.is_set():
                return
            with self.lock:
                renewals = [renewal for renewal in self.renewals if not renewal.is_over]
                self.renewals = dict.fromkeys(renewals)
            failed = None
            for renewal in renewals:
                try:
                    word = renewal.beat()
                # Catch MemoryError as well: the other leases must not lapse because of it.
                except BaseException as failure:
                    # Redis is unavailable. The lease may lapse meanwhile, and the next script will report that.
                    failed = failure
                    continue
                if word != "OK" and not renewal.is_over:
                    renewal.word, renewal.is_over = word, True
                    _notify_holder(renewal, word)
            if failed is not None:
                outage.failed(failed)
            elif renewals:
                outage.worked()


def _notify_holder(renewal: LeaseRenewal, word: str) -> None:
    """Notify the holder. An exception of its callback must not end the thread: every other lease would lapse."""
    try:
        renewal.on_lost(word)
    except BaseException as failure:
        log.error("the callback about a lost lease failed", failure=failure, word=word)

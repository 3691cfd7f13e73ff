"""A producer under load: turns are submitted at a rate, whatever happens meanwhile, and none is forgotten."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from brainq import Client, Unreachable
from brainq.contracts.ids import new_turn_id
from lab.faults.effects import PATIENCE_S, Effects

SESSIONS = 12
TIMEOUT_S = 120.0
"""Of a turn: what a fault costs is far less, and a turn that hangs is found by it."""

RETRY_S = 0.1


@dataclass
class Submitted:
    """Turns that were accepted, and when, by time.monotonic(); `refused`: submits that had to be made again."""

    at: dict[str, float] = field(default_factory=dict[str, float])
    refused: int = 0


class Producer:
    """Submits turns, from a thread of its own while `begin` is in force, and by the way."""

    def __init__(self, client: Client, effects: Effects, rate: float) -> None:
        """`rate`: turns a second."""
        self.client = client
        self.effects = effects
        self.rate = rate
        self.submitted = Submitted()
        self._numbers = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
            self._thread = None

    def reserve(self) -> str:
        """The id of a turn that is still to be submitted."""
        return new_turn_id()

    def submit(self, message: str = "order", session: str = "", turn: str = "") -> str:
        """Have a turn accepted, however long Redis or SQL is away; its id. A second try is the same turn."""
        with self._lock:
            self._numbers += 1
            session = session or f"load-{self._numbers % SESSIONS}"
        turn, end = turn or self.reserve(), time.monotonic() + PATIENCE_S
        while True:
            try:
                self.client.submit(session, message, turn_id=turn, limits={"timeout_s": TIMEOUT_S})
            except Unreachable:
                self.submitted.refused += 1
                if time.monotonic() > end:
                    raise
                time.sleep(RETRY_S)
            else:
                self.submitted.at[turn] = time.monotonic()
                return turn

    def alone(self, message: str = "order") -> str:
        """A turn in a session of its own, which waits for no other."""
        return self.submit(message, f"own-{new_turn_id()}")

    def flood(self, times: int, for_s: float) -> None:
        """Submit `times` as fast as the producer does, each turn in a session of its own, beside it."""
        begun, count = time.monotonic(), 0
        while (passed := time.monotonic() - begun) < for_s:
            if count < passed * self.rate * times:
                self.alone()
                count += 1
            else:
                time.sleep(0.005)

    def live_since(self, at: float) -> dict[str, float]:
        """Turns that had not ended at `at`, or came later, and since when they are counted: then, or their submit."""
        ended = self.effects.ended()
        submitted = list(self.submitted.at.items())
        return {turn: max(at, since) for turn, since in submitted if ended.get(turn, at) >= at}

    def take(self) -> Submitted:
        """What was submitted since the last time."""
        taken, self.submitted = self.submitted, Submitted()
        return taken

    def _run(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            with suppress(Unreachable):  # for two minutes: the next is tried then
                self.submit()
            # After an outage the rate goes on; what was missed is not made up for.
            due = max(due + 1 / self.rate, time.monotonic() - 1 / self.rate)
            self._over.wait(max(0.0, due - time.monotonic()))

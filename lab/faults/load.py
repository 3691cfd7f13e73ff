"""A producer that submits turns at a fixed rate, whatever happens meanwhile, and remembers each of them."""

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
    """The accepted turns with their times, by time.monotonic(), and what they are.

    sent      the session and the message of each
    refused   counts submits that had to be repeated
    """

    at: dict[str, float] = field(default_factory=dict[str, float])
    sent: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    refused: int = 0


class Producer:
    """A producer of turns. It submits them from a thread of its own inside `begin`, and single ones on request."""

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
        """Return the id for a turn that will be submitted later."""
        return new_turn_id()

    def submit(self, message: str = "order", session: str = "", turn: str = "") -> str:
        """Submit a turn until it is accepted, however long Redis or SQL is away. Returns its id."""
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
                self.submitted.sent[turn] = session, message
                self.submitted.at[turn] = time.monotonic()
                return turn

    def alone(self, message: str = "order") -> str:
        """Submit a turn in a session of its own, so that it waits for no other."""
        return self.submit(message, f"own-{new_turn_id()}")

    def flood(self, times: int, for_s: float) -> None:
        """Submit turns beside the producer, at `times` its rate, each in a session of its own."""
        begun, count = time.monotonic(), 0
        while (passed := time.monotonic() - begun) < for_s:
            if count < passed * self.rate * times:
                self.alone()
                count += 1
            else:
                time.sleep(0.005)

    def live_since(self, at: float) -> dict[str, float]:
        """Return the turns that had not ended at `at`, or came later, each with the later of `at` and its submit."""
        ended = self.effects.ended()
        submitted = list(self.submitted.at.items())
        return {turn: max(at, since) for turn, since in submitted if ended.get(turn, at) >= at}

    def take(self) -> Submitted:
        """Return what was submitted since the last call."""
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

"""From the word that a turn was cancelled to the token of the call that runs for it."""

from __future__ import annotations

import threading

from brainq.tools.deadline import DeadlineToken


class StopLatch:
    """Keeps a stop that comes before the token is made: a call is watched for stops before it is claimed, so that
    none falls between the claim's own look at the turn and the watching."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token: DeadlineToken | None = None
        self._reason: str | None = None

    def stop(self, reason: str) -> None:
        """The turn was cancelled. Called from any thread, at any time."""
        with self._lock:
            self._reason = reason
            token = self._token
        if token is not None:
            token.cancel(reason)

    def guard(self, token: DeadlineToken) -> None:
        """From now on a stop cancels `token`; at once, if it has come."""
        with self._lock:
            self._token = token
            reason = self._reason
        if reason is not None:
            token.cancel(reason)

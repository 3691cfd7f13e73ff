"""What Ctrl+C, SIGTERM and SIGHUP ask for."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Some wrappers pass on a Ctrl+C that the terminal has already sent to the whole group.
SAME_S = 0.3


class StopSignals:
    """Counts the signals that ask to stop, while entered; whoever runs a loop looks.

    The handlers set numbers and nothing else. An exception out of a handler may strike anywhere, also inside a
    lock of the standard library (`Popen.poll` has one), which then stays locked for ever.
    """

    def __init__(self) -> None:
        self._last = float("-inf")
        self._count = 0
        self._before: dict[int, Any] = {}

    @property
    def asked(self) -> bool:
        """Stop: let running work end."""
        return self._count > 0

    @property
    def insisted(self) -> bool:
        """A second one came: stop at once."""
        return self._count > 1

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > SAME_S:
            self._count += 1
        self._last = now

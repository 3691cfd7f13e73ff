"""Keeps processes running: what dies is started again, after a wait that grows while it keeps dying."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

LONGEST_WAIT_S = 30.0
CALM_S = 60.0  # what ran for so long has not "kept dying"


class Child(Protocol):
    """A process that is kept running."""

    @property
    def name(self) -> str: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def is_ready(self) -> bool: ...
    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number if a signal ended it."""
        ...

    def launch(self) -> None: ...


@dataclass
class _Life:
    began: float
    deaths: int = 0
    again_at: float | None = None
    is_back: bool = True


class Supervisor:
    """Looks after children that were launched already. `say` is told of each death and each return."""

    def __init__(
        self,
        children: Sequence[Child],
        say: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._children = children
        self._say = say
        self._now = now
        self._lives = {child.name: _Life(now()) for child in children}

    def look(self) -> None:
        """Look at each child once, and do what is due."""
        for child in self._children:
            self._look(child, self._lives[child.name])

    def _look(self, child: Child, life: _Life) -> None:
        now = self._now()
        if child.is_running:
            if not life.is_back and child.is_ready:
                life.is_back = True
                self._say(f"{child.name} is back")
            return
        if life.again_at is None:
            life.deaths = 1 if now - life.began > CALM_S else life.deaths + 1
            wait_s = wait_before(life.deaths)
            life.again_at, life.is_back = now + wait_s, False
            when = f"in {wait_s:g} s" if wait_s else "now"
            self._say(f"{child.name} ended ({how_ended(child.exit_code)}); starting it again {when}")
        if now >= life.again_at:
            life.again_at, life.began = None, now
            child.launch()


def wait_before(deaths: int) -> float:
    """Seconds before the start after the n-th death in a row: 0, 1, 2, 4, ... 30."""
    return 0.0 if deaths <= 1 else min(LONGEST_WAIT_S, 2.0 ** min(deaths - 2, 10))


def how_ended(code: int | None) -> str:
    if code is None:
        return "it never started"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

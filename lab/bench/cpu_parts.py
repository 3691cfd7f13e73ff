"""Splits a process's CPU time into parts: each wrapped function takes the thread's clock from the part that called it.

Every thread has a clock of its own, so what a coroutine waits is nobody's, and what runs meanwhile is its own part's.
What the wrapping costs is measured once, and taken off.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from lab.bench.outcomes import BenchFailure

TOLD_WITHIN_S = 10.0
SPENT_IN = "BENCH_SPENT_IN"
NOTHING, NOTHINGS = "nothing", 20_000


class _Account(threading.local):
    """One thread's seconds by part, the part that runs, and since when by the thread's clock."""

    def __init__(self, parts: CpuParts) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.slices: defaultdict[str, int] = defaultdict(int)
        self.part = parts.main if threading.current_thread() is threading.main_thread() else parts.other
        self.since = 0.0
        parts.accounts.append((self.spent, self.slices))

    def turn_to(self, part: str) -> str:
        """Charge the part that ran, go on with this one; the part that ran."""
        now = time.thread_time()
        self.spent[self.part] += now - self.since
        self.slices[self.part] += 1
        before, self.part, self.since = self.part, part, now
        return before


class _Stepped:
    """An awaitable that charges each step of another one to a part."""

    def __init__(self, awaited: Awaitable[Any], account: _Account, part: str) -> None:
        self._steps = awaited.__await__()
        self._account = account
        self._part = part

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = functools.partial(next, self._steps)
        while True:
            before = self._account.turn_to(self._part)
            try:
                waits_for = step()
            except StopIteration as over:
                return over.value
            finally:
                self._account.turn_to(before)
            try:
                yield waits_for
                step = functools.partial(next, self._steps)
            except BaseException as error:
                step = functools.partial(self._throw, error)

    def _throw(self, error: BaseException) -> Any:
        steps: Any = self._steps
        return steps.throw(error)


class CpuParts:
    """The parts of this process.

    main, other   the parts of what no wrapped function runs: on the main thread, and on any other
    """

    def __init__(self, main: str, other: str) -> None:
        self.main = main
        self.other = other
        self.accounts: list[tuple[defaultdict[str, float], defaultdict[str, int]]] = []
        self._account = _Account(self)
        self._slice_s = self._cost_of_a_slice()

    def wrap(self, part: str, owner: Any, name: str) -> None:
        """Count the function `owner.name` as this part from now on.

        Raises BenchFailure if there is no such function.
        """
        inner = getattr(owner, name, None)
        if inner is None:
            raise BenchFailure(f"{owner!r} has no {name} any more; bring lab/bench/probed_gateway.py in line")
        setattr(owner, name, self._timed_async(part, inner) if _is_async(inner) else self._timed(part, inner))

    def _timed(self, part: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        account = self._account

        @functools.wraps(inner)
        def timed(*args: Any, **named: Any) -> Any:
            before = account.turn_to(part)
            try:
                return inner(*args, **named)
            finally:
                account.turn_to(before)

        return timed

    def _timed_async(self, part: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        account = self._account

        @functools.wraps(inner)
        async def timed(*args: Any, **named: Any) -> Any:
            return await _Stepped(inner(*args, **named), account, part)

        return timed

    def spent_s(self) -> dict[str, float]:
        """Return the seconds by part, over all threads.

        What a thread did since its last wrapped function is not included yet.
        """
        total: defaultdict[str, float] = defaultdict(float)
        for spent, slices in list(self.accounts):
            for part, seconds in list(spent.items()):
                total[part] += seconds - slices[part] * self._slice_s
        total.pop(NOTHING, None)
        return dict(total)

    def _cost_of_a_slice(self) -> float:
        """Return the cost of recording a slice.

        A call of a wrapped function makes two: its own, and the caller's up to the call.
        """

        def nothing() -> None:
            return None

        wrapped = self._timed(NOTHING, nothing)
        self._account.turn_to(NOTHING)
        begin = time.thread_time()
        for _ in range(NOTHINGS):
            wrapped()
        cost_s = (time.thread_time() - begin) / NOTHINGS / 2
        self._account.turn_to(self.main)
        return cost_s

    def tell_on_signal(self, path: Path) -> None:
        """Write `spent_s` to a file at each SIGUSR1. Call it before there are other threads."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

        def tell() -> None:
            while True:
                signal.sigwait({signal.SIGUSR1})
                written = path.with_suffix(".new")
                written.write_text(json.dumps(self.spent_s()))
                written.rename(path)

        threading.Thread(target=tell, name="tells", daemon=True).start()


def ask_spent_s(pid: int, path: Path) -> dict[str, float]:
    """Return what the process has spent, by part. Raises BenchFailure if it does not answer."""
    path.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    until = time.monotonic() + TOLD_WITHIN_S
    while not path.exists():
        if time.monotonic() > until:
            raise BenchFailure("the gateway does not tell what it has spent")
        time.sleep(0.01)
    return json.loads(path.read_text())


def wrap_all(parts: CpuParts, places: Iterable[tuple[str, Any, str]]) -> None:
    """Wrap every (part, owner, name). Raises BenchFailure as `wrap`."""
    for part, owner, name in places:
        parts.wrap(part, owner, name)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(function))

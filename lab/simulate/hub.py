"""The scheduler of the one thread: tasks on a virtual clock, and their replacements for threads, locks, events and
queues."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from queue import Empty
from random import Random
from typing import Any, Protocol

import greenlet

EPOCH_S = 1_772_323_200  # 1 March 2026, where the virtual clock begins: far above any monotonic clock


class Killed(BaseException):
    """The exception that ends the tasks of a dead process. Nothing that they do while it unwinds reaches Redis or
    SQL."""


class Owner(Protocol):
    """The process that a task belongs to."""

    name: str
    is_dead: bool
    frozen_until_us: int


class Task:
    """One thread of a process."""

    __slots__ = ("body", "is_done", "label", "owner", "run")

    def __init__(self, label: str, owner: Owner, body: Callable[[], object], hub: Hub) -> None:
        self.label = label
        self.owner = owner
        self.body = body
        self.is_done = False
        self.run: Any = greenlet.greenlet(lambda: hub.main(self), hub.root)


class Wait:
    """A waiting task. The first wake-up ends the wait, and later ones do nothing."""

    __slots__ = ("is_over", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.is_over = False


class Hub:
    """A scheduler that runs due actions in the order of the virtual clock. The seed decides the order of simultaneous
    ones.

    failed   receives the exceptions that tasks raise
    """

    def __init__(self, rng: Random, failed: Callable[[Task, Exception], None]) -> None:
        self.rng = rng
        self.now_us = EPOCH_S * 1_000_000
        self.current: Task | None = None
        self.root: Any = greenlet.getcurrent()
        self.tasks: dict[Task, None] = {}
        self._failed = failed
        self._due: list[tuple[int, float, int, Callable[[], None]]] = []
        self._number = 0

    @property
    def now_s(self) -> float:
        return self.now_us / 1_000_000

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Schedule an action in `seconds` seconds, outside all tasks."""
        self._number += 1
        at_us = self.now_us + max(
            0, math.ceil(seconds * 1_000_000)
        )  # rounded up, or a task would wake too early and wait again
        heapq.heappush(self._due, (at_us, self.rng.random(), self._number, act))

    def spawn(self, label: str, owner: Owner, body: Callable[[], object], after_s: float = 0.0) -> Task:
        task = Task(label, owner, body, self)
        self.tasks[task] = None
        wait = Wait(task)
        self.after(after_s, lambda: self._resume(wait))
        return task

    def run(self, is_over: Callable[[], bool]) -> None:
        """Run due actions until `is_over` returns True or none is left."""
        while self._due and not is_over():
            self.now_us, _, _, act = heapq.heappop(self._due)
            act()

    def sleep(self, seconds: float) -> None:
        """Suspend the current task. Outside of tasks this does nothing."""
        if self.current is not None:
            self.suspend(Wait(self.current), seconds)

    def suspend(self, wait: Wait, timeout_s: float | None) -> None:
        """Suspend the current task until it is woken or the timeout is over. Raises Killed if its process has died."""
        task = wait.task
        if task.owner.is_dead:
            raise Killed
        if timeout_s is not None:
            self.after(timeout_s, lambda: self._resume(wait))
        self.root.switch()
        if task.owner.is_dead:
            raise Killed

    def wake(self, waits: Iterable[Wait]) -> None:
        for wait in waits:
            self.after(0.0, lambda wait=wait: self._resume(wait))

    def end_of(self, owner: Owner) -> int:
        """End the tasks of a dead process, and return their number. None of them may call this."""
        ended = [task for task in self.tasks if task.owner is owner]
        for task in ended:
            self.current = task
            if task.run:
                task.run.throw(Killed)
            task.is_done = True
            self.tasks.pop(task, None)  # a task that never began does not run its `finally`
        self.current = None
        return len(ended)

    def main(self, task: Task) -> None:
        """Run a task from its start to its end."""
        try:
            if not task.owner.is_dead:
                task.body()
        except Killed:
            pass
        except Exception as failure:
            if not task.owner.is_dead:
                self._failed(task, failure)
        finally:
            task.is_done = True
            self.tasks.pop(task, None)

    def _resume(self, wait: Wait) -> None:
        task = wait.task
        if wait.is_over or task.is_done:
            return
        if task.owner.frozen_until_us > self.now_us:
            self.after((task.owner.frozen_until_us - self.now_us) / 1_000_000, lambda: self._resume(wait))
            return
        wait.is_over = True
        self.current = task
        try:
            task.run.switch()
        finally:
            self.current = None


class VirtualLock:
    """A replacement for `threading.Lock` among tasks, first come first served."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._is_held = False
        self._waits: deque[Wait] = deque()

    def acquire(self) -> bool:
        while self._is_held:
            assert self._hub.current is not None
            wait = Wait(self._hub.current)
            self._waits.append(wait)
            self._hub.suspend(wait, None)
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        if self._waits:
            self._hub.wake([self._waits.popleft()])

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()


class VirtualCondition:
    """A replacement for `threading.Condition`."""

    def __init__(self, hub: Hub, lock: VirtualLock) -> None:
        self._hub = hub
        self._lock = lock
        self._waits: list[Wait] = []

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> None:
        assert self._hub.current is not None
        wait = Wait(self._hub.current)
        self._waits.append(wait)
        self._lock.release()
        try:
            self._hub.suspend(wait, timeout)
        finally:
            self._waits.remove(wait)
        self._lock.acquire()

    def notify(self) -> None:
        self._hub.wake(self._waits[:1])


class VirtualEvent:
    """A replacement for `threading.Event`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._is_set = False
        self._waits: list[Wait] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waits, self._waits = self._waits, []
        self._hub.wake(waits)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set and self._hub.current is not None:
            wait = Wait(self._hub.current)
            self._waits.append(wait)
            try:
                self._hub.suspend(wait, timeout)
            finally:
                if wait in self._waits:
                    self._waits.remove(wait)
        return self._is_set


class VirtualQueue:
    """A replacement for `queue.SimpleQueue`."""

    def __init__(self, hub: Hub) -> None:
        self._items: deque[Any] = deque()
        self._came = VirtualEvent(hub)

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._came.set()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items:
            self._came.clear()
            self._came.wait(timeout)
        if not self._items:
            raise Empty
        return self._items.popleft()


class VirtualThread:
    """A replacement for `threading.Thread`: a task of the process that starts it."""

    def __init__(
        self,
        hub: Hub,
        target: Callable[..., object],
        args: tuple[Any, ...],
        name: str,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._hub = hub
        self._body = lambda: target(*args, **(kwargs or {}))
        self._name = name
        self._task: Task | None = None

    def start(self) -> None:
        assert self._hub.current is not None, "a thread is started by a task"
        self._task = self._hub.spawn(self._name, self._hub.current.owner, self._body)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.is_done


class VirtualThreading:
    """A replacement for the module `threading` in modules that start threads or wait for them."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def Lock(self) -> VirtualLock:  # noqa: N802 - as the module calls it
        return VirtualLock(self._hub)

    def Event(self) -> VirtualEvent:  # noqa: N802
        return VirtualEvent(self._hub)

    def Condition(self, lock: VirtualLock) -> VirtualCondition:  # noqa: N802
        return VirtualCondition(self._hub, lock)

    def Thread(  # noqa: N802
        self,
        *,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "thread",
        daemon: bool = True,
    ) -> VirtualThread:
        return VirtualThread(self._hub, target, args, name)

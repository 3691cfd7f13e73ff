"""Greenlets that yield before every command, and can be killed like a process, without effect of any `finally`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import greenlet
import redis


class Killed(BaseException):
    """The error that ends the greenlets of a killed process."""


class Task:
    """One task of a process. `label` is for the log of operations."""

    __slots__ = ("_body", "_hub", "_run", "dead", "done", "label", "process")

    def __init__(self, label: str, process: object, hub: Any, body: Callable[[], object]) -> None:
        self.label = label
        self.process = process
        self.dead = False
        self.done = False
        self._body = body
        self._hub = hub
        self._run: Any = greenlet.greenlet(self._main, hub)

    def _main(self) -> None:
        try:
            self._body()
        except (redis.ConnectionError, Killed):
            # A task body that raises is a Celery task that failed; nobody tries it again.
            pass
        finally:
            self.done = True

    def resume(self) -> None:
        """Run until the task yields or is done. Raises what the task raises."""
        self._run.switch()

    def give_way(self) -> None:
        """Yield from inside the task. Raises Killed if its process is dead."""
        if not self.dead:
            self._hub.switch()
        if self.dead:
            raise Killed

    def kill(self) -> None:
        self.dead = True
        self.done = True
        if self._run:
            self._run.throw(Killed)


class Tasks:
    """All tasks of one schedule."""

    def __init__(self) -> None:
        self._hub: Any = greenlet.getcurrent()
        self.alive: list[Task] = []
        self.current: Task | None = None

    def spawn(self, label: str, process: object, body: Callable[[], object]) -> None:
        self.alive.append(Task(label, process, self._hub, body))

    def step(self, place: int) -> Task:
        """Resume the task at `place` until it yields."""
        task = self.current = self.alive[place]
        try:
            task.resume()
        finally:
            self.current = None
        if task.done:
            self.alive.remove(task)
        return task

    def give_way(self) -> None:
        """Let the schedule decide which task continues. Does nothing while the schedule itself is running."""
        if self.current is not None:
            self.current.give_way()

    def kill_of(self, process: object) -> int:
        """Kill all tasks of a process. Returns their number."""
        killed = [task for task in self.alive if task.process is process]
        self.alive = [task for task in self.alive if task.process is not process]
        for task in killed:
            self.current = task
            task.kill()
        self.current = None
        return len(killed)

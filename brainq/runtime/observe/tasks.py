"""Background tasks of an event loop. They are started and kept alive as `threads` does for threads.

asyncio ends a task at its first unhandled exception. SystemExit and KeyboardInterrupt also end the loop, and every
other task with it. Neither reaches the loop from a task that is started here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from brainq.runtime.observe.threads import Kept, report_end


def start_task(name: str, work: Coroutine[Any, Any, object]) -> asyncio.Task[None]:
    """Await `work` once in a task of the running loop. Its exceptions are logged and counted."""

    async def run() -> None:
        try:
            await work
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as failure:
            report_end(name, failure)

    return asyncio.create_task(run(), name=name)


class KeptTask(Kept):
    """A task of the running loop that awaits `work()` until it is cancelled. If that raises or returns before, it is
    called again. No exception reaches the loop: SystemExit would end it, and every other task."""

    def __init__(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None
        super().__init__(name)

    def ensure(self) -> None:
        """Start the task unless it is running."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(), name=self.name)

    async def stop(self) -> None:
        """Cancel the task, and wait until it has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _keep(self) -> None:
        task = asyncio.current_task()
        while task is not None and not task.cancelling():
            self.began = time.monotonic()
            try:
                await self._work()
                failure: BaseException = RuntimeError("the task returned before it was stopped")
            except BaseException as raised:
                failure = raised
            if not task.cancelling():
                await asyncio.sleep(self.failed(failure))

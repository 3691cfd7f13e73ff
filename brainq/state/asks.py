"""Quick commands of many tasks over one connection, those of one moment in one round trip."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import redis

from brainq.state.async_line import AsyncLine
from brainq.state.connection import AWAY, Command

FIRST_BACKOFF_S = 0.05
LONGEST_BACKOFF_S = 1.0
TOGETHER = 20  # askers a round trip; each may get a page of events back

_Asked = tuple[Sequence[Command], "asyncio.Future[list[Any]]"]


class Asks:
    """A task of its own asks, and ends when nobody waits: an asker that is cancelled breaks no connection.

    What is asked here may be asked twice without harm. A connection that was open and broke is therefore tried once
    more, opened anew.
    """

    def __init__(self, line: AsyncLine) -> None:
        self._line = line
        self._waiting: deque[_Asked] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed: Exception | None = None

    async def ask(self, *commands: Command, patience_s: float = 0.0) -> list[Any]:
        """The raw replies, in order. Raises redis' errors, the first that a command got among them.

        patience_s   for so long it asks again while Redis is away
        """
        until, backoff_s = time.monotonic() + patience_s, FIRST_BACKOFF_S
        while True:
            try:
                replies = await self._put(commands)
            except AWAY:
                if time.monotonic() + backoff_s > until:
                    raise
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, LONGEST_BACKOFF_S)
                continue
            for reply in replies:
                if isinstance(reply, redis.ResponseError):
                    raise reply
            return replies

    def tell(self, *commands: Command) -> None:
        """Ask, and wait for nothing. A failure is lost."""
        if self._closed is None:
            # Whoever looks at an exception has it: else asyncio complains that nobody did.
            self._put(commands).add_done_callback(lambda told: told.cancelled() or told.exception())

    async def close(self, error: Exception) -> None:
        """Whoever asks, or waits for a reply, gets `error`."""
        self._closed = error
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        while self._waiting:
            _answer(self._waiting.popleft()[1], error)
        await self._line.close()

    def _put(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]]:
        if self._closed is not None:
            raise self._closed
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((commands, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="brainq-asks")
        return future

    async def _run(self) -> None:
        task = asyncio.current_task()
        while self._waiting and task is not None and not task.cancelling():
            some = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
            try:
                replies = await self._asked([command for commands, _ in some for command in commands])
            except Exception as failure:
                for _, future in some:
                    _answer(future, failure)
                continue
            except BaseException:
                self._waiting.extendleft(reversed(some))
                raise
            at = 0
            for commands, future in some:
                _answer(future, replies[at : at + len(commands)])
                at += len(commands)

    async def _asked(self, commands: Sequence[Command]) -> list[Any]:
        was_open = self._line.is_open
        try:
            return await self._line.ask(commands)
        except AWAY:
            if not was_open:
                raise
            return await self._line.ask(commands)


def _answer(future: asyncio.Future[list[Any]], answer: list[Any] | Exception) -> None:
    if future.done():  # its asker went away
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)

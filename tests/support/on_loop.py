"""An asynchronous client driven like a blocking one, so that one test asks both."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, Self


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop-of-a-test")
        self._thread.start()

    def run(self, work: Awaitable[Any]) -> Any:
        async def waited() -> Any:
            return await work

        return asyncio.run_coroutine_threadsafe(waited(), self._loop).result(120)

    def call(self, make: Any, *args: Any, **named: Any) -> Any:
        """Call something on the loop, which an asynchronous client needs to be made there."""

        async def called() -> Any:
            return make(*args, **named)

        return self.run(called())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


class Driven:
    """What is asynchronous of `target`, its verbs and what they return, as blocking calls."""

    def __init__(self, target: Any, loop: Loop) -> None:
        self.target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.target, name)
        return self._blocking(found) if callable(found) else self._shown(found)

    def _blocking(self, verb: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            return self._shown(self._called(verb, args, named))

        return call

    def _called(self, verb: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        made = self._loop.call(verb, *args, **named)
        return self._loop.run(made) if inspect.isawaitable(made) else made

    def _shown(self, found: Any) -> Any:
        if hasattr(found, "__anext__"):
            return self._items(found)
        return Driven(found, self._loop) if type(found).__name__.startswith("Async") else found

    def _items(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        try:
            while (item := self._loop.run(_next(items))) is not None:
                yield item
        finally:
            close: Any = getattr(items, "aclose")  # noqa: B009
            self._loop.run(close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self.target.__aexit__(None, None, None))


async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items, None)

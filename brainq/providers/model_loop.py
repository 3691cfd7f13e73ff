"""One event loop a process, in a thread of its own, for models that are asked asynchronously."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_made: list[tuple[int, asyncio.AbstractEventLoop]] = []


def model_loop() -> asyncio.AbstractEventLoop:
    """The running loop. A child of a fork gets one of its own: threads do not come along."""
    with _lock:
        if not _made or _made[0][0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="brainq-models", daemon=True).start()
            _made[:] = [(os.getpid(), loop)]
        return _made[0][1]


def on_loop(work: Coroutine[Any, Any, T], limit_s: float) -> T:
    """What `work` returns or raises there; TimeoutError after `limit_s`."""
    return asyncio.run_coroutine_threadsafe(work, model_loop()).result(limit_s)

"""The one event loop of this process for async tools."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass


@dataclass(slots=True)
class _Running:
    pid: int
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread


_lock = threading.Lock()
_running: _Running | None = None


def tool_loop() -> asyncio.AbstractEventLoop:
    """The running loop; its daemon thread is started at the first use, and again after a fork."""
    global _running
    found = _running
    if found is not None and found.pid == os.getpid():
        return found.loop
    with _lock:
        if _running is None or _running.pid != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="brainq-tool-loop", daemon=True)
            thread.start()
            _running = _Running(os.getpid(), loop, thread)
        return _running.loop


def stop_tool_loop() -> None:
    """Stop the loop, wait for its thread and cancel what still runs; the next use starts another."""
    global _running
    with _lock:
        found, _running = _running, None
    if found is None or found.pid != os.getpid():
        return
    found.loop.call_soon_threadsafe(found.loop.stop)
    found.thread.join()
    for task in asyncio.all_tasks(found.loop):
        task.cancel()
    found.loop.run_until_complete(asyncio.sleep(0))
    found.loop.close()

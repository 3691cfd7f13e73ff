"""AsyncMemories: the same on an event loop."""

from __future__ import annotations

from brainq.client.awaited import awaited, looked_up
from brainq.client.memories import Memories
from brainq.client.threads import Threads


class AsyncMemories:
    """`Memories` whose verbs are awaited: `list`, `forget`, `forget_all`; each takes a thread while it runs."""

    def __init__(self, threads: Threads, memories: Memories) -> None:
        self._threads = threads
        self._sync = memories

    list = looked_up(Memories.list)
    forget = awaited(Memories.forget)
    forget_all = awaited(Memories.forget_all)

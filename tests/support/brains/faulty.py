"""A brain whose tools and rules exit on order, in workers whose background threads fail as a test orders.

The faults are injected where a thread waits, because every loop waits. Each process has each fault once, or for as long
as it is ordered, and records it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from redis.client import PubSub

from brainq import Brain, Effect, RunContext
from tests.support.brains import diary
from tests.support.brains.obedient import Slowly, obey

ORDER = "thread-faults"
IN_WORKERS = "BRAINQ_TEST_FAULTS"
"""Set only in the workers, because the tests' process loads this module, too."""
FAULTS: dict[str, type[BaseException]] = {each.__name__: each for each in (ValueError, MemoryError, SystemExit)}

brain = Brain("faulty", Slowly(rules=obey), "Do as you are told.")


def leave_if(word: str) -> None:
    if word == "exit":
        sys.exit(3)
    if word == "interrupt":
        raise KeyboardInterrupt


async def _rule(arguments: dict[str, Any]) -> bool:
    leave_if(arguments.get("rule", ""))
    return False


@brain.tool(effect=Effect.LOCAL_WRITE, approval=_rule)
async def act(rule: str = "", tool: str = "") -> str:
    """Act."""
    await asyncio.sleep(0)
    leave_if(tool)
    return "acted"


@brain.tool(effect=Effect.LOCAL_WRITE)
def hold(context: RunContext, gate: str) -> str:
    """Hold."""
    diary.note("hold", turn=context.turn_id, attempt=context.attempt)
    while not context.token.is_expired and not (diary.directory() / f"gate-{gate}").exists():
        context.token.wait(0.01)
    return "held"


class ThreadFaults:
    """The faults that this process has had so far."""

    def __init__(self) -> None:
        self._had: set[tuple[int, str]] = set()
        self._lock = threading.RLock()

    def raise_due(self, _waits: object) -> None:
        """Raise the fault that is ordered for the waiting thread: once, or always if its number is below 0."""
        name = threading.current_thread().name
        if not name.startswith("brainq-") or name.startswith("brainq-task-") or not (text := diary.ordered(ORDER)):
            return
        number, kind, names = json.loads(text)
        if name not in names or (number >= 0 and not self._is_first(number, name)):
            return
        diary.note("fault", number=number, thread=name)
        raise FAULTS[kind]("by order of a test")

    def refuse_first(self, thread: threading.Thread) -> None:
        """Refuse the first start of each thread."""
        name = thread.name
        if name.startswith("brainq-") and not name.startswith("brainq-task-") and self._is_first(0, name):
            diary.note("refused", thread=name)
            raise RuntimeError("can't start new thread")

    def _is_first(self, number: int, name: str) -> bool:
        with self._lock:
            is_first = (number, name) not in self._had
            self._had.add((number, name))
            return is_first


def _before(owner: Any, name: str, act: Callable[..., object]) -> None:
    plain = getattr(owner, name)

    def patched(*args: Any, **named: Any) -> Any:
        act(args[0])
        return plain(*args, **named)

    setattr(owner, name, patched)


if IN_WORKERS in os.environ:
    faults = ThreadFaults()
    for owner, waits in ((threading.Condition, "wait"), (PubSub, "get_message"), (asyncio.BaseEventLoop, "_run_once")):
        _before(owner, waits, faults.raise_due)
    _before(threading.Thread, "start", faults.refuse_first)

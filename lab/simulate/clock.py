"""Virtual time: the replacements for clocks, sleep, threads and random names in the modules of the machines.

Redis' clock is read in one place, `lua/lib/now.lua`. The loader replaces it; every other line of a script is the same
as in production, which a test compares. SQLite's clock is `strftime('now')`, which a connection may redefine.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any
from unittest import mock

import brainq.adapters.redis.scripts as scripts
import brainq.app.wiring.machines as machines
import brainq.engine.calls.executor as executor
import brainq.engine.calls.function_run as function_run
import brainq.engine.people.approvals as approvals
import brainq.engine.tools.deadline as deadline
import brainq.engine.turn.step_request as step_request
import brainq.runtime.leases as leases
import brainq.runtime.observe.threads as kept
import brainq.runtime.processes.threads as threads
import brainq.runtime.processes.timers as timers
from brainq.adapters.redis.doorbells import Doorbells
from brainq.engine.turn.step import StepRunner
from brainq.runtime.outage import OutagePolicy, OutageRetry
from brainq.testing.clock import with_clock
from lab.simulate.hub import Hub, VirtualQueue, VirtualThreading

CLOCK = "simulated_clock"
VIRTUAL_NOW = f"""-- The virtual clock in place of Redis TIME.
local clock = redis.call('HMGET', '{CLOCK}', 's', 'us')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""


def with_virtual_clock(bells: Doorbells) -> Doorbells:
    return with_clock(bells, VIRTUAL_NOW)


class VirtualDatetime(datetime):
    """A datetime whose `now` reads the virtual clock of the current run."""

    hub: Hub | None = None

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        assert cls.hub is not None
        return datetime.fromtimestamp(cls.hub.now_s, tz)


@dataclass(eq=False)
class ClockOfThread:
    """A clock that is virtual in the thread of the run. Other threads keep the real functions."""

    hub: Hub
    thread: int

    def patched(self, name: str, virtual: Any) -> Any:
        real = getattr(time, name)

        def read(*given: Any) -> Any:
            return virtual(*given) if threading.get_ident() == self.thread else real(*given)

        return mock.patch.object(time, name, read)


@contextmanager
def virtual_time(hub: Hub, rng: Random) -> Generator[None]:
    """Make everything in this thread use the hub's clock and draw random numbers from `rng`."""
    threading_of_hub, clock = VirtualThreading(hub), ClockOfThread(hub, threading.get_ident())
    waits = {"pause": hub.sleep}
    with ExitStack() as stack:
        for patch in (
            clock.patched("monotonic", lambda: hub.now_s),
            clock.patched("time", lambda: hub.now_s),
            clock.patched("time_ns", lambda: hub.now_us * 1000),
            clock.patched("sleep", hub.sleep),
            *(mock.patch.object(module, "threading", threading_of_hub) for module in (kept, leases, timers, deadline)),
            mock.patch.object(threads, "SimpleQueue", partial(VirtualQueue, hub)),
            mock.patch.object(threads, "run_in_thread", partial(_run_in_task, hub)),
            mock.patch.object(executor, "FunctionRun", partial(_function_run, hub)),
            # The defaults of these classes are the real functions, bound when the classes were defined.
            mock.patch.object(scripts, "OutageRetry", partial(OutageRetry, **waits)),
            mock.patch.object(machines, "OutagePolicy", partial(OutagePolicy, **waits)),
            mock.patch.object(machines, "StepRunner", partial(StepRunner, **waits)),
            mock.patch.object(approvals, "datetime", VirtualDatetime),
            mock.patch.object(step_request, "datetime", VirtualDatetime),
            mock.patch.object(VirtualDatetime, "hub", hub),
            mock.patch.object(secrets, "token_hex", lambda size=16: rng.randbytes(size).hex()),
            mock.patch.object(secrets, "token_urlsafe", lambda size=16: rng.randbytes(size).hex()),
            mock.patch.object(secrets, "randbits", rng.getrandbits),
            mock.patch.object(uuid, "uuid4", partial(_uuid, rng)),
        ):
            stack.enter_context(patch)
        state = random.getstate()
        stack.callback(random.setstate, state)
        random.seed(rng.getrandbits(64))  # retries draw their pauses from the module
        yield


def _uuid(rng: Random) -> uuid.UUID:
    return uuid.UUID(int=rng.getrandbits(128))


def _run_in_task(hub: Hub, work: Any) -> None:
    assert hub.current is not None
    hub.spawn("within", hub.current.owner, work)


def _function_run(hub: Hub, context: Any, on_late: Any = None) -> Any:
    lock: Any = VirtualThreading(hub).Lock()
    return function_run.FunctionRun(context, on_late, _started=hub.now_s, _lock=lock)

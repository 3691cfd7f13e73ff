"""The polling of servers for the tasks that parked calls wait for, until each task has its result.

    put ──► park ──► watch ──► poll at the server's pace ──► the call's result, or a cancel if no call waits
                       ▲
    a task whose process has stopped its heartbeats ──► take

A parked call holds no worker: the polling runs on the event loop of the process's tools. Every step may be repeated,
because a call accepts only one result.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from asyncio import to_thread
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from brainq.contracts.call import ServerTask, ServerTaskWatch
from brainq.contracts.claim import CallClaim
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import ByBrain
from brainq.engine.calls.executor import TOOL_LOOP
from brainq.engine.calls.function_run import jsonable
from brainq.engine.tools.mcp.calls import ServerTool
from brainq.engine.tools.results import OutcomeUnknown, ToolError, WithFiles, split_files
from brainq.engine.tools.tool import TaskEnd
from brainq.errors import InvalidInput, TokenRefused
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe.logs import OutageLog, logger, turn_log_ids

if TYPE_CHECKING:
    from brainq.adapters.redis.outside import RedisOutsideResults

log = logger("brainq.calls")

MIN_DELAY_S, MAX_DELAY_S = 1.0, 60.0
AGE_SHARE = 0.1  # the share of a task's age after which it is polled again, so that a long task is polled rarely
TAKE_AT_ONCE = 20
ServedEffect = tuple[str, Effect]
"""The name of a brain ("" for the default one) and an effect of its calls."""


def poll_delay_s(poll_ms: int, watched_s: float, failures: int) -> float:
    """Return how long to wait before the next poll. `failures` counts the polls in a row that failed. Pure."""
    pace_s = max(poll_ms / 1000, watched_s * AGE_SHARE, MIN_DELAY_S)
    return min(MAX_DELAY_S, pace_s * 2 ** min(failures, 10))


@dataclass(eq=False, kw_only=True)
class ServerTaskWatcher:
    """The watcher of tasks that servers run. Each process that runs calls has one.

    beats      the renewer of the watched tasks' leases, which is stopped by `close`
    lease_s    the lease of a watched task, and the interval between two searches for tasks whose lease has lapsed
    complete   sets the result of a call by its token; raises InvalidInput and TokenRefused
    fail       ends a call without a result, by its token
    """

    tasks: RedisOutsideResults
    brains: ByBrain[Brain]
    beats: LeaseRenewer
    lease_s: float
    complete: Callable[[str, object], object]
    fail: Callable[[str, ToolError | OutcomeUnknown], object]
    _watched: dict[str, ServerTaskWatch] = field(default_factory=dict[str, ServerTaskWatch])
    _running: set[Future[None]] = field(default_factory=set[Future[None]])

    def begin(self) -> None:
        """Start taking over tasks that no process watches any more, if a brain has tools that run as tasks."""
        places = {place for name in ("", *self.brains.names) for place in self._served_effects(name)}
        if places:
            self._start(self._take_forever(places))

    def put(self, claim: CallClaim, task: ServerTask, token: str) -> ServerTaskWatch:
        """Record the task. This happens before its call parks."""
        return self.tasks.put_task(claim, task, token)

    def watch(self, task: ServerTaskWatch) -> None:
        """Start polling the task of a call that has parked."""
        self._start(self._watch(task, taken=False))

    def abandon(self, task: ServerTaskWatch) -> None:
        """Cancel the task of a call that could not park."""
        self._start(self._end(task))

    def close(self) -> None:
        """Stop polling, and leave the tasks to other processes."""
        left = list(self._watched.values())
        for running in list(self._running):
            running.cancel()
        self.beats.stop()
        try:
            self.tasks.leave_tasks(left)
        except Exception as failure:  # their leases lapse instead, and other processes take them
            log.warning("the tasks of servers were not handed over", failure=failure, tasks=len(left))

    def _served_effects(self, name: str) -> set[ServedEffect]:
        brain = self.brains.of(name)
        tools = [] if brain is None else brain.tools.values()
        return {(name, tool.spec.effect) for tool in tools if tool.tasks is not None}

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        running = asyncio.run_coroutine_threadsafe(work, TOOL_LOOP.loop)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _take_forever(self, places: set[ServedEffect]) -> None:
        outage = OutageLog(log, "look for tasks of servers")
        while True:
            try:
                for task in await to_thread(self._taken, places):
                    self._start(self._watch(task, taken=True))
                outage.worked()
            except Exception as failure:
                outage.failed(failure)
            await asyncio.sleep(self.lease_s)

    def _taken(self, places: set[ServedEffect]) -> list[ServerTaskWatch]:
        found = self.tasks.lapsed_tasks(places, TAKE_AT_ONCE)
        return [task for task in found if task.row not in self._watched and self.tasks.take_task(task)]

    async def _watch(self, task: ServerTaskWatch, *, taken: bool) -> None:
        ref, loop, over = task.ref, asyncio.get_running_loop(), asyncio.Event()

        def lost(_word: str) -> None:
            loop.call_soon_threadsafe(over.set)

        with turn_log_ids(ref.session_id, ref.turn_id, ref.call_id):
            if taken and (word := await to_thread(self.tasks.beat_task, task)) != "OK":
                if word == "OVER":
                    await self._end(task)
                return  # the call has not parked yet
            self._watched[task.row] = task
            try:
                beat = partial(self.tasks.beat_task, task)
                with self.beats.renew(beat, lost):
                    end = await self._poll_until_end(task, over, at_once=taken)
                    if end is not None:
                        await self._settle(task, end.result, over)
                if end is None or end.goes_on:
                    await self._end(task)
                else:
                    await self._drop(task)
            except Exception as failure:  # the task is taken again when its lease has lapsed
                log.error("a server's task is no longer watched", failure=failure)
            finally:
                self._watched.pop(task.row, None)

    async def _poll_until_end(self, task: ServerTaskWatch, over: asyncio.Event, *, at_once: bool) -> TaskEnd | None:
        """Poll until the task ends. Returns its end, or None if its call no longer waits."""
        server = self._server(task)
        if server is None:
            gone = OutcomeUnknown(f"No worker has the tool {task.tool!r} any more, whose server runs the task.")
            return TaskEnd(gone)
        since, failures, poll_ms, published = time.monotonic(), 0, task.task.poll_ms, ""
        outage = OutageLog(log, "ask for a server's task")
        pause_s = 0.0 if at_once else poll_delay_s(poll_ms, 0.0, 0)
        while not await _is_set(over, pause_s):
            try:
                state = await server.poll(task.task)
            except Exception as failure:  # ServerAway, or an unexpected error that any process would meet
                failures += 1
                outage.failed(failure)
            else:
                if isinstance(state, TaskEnd):
                    return state
                failures, poll_ms = 0, state.poll_ms or poll_ms
                outage.worked()
                if state.message and state.message != published:
                    published = state.message
                    await to_thread(self._publish_progress, task, published)
            pause_s = poll_delay_s(poll_ms, time.monotonic() - since, failures)
        return None

    async def _settle(self, task: ServerTaskWatch, result: Any, over: asyncio.Event) -> None:
        """Set the call's result. Retries while Redis or SQL is unavailable, unless the call no longer waits."""
        outage = OutageLog(log, "record the result of a server's task")
        failures = 0
        while True:
            try:
                await to_thread(self._deliver, task.token, result)
                return
            except TokenRefused:  # the call already has a result
                return
            except Exception as failure:
                outage.failed(failure)
            failures += 1
            if await _is_set(over, poll_delay_s(0, 0.0, failures)):
                return

    def _deliver(self, token: str, result: Any) -> None:
        if isinstance(result, ToolError | OutcomeUnknown):
            self.fail(token, result)
            return
        value, files = split_files(result)
        plain = jsonable(value)
        try:
            self.complete(token, WithFiles(plain, files) if files else plain)
        except InvalidInput as wrong:
            if not files:
                raise
            text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
            self.complete(token, f"{text}\n[the files of this result are missing: {wrong}]")

    def _publish_progress(self, task: ServerTaskWatch, message: str) -> None:
        with contextlib.suppress(Exception):  # readers then miss one progress message
            self.tasks.publish_task_progress(task, message)

    async def _end(self, task: ServerTaskWatch) -> None:
        """Cancel a task whose result is no longer needed, and remove its record, so that it is not polled again."""
        server = self._server(task)
        if server is not None:
            await server.cancel(task.task)
        await self._drop(task)

    async def _drop(self, task: ServerTaskWatch) -> None:
        try:
            await to_thread(self.tasks.drop_task, task)
        except Exception as failure:  # the lease lapses, and the next watcher finds that no call waits
            log.warning("the task of a server was not dropped", failure=failure)

    def _server(self, task: ServerTaskWatch) -> ServerTool | None:
        brain = self.brains.of(task.brain)
        tool = None if brain is None else brain.tools.get(task.tool)
        return None if tool is None else tool.tasks


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), within_s)
    except TimeoutError:
        return False
    return True

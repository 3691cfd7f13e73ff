"""What a test does at the moment at which a tool begins or ends, and results that take the place of a tool's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import CallReturn, FunctionRun, OnCut, OnLate
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from brainq.engine.tools.tool import Tool

At = Literal["start", "end"]


class Killed(BaseException):
    """The worker that ran this call is dead to the run, which is over."""


@dataclass(eq=False)
class Moment:
    """Something to do once, in the call's thread, when the next call of `tool` begins or ends."""

    tool: str
    at: At
    act: Callable[[], object]
    what: str


@dataclass(eq=False)
class Moments:
    """The moments of a run that have not come, the tokens of calls that wait for a result, and given results.

    results: by tool, or by call id, what calls return in turn instead of running; an Exception is raised.
    """

    results: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    planned: list[Moment] = field(default_factory=list[Moment])
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    _given: dict[str, int] = field(default_factory=dict[str, int])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def come(self, tool: str, at: At) -> None:
        """Do what is planned for this moment, in the order in which it was planned."""
        with self._lock:
            due = [moment for moment in self.planned if (moment.tool, moment.at) == (tool, at)]
            self.planned = [moment for moment in self.planned if moment not in due]
        for moment in due:
            moment.act()

    def given(self, tool: str, call_id: str) -> tuple[Any, ...]:
        """Return the result that takes the place of the next call's, in a tuple; an empty one if the tool runs."""
        key = call_id if call_id in self.results else tool
        with self._lock:
            results = self.results.get(key)
            if results is None:
                return ()
            number = self._given.get(key, 0)
            self._given[key] = number + 1
        if number >= len(results):
            return (AssertionError(f"{key} was called {number + 1} times, and has {len(results)} results"),)
        return (results[number],)


class WatchedExecutor(BoundedToolExecutor):
    """An executor that stops at the moments of a run. Tools with `isolation="process"` run in threads."""

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        self._moments = moments

    def run(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: RunContext,
        *,
        in_child: bool = False,
        on_cut: OnCut,
        on_late: OnLate | None = None,
    ) -> CallReturn | None:
        self._moments.come(tool.name, "start")
        ended = self._given(tool, context)
        if ended is None:
            ended = super().run(_in_thread(tool), arguments, context, on_cut=on_cut, on_late=on_late)
        if isinstance(ended, Pending):
            self._moments.tokens[f"{context.turn_id}-{context.call_id}"] = ended.token
        if ended is not None:
            self._moments.come(tool.name, "end")
        return ended

    def _given(self, tool: Tool, context: RunContext) -> CallReturn | None:
        for result in self._moments.given(tool.name, context.call_id):
            run = FunctionRun(context)
            return run.raised(result) if isinstance(result, BaseException) else run.returned(result)
        return None


def _in_thread(tool: Tool) -> Tool:
    if tool.spec.isolation == "thread":
        return tool
    return replace(tool, spec=tool.spec.model_copy(update={"isolation": "thread"}))

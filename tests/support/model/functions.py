"""The running functions of tools: which may not run at once, and which may run only once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import redis

from brainq.contracts.call import ToolFailure, ToolSuccess, ToolTimeout, parse_outside_token
from brainq.contracts.claim import CallRef
from brainq.engine.calls.function_run import CallReturn, OnCut, OnLate
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from tests.support.model.rules import require
from tests.support.model.tokens import make_token

MayStart = Callable[[CallRef, dict[str, Any]], None]


@dataclass(eq=False, slots=True)
class Running:
    """A function between its start and its end. `frozen` means that its process was taken for dead while it ran."""

    holder: str
    attempt: int
    lanes: frozenset[str]
    process: object
    frozen: bool = False


class Functions:
    """All functions that run now, in any process, and the tokens of results that will come from outside."""

    def __init__(self, may_start: MayStart, on_token: Callable[[str], None]) -> None:
        self._may_start = may_start
        self._on_token = on_token
        self.running: list[Running] = []
        self.starts: dict[str, int] = {}
        self.writes: set[str] = set()  # that have started
        self.tokens: list[str] = []

    def start(self, ref: CallRef, attempt: int, arguments: dict[str, Any], process: object) -> Running:
        """Start a function. Raises BrokenRule if it may not start."""
        self._may_start(ref, arguments)
        holder = ref.holder
        lanes = frozenset(arguments["lanes"])
        for other in self.running:
            shared = lanes & other.lanes
            require(
                not shared or other.frozen,
                "two functions run in one lane",
                holder,
                attempt,
                "beside",
                other.holder,
                other.attempt,
                sorted(shared),
            )
        count = self.starts[holder] = self.starts.get(holder, 0) + 1
        once = arguments["write"] and not arguments["again"]
        require(count == 1 or not once, "a write started twice", holder, count)
        if arguments["write"]:
            self.writes.add(holder)
        function = Running(holder, attempt, lanes, process)
        self.running.append(function)
        return function

    def give(self, token: str) -> None:
        """Note that somebody outside has the token from now on."""
        self.tokens.append(token)
        self._on_token(token)

    def end(self, function: Running) -> None:
        if function in self.running:
            self.running.remove(function)

    def freeze(self, holder: str) -> None:
        """End the lease of this call while its function runs, as if its process were dead."""
        for function in self.running:
            if function.holder == holder:
                function.frozen = True

    def kill_of(self, process: object) -> None:
        self.running = [function for function in self.running if function.process is not process]


class Executor:
    """A stand-in for `engine.calls.executor.BoundedToolExecutor`. `waits` draws whether a result comes from outside."""

    def __init__(
        self,
        rng: Random,
        functions: Functions,
        process: object,
        give_way: Callable[[], None],
        spawn: Callable[[str, Callable[[], None]], None],
        waits: Callable[[], bool],
    ) -> None:
        self._rng = rng
        self._functions = functions
        self._process = process
        self._give_way = give_way
        self._spawn = spawn
        self._waits = waits

    def run(
        self,
        tool: Any,
        arguments: dict[str, Any],
        context: RunContext,
        *,
        in_child: bool,
        on_cut: OnCut,
        on_late: OnLate,
    ) -> CallReturn:
        if in_child:
            return self._run_in_child(arguments, context)
        ref = CallRef(context.session_id, context.turn_id, context.call_id)
        function = self._functions.start(ref, context.attempt, arguments, self._process)
        outside = ""
        if self._waits():
            try:
                outside = self._token(ref, context)
            except redis.ConnectionError as away:
                self._functions.end(function)
                return ToolFailure(error=str(away))
        for _ in range(self._rng.randint(1, 6 if outside else 3)):
            self._give_way()
        roll = self._rng.random()
        if roll < 0.2 or context.token.is_cancelled:
            self._spawn(f"late {ref.holder}", lambda: self._end_late(function, on_late))
            return ToolTimeout(after_ms=1, still_running=True)
        self._functions.end(function)
        if outside:
            return Pending(outside, 3600.0)
        if arguments["write"] and roll > 0.8:
            context.record_change("a.md", "before", f"after {ref.holder}")
        return ToolSuccess(value="done") if roll < 0.9 else ToolFailure(error="it failed")

    def _run_in_child(self, arguments: dict[str, Any], context: RunContext) -> CallReturn:
        """Run the function as in its own child process: a function that is cut off is killed, and never ends late."""
        ref = CallRef(context.session_id, context.turn_id, context.call_id)
        function = self._functions.start(ref, context.attempt, arguments, self._process)
        for _ in range(self._rng.randint(1, 3)):
            self._give_way()
        self._functions.end(function)
        return ToolTimeout(after_ms=1) if context.token.is_cancelled else ToolSuccess(value="done")

    def _token(self, ref: CallRef, context: RunContext) -> str:
        """Return a token as `context.outside_token()` does, but drawn from the seed, or a name of the tool's own."""
        token = make_token(self._rng, ref)
        if parse_outside_token(token) is not None:
            token = cast(str, getattr(context, "_give_token")(token))  # noqa: B009 - nobody else may call it
        self._functions.give(token)
        return token

    def _end_late(self, function: Running, on_late: OnLate) -> None:
        for _ in range(self._rng.randint(1, 6)):
            self._give_way()
        self._functions.end(function)
        on_late(ToolSuccess(value="done after all"))

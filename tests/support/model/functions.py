"""The tools' functions while they run: when two may not run at once, and which may run only once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from brainq.calls.attempt import OnLate
from brainq.contracts.outcome import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.tools.context import RunContext
from brainq.tools.deadline import DeadlineToken
from tests.support.model.rules import require


@dataclass(eq=False, slots=True)
class Running:
    """A function between its start and its end. `frozen`: its process was taken for dead while it ran."""

    holder: str
    attempt: int
    lanes: frozenset[str]
    process: object
    frozen: bool = False


class Functions:
    """All functions that run just now, in any process."""

    def __init__(self) -> None:
        self.running: list[Running] = []
        self.starts: dict[str, int] = {}

    def start(self, holder: str, attempt: int, arguments: dict[str, Any], process: object) -> Running:
        """Raises BrokenRule when it may not start."""
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
        function = Running(holder, attempt, lanes, process)
        self.running.append(function)
        return function

    def end(self, function: Running) -> None:
        if function in self.running:
            self.running.remove(function)

    def freeze(self, holder: str) -> None:
        """The lease of this call ends while its function runs: for everybody else its process is dead."""
        for function in self.running:
            if function.holder == holder:
                function.frozen = True

    def kill_of(self, process: object) -> None:
        self.running = [function for function in self.running if function.process is not process]


class Executor:
    """Stands for `calls.executor.BoundedToolExecutor`."""

    def __init__(
        self,
        rng: Random,
        functions: Functions,
        process: object,
        give_way: Callable[[], None],
        spawn: Callable[[str, Callable[[], None]], None],
    ) -> None:
        self._rng = rng
        self._functions = functions
        self._process = process
        self._give_way = give_way
        self._spawn = spawn

    def run(
        self,
        tool: Any,
        arguments: dict[str, Any],
        context: RunContext,
        token: DeadlineToken,
        *,
        on_late: OnLate,
    ) -> ToolOutcome:
        holder = f"{context.session_id} {context.turn_id} {context.call_id}"
        function = self._functions.start(holder, context.attempt, arguments, self._process)
        for _ in range(self._rng.randint(1, 3)):
            self._give_way()
        roll = self._rng.random()
        if roll < 0.2 or token.is_cancelled:
            self._spawn(f"late {holder}", lambda: self._end_late(function, on_late))
            return ToolTimeout(after_ms=1, still_running=True)
        self._functions.end(function)
        return ToolSuccess(value="done") if roll < 0.9 else ToolFailure(error="it failed")

    def _end_late(self, function: Running, on_late: OnLate) -> None:
        for _ in range(self._rng.randint(1, 6)):
            self._give_way()
        self._functions.end(function)
        on_late(ToolSuccess(value="done after all"))

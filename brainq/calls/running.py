"""A claimed call from the start of its function to its settled result."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from brainq.beats import Beats
from brainq.calls.ended import Ended
from brainq.calls.executor import BoundedToolExecutor
from brainq.calls.own_thread import Abandon
from brainq.calls.settle import CallSettler
from brainq.contracts.claim import CallClaim
from brainq.contracts.outcome import ToolOutcome, ToolTimeout
from brainq.ports.lanes import Lanes
from brainq.tools.context import RunContext
from brainq.tools.tool import Tool


@dataclass(eq=False, slots=True)
class RunningCall:
    """One call. Where its function is cut off, it is settled in another thread, while the function has this one.

    held   what goes on until the call is settled: beats for its lease, an ear for stops
    did    what was done, in a word
    """

    claim: CallClaim
    tool: Tool
    context: RunContext
    settler: CallSettler
    beats: Beats
    lanes: Lanes
    held: ExitStack
    abandon: Abandon
    did: str = "not settled"
    has_ended: bool = False

    def run(self, executor: BoundedToolExecutor) -> str:
        """Call the function, settle the call, and say what was done."""
        ended = executor.run(
            self.tool, self.claim.arguments, self.context, on_cut=self._cut_off, on_late=self._ended_late
        )
        if ended is not None:
            self._settle(ended)
        return self.did

    def run_apart(self, executor: BoundedToolExecutor) -> str:
        """As `run`, in a process where nothing else runs."""
        self._settle(executor.run_apart(self.tool, self.claim.arguments, self.context))
        return self.did

    def _settle(self, ended: Ended) -> str:
        if isinstance(ended, ToolTimeout) and ended.still_running and self.claim.lanes:
            self.beats.renew(self._keep_lanes, _ignore)
        self.did = self.settler.end(self.claim, self.tool, self.context, ended)
        return self.did

    def _cut_off(self, timeout: ToolTimeout) -> None:
        with self.held:
            self.abandon(partial(self._settle, timeout))

    def _ended_late(self, outcome: ToolOutcome) -> None:
        try:
            self.settler.end_late(self.claim, outcome)
        finally:
            self.has_ended = True

    def _keep_lanes(self) -> str:
        """A beat for the lanes of a function that was cut off, until it has ended."""
        return "LOST" if self.has_ended else self.lanes.beat(self.claim.ref)


def _ignore(word: str) -> None:
    """The lanes were left, or taken from us after a freeze: there is nothing to beat for."""

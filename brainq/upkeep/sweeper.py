"""Sweeper: looks at every turn that is due, and has done what is found to be missing."""

from __future__ import annotations

import threading
import time

from brainq.contracts.claim import CallRef
from brainq.observe.logs import logger
from brainq.observe.outage import Outage
from brainq.upkeep.compare import Comparer
from brainq.upkeep.judges import JudgeBells
from brainq.upkeep.parks import Parks
from brainq.upkeep.ports import (
    Brakes,
    Calls,
    Children,
    Coordinator,
    Finalizer,
    Index,
    Inputs,
    LaneKeeper,
    Lanes,
    Opening,
    Watchers,
)
from brainq.upkeep.rescue import Rescuer

log = logger("brainq.upkeep")

TURNS_AT_ONCE = 200
LANES_AT_ONCE = 100
COMPARE_EVERY_SWEEPS = 5


class Sweeper:
    """One loop a coordinator process. Everything it does is fenced: any number may run."""

    def __init__(
        self,
        *,
        every_s: float,
        index: Index,
        calls: Calls,
        lanes: Lanes,
        keeper: LaneKeeper,
        rescuer: Rescuer,
        comparer: Comparer,
        coordinator: Coordinator,
        finalizer: Finalizer,
        opening: Opening,
        judges: JudgeBells,
        parks: Parks,
        children: Children,
        inputs: Inputs,
        brakes: Brakes,
    ) -> None:
        self._every_s = every_s
        self._index = index
        self._calls = calls
        self._lanes = lanes
        self._keeper = keeper
        self._rescuer = rescuer
        self._comparer = comparer
        self._coordinator = coordinator
        self._finalizer = finalizer
        self._opening = opening
        self._judges = judges
        self._parks = parks
        self._children = children
        self._inputs = inputs
        self._watchers: Watchers | None = None
        self._brakes = brakes

    def run(self, stop: threading.Event, watchers: Watchers | None = None) -> None:
        """Sweep until told to stop. An error (Redis or SQL away) is logged and tried again."""
        self._watchers = watchers
        sweeps = 0
        outage = Outage(log, "sweep")
        while not stop.wait(self._every_s):
            started = time.monotonic()
            try:
                self.sweep()
                if sweeps % COMPARE_EVERY_SWEEPS == 0 and self._index.take_comparing(
                    self._every_s * COMPARE_EVERY_SWEEPS
                ):
                    self._comparer.compare()
                    self._brakes.heal()
                    self._inputs.heal()
                    self._judges.ring()
            except Exception as failure:
                outage.failed(failure)
            else:
                outage.worked()
            sweeps += 1
            if time.monotonic() - started > 10:
                log.warning("a sweep took long", took_s=round(time.monotonic() - started, 1))

    def sweep(self) -> int:
        """Look once at all that is due; how many turns that were."""
        looked = 0
        while due := self._index.due(TURNS_AT_ONCE, hold_s=max(1.0, self._every_s)):
            for session_id, turn_id in due:
                self._look(session_id, turn_id)
            looked += len(due)
            if len(due) < TURNS_AT_ONCE:
                break
        mark, lapsed = self._lanes.lapsed(LANES_AT_ONCE)
        for ref in lapsed:
            self._check_lane(ref, mark)
        return looked

    def _look(self, session_id: str, turn_id: str) -> None:
        look = self._index.look(session_id, turn_id)
        if look.word == "GONE" and self._comparer.readmit(turn_id):
            return
        if look.word != "LOOK":
            self._index.drop(session_id, turn_id)
            return
        self._index.again(session_id, turn_id, look.after_ms)
        for action in look.actions:
            try:
                self._act(session_id, turn_id, look.fence, action)
            except Exception as failure:
                # One turn that cannot be healed now must not keep the others from being healed.
                log.error("action failed", failure=failure, turn_id=turn_id, action=action[0])

    def _act(self, session_id: str, turn_id: str, fence: int, action: tuple[str, ...]) -> None:
        match action:
            case ("end",):
                did = self._coordinator.advance(session_id, turn_id, fence)
                if self._watchers is not None:
                    self._watchers.turn(session_id, turn_id, fence, did)
            case ("skip",):
                self._opening.skip_opening(session_id, turn_id)
            case ("rescue", call_id, attempt):
                self._rescuer.rescue(CallRef(session_id, turn_id, call_id), int(attempt), self._watchers)
            case ("lane", call_id):
                self._keeper.enter(CallRef(session_id, turn_id, call_id))
            case ("expire",):
                self._parks.expire(session_id, turn_id)
            case ("parent", *parent):
                self._children.check_parent(session_id, turn_id, CallRef(*parent))
            case ("deliver",):
                self._finalizer.deliver(session_id, turn_id)
            case _:
                log.error("unknown action", turn_id=turn_id, action=" ".join(action))

    def _check_lane(self, ref: CallRef, mark: str) -> None:
        """A lane lease lapsed: keep it for a call that is queued or running, free it for one that is over."""
        facts = self._calls.facts(ref)
        status = facts[0] if facts else "gone"
        if status in ("dispatched", "running"):
            self._lanes.beat(ref)
        elif status == "waiting":
            self._keeper.enter(ref)
        else:
            self._keeper.reap(ref, mark)

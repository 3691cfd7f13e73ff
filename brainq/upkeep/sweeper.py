"""Sweeper: looks at every turn that is due, and has done what is found to be missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from brainq.contracts.claim import CallRef
from brainq.observe.logs import logger
from brainq.observe.outage import Outage
from brainq.ports.asides import Asides
from brainq.ports.brakes import Brakes
from brainq.ports.child_turns import ChildTurns
from brainq.ports.index import Index
from brainq.ports.lanes import Lanes
from brainq.ports.watchers import Watchers
from brainq.upkeep.compare import Comparer
from brainq.upkeep.judges import JudgeBells
from brainq.upkeep.parks import Parks
from brainq.upkeep.rescue import Rescuer

log = logger("brainq.upkeep")

TURNS_AT_ONCE = 50  # few, so that sweepers share what is due
LANES_AT_ONCE = 100
COMPARE_EVERY_SWEEPS = 5
LOOKS_S = 1.0  # of a sweep; lanes, SQL and judges have their turn whatever is due
HOLD_S = 2.0  # for which no other sweeper gets what one has taken
AWAY_AFTER = 3  # looks that fail one after the other
LONG_S = 10.0


class Sweeper:
    """One loop a coordinator process. Everything it does is fenced: any number may run.

    advance      lets a turn that is over its time end
    deliver      sends a result out that its finalizer does not
    heal_inputs  finishes what senders of mid-turn input left half done
    """

    def __init__(
        self,
        *,
        every_s: float,
        index: Index,
        lanes: Lanes,
        rescuer: Rescuer,
        comparer: Comparer,
        advance: Callable[[str, str, int], str],
        deliver: Callable[[str, str], object],
        asides: Asides,
        judges: JudgeBells,
        parks: Parks,
        children: ChildTurns,
        heal_inputs: Callable[[], object],
        brakes: Brakes,
    ) -> None:
        self._every_s = every_s
        self._index = index
        self._lanes = lanes
        self._rescuer = rescuer
        self._comparer = comparer
        self._advance = advance
        self._deliver = deliver
        self._asides = asides
        self._judges = judges
        self._parks = parks
        self._children = children
        self._heal_inputs = heal_inputs
        self._watchers: Watchers | None = None
        self._brakes = brakes
        self._outages: dict[str, Outage] = {}

    def run(self, stop: threading.Event, watchers: Watchers | None = None) -> None:
        """Sweep until told to stop. What fails (Redis or SQL away) is said once, and tried again."""
        self._watchers = watchers
        sweeps = 0
        while not stop.wait(self._every_s):
            started = time.monotonic()
            self.sweep()
            if sweeps % COMPARE_EVERY_SWEEPS == 0:
                self._part("take turns at comparing", self._compare)
            sweeps += 1
            if time.monotonic() - started > LONG_S:
                log.warning("a sweep took long", took_s=round(time.monotonic() - started, 1))

    def sweep(self) -> None:
        """Look at what is due, for a bounded time: what is due longest comes first, and the rest the next time."""
        self._part("look at turns", self._look_at_turns)
        self._part("look at lanes", self._look_at_lanes)

    def _compare(self) -> None:
        if self._index.take_comparing(self._every_s * COMPARE_EVERY_SWEEPS):
            self._part("compare SQL with Redis", self._comparer.compare)
            self._part("put brakes back", self._brakes.heal)
            self._part("heal inputs", self._heal_inputs)
            self._part("ring judges", self._judges.ring)

    def _part(self, name: str, part: Callable[[], object]) -> None:
        """One part of a sweep: what fails in it keeps no other from being done."""
        outage = self._outages.setdefault(name, Outage(log, f"sweep ({name})"))
        try:
            part()
        except Exception as failure:
            outage.failed(failure)
        else:
            outage.worked()

    def _look_at_turns(self) -> None:
        until = time.monotonic() + max(LOOKS_S, self._every_s)
        failed = 0
        while time.monotonic() < until:
            due = self._index.due(TURNS_AT_ONCE, hold_s=max(HOLD_S, 2 * self._every_s))
            if due.stepped:
                log.warning(
                    "Redis' clock stepped back: looks that it had put off are made now", turns=due.stepped
                )
            for session_id, turn_id in due.turns:
                try:
                    self._look(session_id, turn_id, due.mark)
                    failed = 0
                except Exception as failure:
                    # A turn that cannot be looked at must not hide the others; but Redis may be away for all.
                    failed += 1
                    if failed >= AWAY_AFTER:
                        raise
                    log.error("look failed", failure=failure, turn_id=turn_id)
            if len(due.turns) < TURNS_AT_ONCE:
                return

    def _look_at_lanes(self) -> None:
        mark, lapsed = self._lanes.lapsed(LANES_AT_ONCE)
        for ref in lapsed:
            try:
                self._lanes.check(ref, mark)
            except Exception as failure:
                log.error("lane not checked", failure=failure, turn_id=ref.turn_id, call_id=ref.call_id)

    def _look(self, session_id: str, turn_id: str, mark: str) -> None:
        look = self._index.look(session_id, turn_id)
        if look.word == "GONE" and self._comparer.readmit(turn_id):
            return
        if look.word != "LOOK":
            self._index.drop(session_id, turn_id)
            return
        self._index.again(session_id, turn_id, mark, look.after_ms)
        for action in look.actions:
            try:
                self._act(session_id, turn_id, look.fence, action)
            except Exception as failure:
                # One turn that cannot be healed now must not keep the others from being healed.
                log.error("action failed", failure=failure, turn_id=turn_id, action=action[0])

    def _act(self, session_id: str, turn_id: str, fence: int, action: tuple[str, ...]) -> None:
        match action:
            case ("end",):
                did = self._advance(session_id, turn_id, fence)
                if self._watchers is not None:
                    self._watchers.turn(session_id, turn_id, fence, did)
            case ("skip",):
                self._asides.skip_opening(session_id, turn_id)
            case ("rescue", call_id, attempt):
                self._rescuer.rescue(CallRef(session_id, turn_id, call_id), int(attempt), self._watchers)
            case ("expire",):
                self._parks.expire(session_id, turn_id)
            case ("parent", *parent):
                self._children.check_parent(session_id, turn_id, CallRef(*parent))
            case ("deliver",):
                self._deliver(session_id, turn_id)
            case _:
                log.error("unknown action", turn_id=turn_id, action=" ".join(action))

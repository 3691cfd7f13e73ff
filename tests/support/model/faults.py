"""What goes wrong: bells lost, copied and repeated, leases that end, deadlines, cancels, deaths."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from brainq.contracts.claim import CallRef
from tests.support.model.rules import require
from tests.support.model.state import Known
from tests.support.model.thinker import MOST_CALLS

if TYPE_CHECKING:
    from tests.support.model.schedule import Schedule


class Faults:
    """Faults of one schedule; `weighted` says how often each is drawn."""

    def __init__(self, schedule: Schedule) -> None:
        self._at = schedule
        self._rng = schedule.rng
        self._old_bells: list[str] = []
        self.weighted: list[tuple[int, Callable[[], None]]] = [
            (5, self._copy_bell),
            (4, self._lose_bell),
            (3, self._repeat_bell),
            (3, self._kill),
            (3, self._end_turn_lease),
            (5, self._end_call_lease),
            (4, self._end_lane_lease),
            (2, self._end_step_lease),
            (2, self._pass_deadline),
            (3, self._cancel),
        ]

    def _do(self, what: str, target: str, *command: Any) -> list[Any]:
        self._at.log.append((what, target))
        return self._at.client.many([command]) if command else []

    def _copy_bell(self) -> None:
        if bell := self._at.bells.pop(self._rng, "copy"):
            self._old_bells.append(bell)
            self._at.answer(bell)

    def _lose_bell(self) -> None:
        if bell := self._at.bells.pop(self._rng):
            task, args = self._at.bells.read(bell)
            self._do("a bell is lost", f"{task} {args}")
            self._old_bells.append(bell)

    def _repeat_bell(self) -> None:
        if self._old_bells:
            self._at.answer(self._rng.choice(self._old_bells))

    def _kill(self) -> None:
        self._at.replace(self._rng.randrange(len(self._at.processes)))

    def _some_turn(self, *states: str) -> tuple[str, Known] | None:
        """(key, turn) of a turn in one of the states."""
        fit = [(key, known) for key, known in self._at.rules.turns.items() if known.state in states]
        return self._rng.choice(fit) if fit else None

    def _end_turn_lease(self) -> None:
        if (found := self._some_turn("active")) and found[1].owner:
            self._do("the lease ends of turn", found[1].turn_id, "HSET", found[0], "lease_until", 0)

    def _end_call_lease(self) -> None:
        running = [
            (key, known, f"c{place // MOST_CALLS}-{place % MOST_CALLS}")
            for key, known in self._at.rules.turns.items()
            for place, status in enumerate(known.statuses)
            if status == "running"
        ]
        if running:
            key, known, call = self._rng.choice(running)
            holder = CallRef(known.session_id, known.turn_id, call).holder
            status = self._at.client.many([("HGET", key + ":trace", call + ":status")])[0]
            require(status == "running", "the fault missed: the call does not run", call, status)
            self._at.functions.freeze(holder)
            self._do("the lease ends of call", holder, "HSET", key + ":trace", call + ":lease", 0)

    def _end_lane_lease(self) -> None:
        leases = self._at.keys.lane_leases
        holders: list[str] = self._at.client.many([("ZRANGE", leases, 0, -1)])[0]
        if holders:
            holder = self._rng.choice(holders)
            self._at.functions.freeze(holder)
            self._do("the lane lease ends of", holder, "ZADD", leases, "XX", 0, holder)

    def _end_step_lease(self) -> None:
        if found := self._some_turn("closing", "completed", "cancelled", "timed_out", "failed"):
            self._do("the lease ends of the finalizer of", found[1].turn_id, "HSET", found[0], "fin_lease", 0)

    def _pass_deadline(self) -> None:
        if found := self._some_turn("active"):
            passed_ms = self._at.now_ms - self._rng.choice((1, 3000))
            self._do(
                "the deadline passes of",
                found[1].turn_id,
                "HSET",
                found[0] + ":budget",
                "deadline",
                passed_ms,
            )

    def _cancel(self) -> None:
        if found := self._some_turn("queued", "active", "closing"):
            self._at.cancel(found[1])

"""Faults: lost, copied and repeated bells, leases that end, deadlines, cancels, deaths."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from brainq.contracts.claim import CallRef
from tests.support.model.known import Known
from tests.support.model.rules import require

if TYPE_CHECKING:
    from tests.support.model.schedule import Schedule


class Faults:
    """The faults of one schedule. `weighted` has how often each is drawn."""

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
            self._at.rules.bells.are_copied = True
            self._at.answer(bell)

    def _lose_bell(self) -> None:
        if bell := self._at.bells.pop(self._rng):
            task, args = self._at.bells.read(bell)
            self._at.rules.bells.taken(args)
            self._do("a bell is lost", f"{task} {args}")
            self._old_bells.append(bell)

    def _repeat_bell(self) -> None:
        if self._old_bells:
            self._at.rules.bells.are_copied = True
            self._at.answer(self._rng.choice(self._old_bells))

    def _kill(self) -> None:
        self._at.replace(self._rng.randrange(len(self._at.processes)))

    def _end_turn_lease(self) -> None:
        if (known := self._at.some_turn("active")) and known.owner:
            self._do("the lease ends of turn", known.turn_id, "HSET", self._key(known), "lease_until", 0)

    def _end_call_lease(self) -> None:
        running = [
            (key, known, call) for key, known in self._at.rules.turns.items() for call in known.calls_that("running")
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
        if known := self._at.some_turn("closing", "completed", "cancelled", "timed_out", "failed"):
            self._do("the lease ends of the finalizer of", known.turn_id, "HSET", self._key(known), "fin_lease", 0)

    def _pass_deadline(self) -> None:
        if known := self._at.some_turn("active"):
            passed_ms = self._at.now_ms - self._rng.choice((1, 3000))
            budget = self._key(known) + ":budget"
            self._do("the deadline passes of", known.turn_id, "HSET", budget, "deadline", passed_ms)
            known.deadline = passed_ms

    def _cancel(self) -> None:
        if known := self._at.some_turn("queued", "active", "parked", "closing"):
            self._at.cancel(known)

    def deliver(self) -> None:
        """Deliver, as a sweeper, a result that the finalizer has not sent yet."""
        if known := self._at.some_turn("closing"):
            process = self._rng.choice(self._at.processes)
            self._at.spawn(
                f"deliver {known.turn_id}", process, lambda: process.finalizer.deliver(known.session_id, known.turn_id)
            )

    def _key(self, known: Known) -> str:
        return self._at.keys.turn(known.session_id, known.turn_id)

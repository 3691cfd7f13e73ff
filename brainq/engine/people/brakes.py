"""Holds, readiness flags and cancels. SQL has each of them before the caller gets an answer.

Redis keeps calls from starting, and may lose its data. Brakes are restored from SQL when the turn begins again, before
a call with an effect starts, and by the sweeper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.fleet import ComparedPage
from brainq.contracts.people import Brake, HoldSpec, cancel_brake_id
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.people import RedisHolds
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.adapters.sql.repositories.brakes import Brakes

log = logger("brainq.people")
PAGE = 500


@dataclass(eq=False)
class BrakeDesk:
    """The desk that places and releases brakes. SQL's rows are the truth: they are written first and removed first.

    tenants   raises TenantMoved or TenantMoving for a turn that Redis does not show because its tenant moves
    """

    rows: Brakes
    holds: RedisHolds
    turns: RedisTurns
    tenants: TenantPlaces = ONE_CELL

    def hold(self, session_id: str, turn_id: str, spec: HoldSpec) -> str:
        """Place a hold. Returns `HELD`, `ALREADY`, `ENDED` or `GONE`; the last two leave no brake."""
        self.rows.hold(session_id, turn_id, spec)
        try:
            word = self.holds.place(session_id, turn_id, spec)
        except Exception:
            # The caller does not learn the id, so it could never release the hold.
            self.rows.end(session_id, spec.id)
            raise
        if word in ("ENDED", "GONE"):
            self.rows.withdraw(session_id, spec.id)
        self._require_shown(session_id, word)
        return word

    def release(self, session_id: str, turn_id: str, hold_id: str) -> bool:
        """Release a hold, or a flag that the turn has taken. The calls that waited for it continue."""
        stood = self.rows.end(session_id, hold_id)
        word = self.holds.release(session_id, turn_id, hold_id)
        self._require_shown(session_id, word)
        if word == "RELEASED" and not stood:
            # The turn's request or an input placed it, and would place it again when it is read again.
            self.rows.released(session_id, turn_id, hold_id)
        return word == "RELEASED" or (stood and word == "GONE")

    def add_flag(self, session_id: str, spec: HoldSpec) -> str:
        """Add a readiness flag. Returns `ADDED`, `ALREADY`, or `FULL`, which leaves no brake."""
        self.rows.flag(session_id, spec)
        word = self.holds.add_flag(session_id, spec)
        if word == "FULL":
            self.rows.withdraw(session_id, spec.id)
        return word

    def release_flag(self, session_id: str, flag_id: str) -> bool:
        """Release a readiness flag. Returns False if there is nothing to release."""
        stood = self.rows.end(session_id, flag_id)
        word, turn_id = self.holds.release_flag(session_id, flag_id)
        if word == "TAKEN":
            return self.release(session_id, turn_id, flag_id)
        return word == "READY" or stood

    def record_taken(self, session_id: str, flag_id: str, turn_id: str) -> None:
        """Record that a turn that became live has taken the flag, which is a brake of that turn from now on."""
        self.rows.assign_flag(session_id, flag_id, turn_id)

    def lift(self, session_id: str, turn_id: str) -> None:
        """Remove the flag of a turn whose readiness was replaced by a newer input."""
        self.rows.lift(session_id, turn_id)

    def cancel(self, session_id: str, turn_id: str, reason: str) -> str:
        """Cancel a turn. Returns `CANCELLED`, `REQUESTED`, `ENDED` or `GONE`. If SQL is unavailable, Redis gets the
        cancel all the same."""
        try:
            self.rows.cancel(session_id, turn_id, reason)
        except Exception:
            self.turns.cancel(session_id, turn_id, reason)
            raise
        word = self.turns.cancel(session_id, turn_id, reason)
        self._require_shown(session_id, word)
        if word == "ENDED":
            self.nothing_to_cancel(session_id, turn_id)
        return word

    def _require_shown(self, session_id: str, word: str) -> None:
        if word == "GONE":
            self.tenants.require_shown(session_id)

    def nothing_to_cancel(self, session_id: str, turn_id: str) -> None:
        """Withdraw the cancel of a turn that is over or never existed, so that a later turn of its id is not
        cancelled."""
        self.rows.withdraw(session_id, cancel_brake_id(turn_id))

    def drop(self, session_id: str, turn_id: str, reason: str) -> str:
        """Cancel a turn that waits for its session. Returns `LIVE`, and changes nothing, if it no longer waits."""
        word = self.turns.cancel(session_id, turn_id, reason, queued_only=True)
        self._require_shown(session_id, word)
        if word == "CANCELLED":
            self.rows.cancel(session_id, turn_id, reason)
        return word

    def record_stopped(self, session_id: str, turn_ids: Iterable[str], reason: str) -> None:
        """Record the cancels of turns that a submit has stopped in Redis."""
        for turn_id in turn_ids:
            self.rows.cancel(session_id, turn_id, reason)

    def recheck_restored(self, turn_id: str, brakes: Iterable[Brake]) -> None:
        """Release those of the restored brakes that were released in SQL meanwhile."""
        for brake in brakes:
            if brake.kind == "cancel" or self.rows.is_in_force(brake.session_id, brake.id):
                continue
            if brake.turn_id is None:
                self.release_flag(brake.session_id, brake.id)
            else:
                self.release(brake.session_id, turn_id, brake.id)

    def restore(self, session_id: str, turn_id: str) -> int:
        """Restore the brakes of a turn that Redis has lost. Returns their number, always counting cancels."""
        standing = [brake for brake in self.rows.of_turn(session_id, turn_id) if brake.turn_id == turn_id]
        return sum(self._put_back(brake) or brake.kind == "cancel" for brake in standing)

    def heal(self, after_row: int) -> ComparedPage:
        """Restore the brakes that Redis has lost, for a page of brakes after this row."""
        page = self.rows.of_turns(after_row, PAGE)
        more, last_row = len(page) == PAGE, page[-1][0] if page else after_row
        if page and self.rows.close(after_row, last_row):
            page = self.rows.of_turns(after_row, PAGE)
        brakes = [brake for row, brake in page if row <= last_row]
        words = iter(self.holds.place_all([brake for brake in brakes if brake.kind != "cancel"]))
        healed = 0
        for brake in brakes:
            try:
                healed += self._cancelled(brake) if brake.kind == "cancel" else self._placed(brake, next(words))
            except Exception as failure:
                log.error("brake not restored", failure=failure, turn_id=brake.turn_id)
        return ComparedPage(last_row, more, healed)

    def _put_back(self, brake: Brake) -> bool:
        if brake.kind == "cancel":
            return self._cancelled(brake)
        return self._placed(brake, self.holds.place_all([brake])[0])

    def _cancelled(self, brake: Brake) -> bool:
        return self.turns.cancel(brake.session_id, brake.turn_id or "", brake.reason) == "CANCELLED"

    def _placed(self, brake: Brake, word: str | Exception) -> bool:
        """Handle Redis' reply about a hold that SQL has. Raises the error that Redis replied with."""
        if isinstance(word, Exception):
            raise word
        turn_id = brake.turn_id or ""
        if word != "HELD":
            return False
        if self.rows.is_in_force(brake.session_id, brake.id):
            log.warning("a hold that Redis had lost was restored", turn_id=turn_id)
            return True
        # It was released between both reads.
        self.release(brake.session_id, turn_id, brake.id)
        return False

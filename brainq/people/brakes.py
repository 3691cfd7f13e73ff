"""BrakeDesk: holds, readiness flags and cancels, which SQL has before a caller is promised one.

Redis keeps calls from starting, and may lose its data. What SQL has is put back: with the turn, when that
begins anew; when a call that changes something is to start; and by the sweeper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.fleet import ComparedPage
from brainq.contracts.people import Brake, HoldSpec, cancel_brake_id
from brainq.observe.logs import logger
from brainq.people.tenant_places import ONE_CELL, TenantPlaces

if TYPE_CHECKING:
    from brainq.state.people import RedisHolds
    from brainq.state.turns import RedisTurns
    from brainq.store.repositories.brakes import Brakes

log = logger("brainq.people")
PAGE = 500


@dataclass(eq=False)
class BrakeDesk:
    """Every brake goes into SQL first and out of it first: SQL's rows hold.

    tenants   where a turn is braked that Redis does not show because its tenant moves: TenantMoved, TenantMoving
    """

    rows: Brakes
    holds: RedisHolds
    turns: RedisTurns
    tenants: TenantPlaces = ONE_CELL

    def hold(self, session_id: str, turn_id: str, spec: HoldSpec) -> str:
        """`HELD`, `ALREADY`, `ENDED` or `GONE`: after the last two there is no brake."""
        self.rows.hold(session_id, turn_id, spec)
        try:
            word = self.holds.place(session_id, turn_id, spec)
        except Exception:
            # The caller learns no id, so it could not be released.
            self.rows.end(session_id, spec.id)
            raise
        if word in ("ENDED", "GONE"):
            self.rows.withdraw(session_id, spec.id)
        self._require_shown(session_id, word)
        return word

    def release(self, session_id: str, turn_id: str, hold_id: str) -> bool:
        """Let go of a hold, or of a flag that the turn has taken; the calls that waited for it go on."""
        stood = self.rows.end(session_id, hold_id)
        word = self.holds.release(session_id, turn_id, hold_id)
        self._require_shown(session_id, word)
        if word == "RELEASED" and not stood:
            # A word of the turn's request or input placed it, and would do so again when they are read again.
            self.rows.released(session_id, turn_id, hold_id)
        return word == "RELEASED" or (stood and word == "GONE")

    def add_flag(self, session_id: str, spec: HoldSpec) -> str:
        """`ADDED`, `ALREADY`, or `FULL`: after the last there is no brake."""
        self.rows.flag(session_id, spec)
        word = self.holds.add_flag(session_id, spec)
        if word == "FULL":
            self.rows.withdraw(session_id, spec.id)
        return word

    def release_flag(self, session_id: str, flag_id: str) -> bool:
        """Say that a flag is ready; False when there is nothing to release any more."""
        stood = self.rows.end(session_id, flag_id)
        word, turn_id = self.holds.release_flag(session_id, flag_id)
        if word == "TAKEN":
            return self.release(session_id, turn_id, flag_id)
        return word == "READY" or stood

    def record_taken(self, session_id: str, flag_id: str, turn_id: str) -> None:
        """A turn that became live took the flag: from now on it is a brake of that turn."""
        self.rows.assign_flag(session_id, flag_id, turn_id)

    def lift(self, session_id: str, turn_id: str) -> None:
        """A newer word on the turn's readiness takes the place of its flag."""
        self.rows.lift(session_id, turn_id)

    def cancel(self, session_id: str, turn_id: str, reason: str) -> str:
        """`CANCELLED`, `REQUESTED`, `ENDED` or `GONE`. Where SQL is away Redis gets it all the same."""
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
        """The turn is over, or was never there: one of its id that comes may be cancelled as any other."""
        self.rows.withdraw(session_id, cancel_brake_id(turn_id))

    def drop(self, session_id: str, turn_id: str, reason: str) -> str:
        """`cancel` for a turn that waits for its session; `LIVE`: it waits no more, and was left alone."""
        word = self.turns.cancel(session_id, turn_id, reason, queued_only=True)
        self._require_shown(session_id, word)
        if word == "CANCELLED":
            self.rows.cancel(session_id, turn_id, reason)
        return word

    def record_stopped(self, session_id: str, turn_ids: Iterable[str], reason: str) -> None:
        """A submit has stopped these turns in Redis."""
        for turn_id in turn_ids:
            self.rows.cancel(session_id, turn_id, reason)

    def recheck_restored(self, turn_id: str, brakes: Iterable[Brake]) -> None:
        """These were put back with the turn: what was released between the look and then is let go of again."""
        for brake in brakes:
            if brake.kind == "cancel" or self.rows.is_in_force(brake.session_id, brake.id):
                continue
            if brake.turn_id is None:
                self.release_flag(brake.session_id, brake.id)
            else:
                self.release(brake.session_id, turn_id, brake.id)

    def restore(self, session_id: str, turn_id: str) -> int:
        """Put back what Redis has lost of a turn's brakes; how many that were, cancels always among them."""
        standing = [brake for brake in self.rows.of_turn(session_id, turn_id) if brake.turn_id == turn_id]
        return sum(self._put_back(brake) or brake.kind == "cancel" for brake in standing)

    def heal(self, after_row: int) -> ComparedPage:
        """Put back what Redis lost of the turns' brakes, for a page of those after this row."""
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
        """Redis' reply about a hold that SQL has. Raises what it was refused for."""
        if isinstance(word, Exception):
            raise word
        turn_id = brake.turn_id or ""
        if word != "HELD":
            return False
        if self.rows.is_in_force(brake.session_id, brake.id):
            log.warning("a hold that Redis had lost is back", turn_id=turn_id)
            return True
        # It was released between our look and now.
        self.release(brake.session_id, turn_id, brake.id)
        return False

"""The queue that every accepted turn passes: it adds turns to Redis, with their brakes and inputs from SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from brainq.contracts.cell import Placement
from brainq.contracts.people import NOTHING_TO_RESTORE, RestoredState, SubmitWord, TurnInput, readiness_hold_id
from brainq.contracts.stop import Stop, fields_of_submit
from brainq.contracts.turn import Limits, TurnRequest
from brainq.engine.brain.brains import ByBrain
from brainq.engine.people.brakes import BrakeDesk
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.errors import BrainqError, BuildUnserved, SessionBusy, TurnForbidden
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.sweeper import RedisSweeperState
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.adapters.sql.repositories.calls import Calls
    from brainq.adapters.sql.repositories.inputs import Inputs
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.people")
LOST_AFTER_WRITE = "Redis lost this turn after it had begun to write; see its calls for what was started"
PAGE = 500
R = TypeVar("R", bound=BrainqError)


@dataclass(eq=False)
class TurnQueue:
    """The way of accepted turns to Redis, both new ones and those that Redis may have lost.

    limits     the limits of the brains' turns
    children   how many child turns each turn of a brain may start; None allows none
    calls      the calls that have started, in SQL
    brakes     the brakes of turns and sessions, in SQL
    inputs     the inputs of turns, in SQL
    tenants    where a turn is queued whose tenant has left this cell
    state      which turns Redis knows; used if there are several cells
    """

    accepted: Turns
    turns: RedisTurns
    limits: ByBrain[Limits]
    _: KW_ONLY
    children: ByBrain[int] | None = None
    calls: Calls | None = None
    brakes: BrakeDesk | None = None
    inputs: Inputs | None = None
    tenants: TenantPlaces = ONE_CELL
    state: RedisSweeperState | None = None

    def queue(self, request: TurnRequest, inputs: Sequence[TurnInput] = (), *, is_new: bool = True) -> None:
        """Add an accepted turn to Redis, if it is not there, with its brakes in SQL and with `inputs`. The turn waits
        in SQL while its tenant is about to move, and is queued in the other cell once the tenant has moved. If the
        tenant has just come, the turns that its session has in SQL are queued first.

        is_new   refuse the turn if operators have forbidden it; a turn accepted before meets the stop when it begins

        Raises SessionBusy if the request says `reject` and the session has a live turn, TurnForbidden, and
        BuildUnserved if no worker has the brain that the session is pinned to.
        """
        self._queue(request, inputs, self._place(request), is_new=is_new)

    def _queue(
        self, request: TurnRequest, inputs: Sequence[TurnInput], place: Placement | None, *, is_new: bool
    ) -> SubmitWord:
        sid, tid = request.session_id, request.turn_id
        brakes = () if self.brakes is None else tuple(self.brakes.rows.of_turn(sid, tid))
        stop_fields = fields_of_submit(sid, request.brain or self.limits.names[0]) if is_new else ()
        kept = RestoredState(brakes=brakes, inputs=tuple(inputs))
        word, detail, stopped = self._submit(request, place, "", kept, stop_fields)
        if word == "BUSY":
            raise self._refused(tid, SessionBusy(sid, detail))
        if word == "FORBIDDEN":
            raise self._refused(tid, _forbidden(Stop.from_stored(detail)))
        if word == "UNSERVED":
            raise self._refused(tid, BuildUnserved(sid, detail))
        if self.brakes is None or word in ("MOVED", "MOVING"):
            return word
        if word != "EXISTS":
            self.brakes.recheck_restored(tid, brakes)
        if stopped:
            self.brakes.record_stopped(sid, stopped, f"interrupted by turn {tid}")
        return word

    def _refused(self, turn_id: str, why: R) -> R:
        self.accepted.refuse(turn_id, str(why))
        return why

    def queue_again(self, request: TurnRequest) -> None:
        """Queue a turn that was accepted some time ago and that Redis may have lost. It begins again, and reads its
        inputs again. A turn that had begun to write is ended instead, because it could write twice. Raises SessionBusy
        as `queue`."""
        self._queue_again(request, self._place(request))

    def _queue_again(self, request: TurnRequest, place: Placement | None) -> SubmitWord:
        if self.calls is not None and self.calls.started(request.turn_id) != "no":
            return self._end_as_lost(request, place, LOST_AFTER_WRITE)
        sent = () if self.inputs is None else self.inputs.of_turn(request.turn_id)
        read = [row.item for row in sent if row.state in ("accepted", "consumed")]
        return self._queue(*self._as_released(request, read), place, is_new=False)

    def _place(self, request: TurnRequest) -> Placement | None:
        """Return where the turn's tenant is, or None if it is here. If the tenant has just come, the turns that its
        session accepted before are queued now. If that is not possible yet, this turn waits behind them."""
        place = self.tenants.look(request.session_id)
        if place is None or not place.has_come:
            return place
        word = self.queue_waiting(request.session_id, before=request.turn_id)
        return Placement("", 0) if word == "MOVING" else None

    def queue_waiting(self, whose: str, before: str = "") -> Literal["QUEUED", "FAILED", "MOVING"]:
        """Queue the turns of a tenant (by its key) or of a session (up to one of its turns) that are in SQL and not in
        Redis, in the order they were accepted. Returns FAILED if some could not be queued, and MOVING if the tenant is
        about to move."""
        row, done, begun = 0, True, set[str]()
        while page := self.accepted.unended_of(whose, row, PAGE):
            row = page[-1].row
            turns = [(one.session_id, one.turn_id) for one in page]
            standing = () if self.state is None else self.state.standing(turns)
            for (session_id, turn_id), word in zip(turns, standing, strict=True):
                if turn_id == before:
                    return "QUEUED" if done else "FAILED"
                if word != "unknown":
                    continue
                try:
                    word = self._queue_waiting(turn_id, waits=session_id in begun)
                except Exception as failure:
                    # One row that cannot be queued must not keep later rows from being queued.
                    log.error("turn not queued from SQL", failure=failure, turn_id=turn_id)
                    word, done = "", False
                if word == "MOVING":
                    return "MOVING"
                begun.add(session_id)
        return "QUEUED" if done else "FAILED"

    def _queue_waiting(self, turn_id: str, *, waits: bool) -> str:
        """Queue one turn. For `waits` see `LostTurns`."""
        request = self.accepted.request(turn_id)
        if request is None:
            return ""
        try:
            return self._queue_again(request.model_copy(update={"on_busy": "enqueue"}) if waits else request, None)
        except (SessionBusy, BuildUnserved):
            return ""  # its producer was refused in SQL

    def _as_released(
        self, request: TurnRequest, inputs: Sequence[TurnInput]
    ) -> tuple[TurnRequest, Sequence[TurnInput]]:
        """Mark the request and the inputs as ready whose readiness holds have been released."""
        held = [readiness_hold_id(request.key)] if request.readiness is False else []
        held += [readiness_hold_id(item.client_message_id) for item in inputs if item.readiness is False]
        if not held or self.brakes is None:
            return request, inputs
        released = self.brakes.rows.those_released(request.session_id, held)
        ready = {"readiness": True}
        if request.readiness is False and readiness_hold_id(request.key) in released:
            request = request.model_copy(update=ready)
        return request, [
            item.model_copy(update=ready)
            if item.readiness is False and readiness_hold_id(item.client_message_id) in released
            else item
            for item in inputs
        ]

    def _end_as_lost(self, request: TurnRequest, place: Placement | None, why: str) -> SubmitWord:
        """End a turn as failed that must not begin again."""
        word, _, _ = self._submit(request.model_copy(update={"on_busy": "enqueue"}), place, why)
        return word

    def _submit(
        self,
        request: TurnRequest,
        place: Placement | None,
        lost_reason: str,
        kept: RestoredState = NOTHING_TO_RESTORE,
        stop_fields: Sequence[str] = (),
    ) -> tuple[SubmitWord, str, tuple[str, ...]]:
        if place is not None:
            word, detail, stopped = "MOVED" if place.cell else "MOVING", place.cell, ()
        else:
            word, detail, stopped = self.turns.submit(
                request,
                # A turn whose brain is gone is queued as well, to be ended.
                request.limits.applied_to(self.limits.of(request.brain) or Limits()),
                lost_reason=lost_reason,
                children=(None if self.children is None else self.children.of(request.brain)) or 0,
                kept=kept,
                stop_fields=stop_fields,
            )
        if word == "MOVED":
            self.tenants.send_turn(request.turn_id, detail)
        return word, detail, stopped


def _forbidden(stop: Stop) -> TurnForbidden:
    return TurnForbidden(f"{stop.describe()}; nothing was queued. Submit it again after {stop.remedy}")

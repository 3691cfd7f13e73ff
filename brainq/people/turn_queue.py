"""The queue that every accepted turn goes through: it makes turns known to Redis, with what SQL has for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from brainq.brain.brains import ByBrain
from brainq.contracts.cell import Placement
from brainq.contracts.people import NOTHING_TO_RESTORE, RestoredState, SubmitWord, TurnInput, readiness_hold_id
from brainq.contracts.stop import Stop, fields_of_submit, read_stop
from brainq.contracts.turn import Limits, TurnRequest
from brainq.errors import BrainqError, BuildUnserved, SessionBusy, TurnForbidden
from brainq.observe.logs import logger
from brainq.people.brakes import BrakeDesk
from brainq.people.tenant_places import ONE_CELL, TenantPlaces

if TYPE_CHECKING:
    from brainq.state.sweeper import RedisSweeperState
    from brainq.state.turns import RedisTurns
    from brainq.store.repositories.calls import Calls
    from brainq.store.repositories.inputs import Inputs
    from brainq.store.repositories.turns import Turns

log = logger("brainq.people")
LOST_AFTER_WRITE = "Redis lost this turn after it had begun to write; see its calls for what was started"
PAGE = 500
R = TypeVar("R", bound=BrainqError)


@dataclass(eq=False)
class TurnQueue:
    """Makes accepted turns known to Redis: new ones, and those that it may have known and lost.

    limits        of the brains' turns
    children      how many child turns each turn of theirs may start; None: none
    calls         what of a turn has started, as SQL knows it
    brakes        the brakes of turns and sessions, as SQL knows them
    inputs        what was sent into turns
    tenants       where a turn of a tenant is queued that is not this cell's any more
    state         which turns Redis knows; asked where there are several cells
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
        """Make an accepted turn known to Redis, if it is not, with the brakes that SQL has for it, and with `inputs`.
        One whose tenant is about to move waits in SQL; one whose tenant has moved is queued where that is. Where the
        tenant has just come, what its session waits for in SQL is queued first.

        is_new   operators may have forbidden it; one that was accepted before meets that when it begins

        Raises SessionBusy when the request says `reject` and the session has a live turn; TurnForbidden; BuildUnserved
        when its session keeps to a brain that no worker has.
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
            raise self._refused(tid, _forbidden(read_stop(detail)))
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
        """`queue` for a turn that was accepted some time ago: Redis may have known it, and lost it. It begins anew, and
        reads again what it had read. One that had begun to write is ended, for to begin it again could write twice.
        Raises SessionBusy as `queue`."""
        self._queue_again(request, self._place(request))

    def _queue_again(self, request: TurnRequest, place: Placement | None) -> SubmitWord:
        if self.calls is not None and self.calls.started(request.turn_id) != "no":
            return self._end_as_lost(request, place, LOST_AFTER_WRITE)
        sent = () if self.inputs is None else self.inputs.of_turn(request.turn_id)
        read = [row.item for row in sent if row.state in ("accepted", "consumed")]
        return self._queue(*self._as_released(request, read), place, is_new=False)

    def _place(self, request: TurnRequest) -> Placement | None:
        """Where the turn's tenant is, if it is not here. Where one has just come, turns that its session accepted
        before are queued now; while they cannot be, this one waits behind them."""
        place = self.tenants.look(request.session_id)
        if place is None or not place.has_come:
            return place
        word = self.queue_waiting(request.session_id, before=request.turn_id)
        return Placement("", 0) if word == "MOVING" else None

    def queue_waiting(self, whose: str, before: str = "") -> Literal["QUEUED", "FAILED", "MOVING"]:
        """Queue what waits in SQL and Redis does not know, in the order it was accepted: of a tenant, by its key, or of
        a session, up to a turn of it. FAILED: some could not be; MOVING: the tenant is about to move."""
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
                    # One row that cannot be queued must not keep those after it from being queued.
                    log.error("turn not queued from SQL", failure=failure, turn_id=turn_id)
                    word, done = "", False
                if word == "MOVING":
                    return "MOVING"
                begun.add(session_id)
        return "QUEUED" if done else "FAILED"

    def _queue_waiting(self, turn_id: str, *, waits: bool) -> str:
        """`waits`: as for `LostTurns`."""
        request = self.accepted.request(turn_id)
        if request is None:
            return ""
        try:
            return self._queue_again(request.model_copy(update={"on_busy": "enqueue"}) if waits else request, None)
        except (SessionBusy, BuildUnserved):
            return ""  # its producer is refused in SQL

    def _as_released(
        self, request: TurnRequest, inputs: Sequence[TurnInput]
    ) -> tuple[TurnRequest, Sequence[TurnInput]]:
        """Those whose `readiness=False` placed a hold that was released say that the turn is ready."""
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
        """Let a turn that must not begin again run straight to a failed ending."""
        word, _, _ = self._submit(request.model_copy(update={"on_busy": "enqueue"}), place, why)
        return word

    def limits_of(self, request: TurnRequest) -> Limits:
        # A turn whose brain is gone is queued again, too, to be ended.
        return request.limits.over(self.limits.of(request.brain) or Limits())

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
            word, detail, stopped = self._submit_here(request, lost_reason, kept, stop_fields)
        if word == "MOVED":
            self.tenants.send_turn(request.turn_id, detail)
        return word, detail, stopped

    def _submit_here(
        self, request: TurnRequest, lost_reason: str, kept: RestoredState, stop_fields: Sequence[str]
    ) -> tuple[SubmitWord, str, tuple[str, ...]]:
        return self.turns.submit(
            request,
            self.limits_of(request),
            lost_reason=lost_reason,
            children=(None if self.children is None else self.children.of(request.brain)) or 0,
            kept=kept,
            stop_fields=stop_fields,
        )


def _forbidden(stop: Stop) -> TurnForbidden:
    return TurnForbidden(f"{stop.describe()}; nothing was queued. Submit it again after {stop.remedy}")

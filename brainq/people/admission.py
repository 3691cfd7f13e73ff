"""Admission: from a request to a turn that is accepted and queued. SQL knows first, then Redis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic import ValidationError

from brainq.brain.brains import ByBrain
from brainq.contracts.base import NO_SUCH_FIELD, first_problem
from brainq.contracts.conversation import check_history
from brainq.contracts.file import WIDEST_FILE_LIMITS, File, FileLimits, extract_files
from brainq.contracts.ids import DERIVED_PREFIXES, new_turn_id
from brainq.contracts.people import NOTHING_TO_RESTORE, RestoredState, TurnInput, readiness_hold_id
from brainq.contracts.rows import AcceptedTurn
from brainq.contracts.tool import check_client_tools
from brainq.contracts.turn import Limits, LimitsOverride, TurnRequest
from brainq.errors import InvalidInput, SessionBusy
from brainq.gates.answer_schema import check_answer_schema
from brainq.ports.people import Brakes
from brainq.ports.redis_turns import Turns
from brainq.ports.sql import InputRows, TurnRows

MAX_FOREIGN_BYTES = 1_000_000  # of files in one message of the broker, which is Redis
LOST_AFTER_WRITE = "Redis lost this turn after it had begun to write; see its calls for what was started"


def read_request(fields: dict[str, Any]) -> TurnRequest:
    """A TurnRequest without files. Raises InvalidInput naming the first wrong field."""
    request, files = read_submit(fields)
    if files:
        raise InvalidInput("attachments", "a child turn takes no files; name to it where they are")
    return request


def read_submit(
    fields: dict[str, Any], limits: FileLimits = WIDEST_FILE_LIMITS
) -> tuple[TurnRequest, tuple[File, ...]]:
    """A TurnRequest from what a producer sent, and the files that it refers to. Raises InvalidInput naming the first
    wrong field."""
    referring, files = extract_files(fields, limits)
    return _read_fields(referring), files


def _read_fields(fields: dict[str, Any]) -> TurnRequest:
    given = {"turn_id": new_turn_id(), **{name: value for name, value in fields.items() if value is not None}}
    if "output_schema" in given:
        given["output_schema"] = check_answer_schema("output_schema", given["output_schema"])
    try:
        request = TurnRequest.model_validate(given)
    except ValidationError as failure:
        wrong = first_problem(failure.errors(include_url=False), given, whole="request")
        if not wrong.problem.startswith(NO_SUCH_FIELD):
            raise wrong from None
        model = LimitsOverride if wrong.field.startswith("limits.") else TurnRequest
        known = "" if "[" in wrong.field else f"; the fields are {', '.join(model.model_fields)}"
        raise InvalidInput(wrong.field, f"{wrong.problem}{known}") from None
    if request.greeting and request.history:
        raise InvalidInput("greeting", "with a history it is the history's first message; put it there")
    check_history(request.history)
    check_client_tools(request.client_tools)
    return request


def read_foreign(
    args: tuple[Any, ...], fields: dict[str, Any], limits: FileLimits = WIDEST_FILE_LIMITS
) -> tuple[TurnRequest, tuple[File, ...]]:
    """As `read_submit`, from what a producer without brainq sent: keywords, or one object as the only argument.

    Its files come through the broker, and are small: 1 MB together.

    Such a producer speaks for itself alone: it starts no child turn of a call, and takes no id that brainq makes for
    a child turn, for input that becomes a turn or for a scheduled turn. Raises InvalidInput naming the first wrong
    field.
    """
    if args:
        raise InvalidInput("arguments", "send the fields as keywords, or as one object; nothing positional")
    if fields.get("parent") is not None:
        raise InvalidInput("parent", "a call starts child turns, and no producer does; leave it out")
    if not fields.get("turn_id") and not fields.get("request_key"):
        raise InvalidInput("turn_id", "choose a turn_id or a request_key, so that sending again is harmless")
    request, files = read_submit(fields, limits.at_most(MAX_FOREIGN_BYTES))
    for field in ("turn_id", "request_key"):
        if getattr(request, field).startswith(DERIVED_PREFIXES):
            raise InvalidInput(
                field, f"it begins like the ids that brainq makes ({', '.join(DERIVED_PREFIXES)}); choose another"
            )
    return request, files


@dataclass(eq=False)
class Admission:
    """Accepts requests. Doing it again with the same request is harmless, at any point of it.

    limits        of the brains' turns
    children      how many child turns each turn of theirs may start; None: none
    wrote         whether a turn has begun to write, as SQL knows it
    brakes        the brakes of turns and sessions, as SQL knows them
    inputs        what was sent into turns
    """

    accepted: TurnRows
    turns: Turns
    limits: ByBrain[Limits]
    _: KW_ONLY
    children: ByBrain[int] | None = None
    wrote: Callable[[str], bool] | None = None
    brakes: Brakes | None = None
    inputs: InputRows | None = None

    def admit(self, request: TurnRequest, original: TurnRequest | None = None) -> AcceptedTurn:
        """Accept and queue. A request_key seen before gives the first turn of that key.

        original   the request as its producer sent it, where it names its brain only now

        Raises SubmitConflict when the key or the turn id was used with other content, SessionBusy when the request says
        `reject` and the session has a live turn.
        """
        accepted = self.accepted.accept(request, original)
        if accepted.turn_id != request.turn_id or accepted.ended:
            return accepted  # the first one was queued by whoever sent it, or will be by the sweeper
        if accepted.created:
            self.queue(request)
        else:
            self.queue_again(request)
        return accepted

    def queue(self, request: TurnRequest, inputs: Sequence[TurnInput] = ()) -> None:
        """Make an accepted turn known to Redis, if it is not, with the brakes that SQL has for it, and with `inputs`.

        Raises SessionBusy like `admit`.
        """
        sid, tid = request.session_id, request.turn_id
        brakes = () if self.brakes is None else tuple(self.brakes.of_turn(sid, tid))
        word, detail, stopped = self._submit(request, "", RestoredState(brakes=brakes, inputs=tuple(inputs)))
        if word == "BUSY":
            busy = SessionBusy(sid, detail)
            self.accepted.refuse(tid, str(busy))
            raise busy
        if self.brakes is None:
            return
        if word != "EXISTS":
            self.brakes.recheck_restored(tid, brakes)
        if stopped:
            self.brakes.record_stopped(sid, stopped, f"interrupted by turn {tid}")

    def queue_again(self, request: TurnRequest) -> None:
        """`queue` for a turn that was accepted some time ago: Redis may have known it, and lost it. It begins anew, and
        reads again what it had read. One that had begun to write is ended, for to begin it again could write twice.
        Raises SessionBusy like `admit`."""
        if self.wrote is not None and self.wrote(request.turn_id):
            self.end_as_lost(request, LOST_AFTER_WRITE)
        else:
            sent = () if self.inputs is None else self.inputs.of_turn(request.turn_id)
            read = [row.item for row in sent if row.state in ("accepted", "consumed")]
            self.queue(*self._as_released(request, read))

    def _as_released(
        self, request: TurnRequest, inputs: Sequence[TurnInput]
    ) -> tuple[TurnRequest, Sequence[TurnInput]]:
        """Those whose `readiness=False` placed a hold that was released say that the turn is ready."""
        held = [readiness_hold_id(request.key)] if request.readiness is False else []
        held += [readiness_hold_id(item.client_message_id) for item in inputs if item.readiness is False]
        if not held or self.brakes is None:
            return request, inputs
        released = self.brakes.released_among(request.session_id, held)
        ready = {"readiness": True}
        if request.readiness is False and readiness_hold_id(request.key) in released:
            request = request.model_copy(update=ready)
        return request, [
            item.model_copy(update=ready)
            if item.readiness is False and readiness_hold_id(item.client_message_id) in released
            else item
            for item in inputs
        ]

    def end_as_lost(self, request: TurnRequest, why: str) -> None:
        """Let a turn that must not begin again run straight to a failed ending."""
        self._submit(request.model_copy(update={"on_busy": "enqueue"}), why)

    def limits_of(self, request: TurnRequest) -> Limits:
        # A turn whose brain is no more is queued again, too, to be ended.
        return request.limits.over(self.limits.of(request.brain) or Limits())

    def _submit(
        self, request: TurnRequest, lost_reason: str, kept: RestoredState = NOTHING_TO_RESTORE
    ) -> tuple[str, str, tuple[str, ...]]:
        return self.turns.submit(
            request,
            self.limits_of(request),
            lost_reason=lost_reason,
            children=(None if self.children is None else self.children.of(request.brain)) or 0,
            kept=kept,
        )

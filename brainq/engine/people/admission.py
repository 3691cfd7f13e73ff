"""Admission of requests: a turn is recorded in SQL, then queued in Redis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from brainq.contracts.base import NO_SUCH_FIELD, first_problem
from brainq.contracts.conversation import check_history
from brainq.contracts.file import WIDEST_FILE_LIMITS, File, FileLimits, extract_files
from brainq.contracts.ids import DERIVED_PREFIXES, new_turn_id
from brainq.contracts.rows import AcceptedTurn
from brainq.contracts.tool import check_client_tools
from brainq.contracts.turn import LimitsOverride, TurnRequest
from brainq.engine.gates.answer_schema import check_answer_schema
from brainq.engine.people.turn_queue import TurnQueue
from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.turns import Turns

MAX_FOREIGN_BYTES = 1_000_000  # of the files in one message of the broker, which is Redis


def read_request(fields: dict[str, Any]) -> TurnRequest:
    """Return a TurnRequest without files. Raises InvalidInput naming the first wrong field."""
    request, files = read_submit(fields)
    if files:
        raise InvalidInput("attachments", "a child turn takes no files; write in its message where they are")
    return request


def read_submit(
    fields: dict[str, Any], limits: FileLimits = WIDEST_FILE_LIMITS
) -> tuple[TurnRequest, tuple[File, ...]]:
    """Return the TurnRequest that a producer sent, and the files that it refers to. Raises InvalidInput naming the
    first wrong field."""
    referring, files = extract_files(fields, limits)
    given = {"turn_id": new_turn_id(), **{name: value for name, value in referring.items() if value is not None}}
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
        raise InvalidInput("greeting", "a turn with a history takes no greeting; make it the history's first message")
    if request.history:
        check_history(request.history)
    if request.client_tools:
        check_client_tools(request.client_tools)
    return request, files


def read_foreign(
    args: tuple[Any, ...], fields: dict[str, Any], limits: FileLimits = WIDEST_FILE_LIMITS
) -> tuple[TurnRequest, tuple[File, ...]]:
    """Read a request from a producer without brainq: keywords, or one object as the only argument. Returns what
    `read_submit` returns.

    The files of such a request come through the broker and are limited to 1 MB together. The producer cannot start a
    child turn, and cannot use the ids that brainq makes for child turns, scheduled turns and input that becomes a turn.
    Raises InvalidInput naming the first wrong field.
    """
    if args:
        raise InvalidInput("arguments", "send the fields as keywords, or as one JSON object as the only argument")
    if fields.get("parent") is not None:
        raise InvalidInput("parent", "only calls start child turns; leave it out")
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
    """The admission of requests. Repeating it with the same request is harmless at any point."""

    accepted: Turns
    turn_queue: TurnQueue

    def admit(self, request: TurnRequest, original: TurnRequest | None = None) -> AcceptedTurn:
        """Accept and queue a request. A request_key that was used before returns the first turn of that key.

        original   the request as its producer sent it, if the brain's name was added later

        Raises SubmitConflict if the key or the turn id was used with other content, and SessionBusy if the request says
        `reject` and the session has a live turn.
        """
        accepted = self.accepted.accept(request, original)
        if accepted.turn_id != request.turn_id or accepted.ended:
            return accepted  # its sender, or else the sweeper, queues the first turn
        if accepted.created:
            self.turn_queue.queue(request)
        else:
            self.turn_queue.queue_again(request)
        return accepted

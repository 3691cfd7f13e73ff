"""Results from outside. A waiting call is completed once, with its token or by the client that ran it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from brainq.contracts.base import check_json
from brainq.contracts.call import (
    ToolFailure,
    ToolSuccess,
    ToolUnknown,
    client_token,
    parse_outside_token,
)
from brainq.contracts.claim import CallFacts, CallRef, SettleResult
from brainq.contracts.file import File, FileLimits, check_files
from brainq.contracts.ids import full_call_id
from brainq.contracts.message import Message
from brainq.contracts.status import TraceStatus
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.engine.tools.results import (
    MAX_TOKEN_CHARS,
    OutcomeUnknown,
    ToolError,
    edited_note,
    outcome_text,
    split_files,
    tool_message,
    unknown_outcome,
)
from brainq.errors import CallNotFound, InvalidInput, ResultRefused, TokenRefused
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.shorten import beginning

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.redis.outside import RedisOutsideResults
    from brainq.adapters.redis.people import RedisHolds
    from brainq.adapters.sql.repositories.blobs import Blobs
    from brainq.adapters.sql.repositories.calls import Calls

log = logger("brainq.people")
MAX_RESULT_CHARS = 256_000  # as for the result of a tool
MAX_ERROR_CHARS = 2_000
Taken = Literal["settled", "early", "late"]
"""What became of a result.

settled   the call has it, and its turn goes on
early     the call's tool has not returned yet; it gets the result when it does
late      the call waits no more; that a change was made after all is kept, and the model reads it
"""
_TOKEN_REFUSALS = {
    "USED": "it was used before, and a call is completed once",
    "BAD": "its call does not wait for it",
    "GONE": "its call is not known any more; its turn ended some time ago",
}
_CALL_REFUSALS = {
    "USED": "it was given one before",
    "BAD": "it does not wait for one, or not yet; `handle.calls()` says which calls do (park `client`)",
    "GONE": "it is not known any more; its turn ended some time ago",
}
_ACCEPTED = ("SETTLED", "EARLY", "LATE")
OutsideOutcome = ToolSuccess | ToolFailure | ToolUnknown
_STATUSES: dict[type[object], TraceStatus] = {
    ToolSuccess: TraceStatus.COMPLETED,
    ToolFailure: TraceStatus.FAILED,
    ToolUnknown: TraceStatus.UNKNOWN,
}


@dataclass(eq=False, kw_only=True)
class OutsideDesk:
    """The desk that completes waiting calls with results from outside, each once. Tokens are secrets: no message shows
    one.

    tenants   where the result is sent if Redis does not show the call because its tenant moves
    """

    outside: RedisOutsideResults
    calls: RedisCalls
    holds: RedisHolds
    intents: Calls
    blobs: Blobs
    limits: FileLimits
    tenants: TenantPlaces = ONE_CELL

    def complete(self, token: str, result: object, *, partial: bool = False) -> Taken:
        """Complete the call with its result: JSON of at most 256,000 characters, a File, or WithFiles.

        partial   the result is not complete, and the model is informed of it

        Raises InvalidInput, TokenRefused, TenantMoved, TenantMoving.
        """
        outcome, files = self._success(result, partial=partial)
        return self._end(token, outcome, files)

    def fail(self, token: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """End the call without a result. Raises as `complete`.

        error   one line for the model; a ToolError or OutcomeUnknown has the meaning it has when a tool raises it
        """
        return self._end(token, _failure(error))

    def give_result(self, ref: CallRef, result: object, *, partial: bool = False) -> Taken:
        """Complete a call of the client's own tool, as `complete` does. Raises InvalidInput, CallNotFound,
        ResultRefused."""
        outcome, files = self._success(result, partial=partial)
        return self._end_client_call(ref, outcome, files)

    def give_error(self, ref: CallRef, error: str | ToolError | OutcomeUnknown) -> Taken:
        """End a call of the client's own tool without a result, as `fail` does. Raises as `give_result`."""
        return self._end_client_call(ref, _failure(error))

    def _success(self, result: object, *, partial: bool) -> tuple[ToolSuccess, tuple[File, ...]]:
        """Return the outcome and its files. Raises InvalidInput."""
        try:
            value, given = split_files(result)
        except ValueError as wrong:
            raise InvalidInput("files", str(wrong)) from None
        files = check_files("files", given, self.limits)
        references = tuple(file.attachment for file in files)
        return ToolSuccess(value=_plain_result(value), partial=partial, attachments=references), files

    def _end_client_call(self, ref: CallRef, outcome: OutsideOutcome, files: Sequence[File] = ()) -> Taken:
        facts = self._facts(ref)
        name = full_call_id(ref.turn_id, ref.call_id)
        if facts is None:
            raise CallNotFound(f"no call {name!r}; its turn ended some time ago, or never made it")
        if facts.client_arguments is None:
            raise ResultRefused(f"call {name!r} is of the brain's own tool {facts.tool!r}; a worker runs it")
        outcome = self._with_stored_files(ref, facts, outcome, files)
        word = self._complete(client_token(ref.call_id), ref, facts, outcome)
        if word not in _ACCEPTED:
            why = _CALL_REFUSALS.get(word, word.lower())
            raise ResultRefused(f"call {name!r} takes no result: {why}", was_given=word == "USED")
        return cast("Taken", word.lower())

    def _end(self, token: str, outcome: OutsideOutcome, files: Sequence[File] = ()) -> Taken:
        ref, facts = self._awaited_call(token)
        outcome = self._with_stored_files(ref, facts, outcome, files)
        word = self._complete(token, ref, facts, outcome)
        if word not in _ACCEPTED:
            raise TokenRefused(f"this token is refused: {_TOKEN_REFUSALS.get(word, word.lower())}")
        # An early result is recorded now as well, because nothing else records it, and a rescue finds it.
        self._record(ref, facts, outcome, late=word == "LATE")
        return cast("Taken", word.lower())

    def _with_stored_files(
        self, ref: CallRef, facts: CallFacts, outcome: OutsideOutcome, files: Sequence[File]
    ) -> OutsideOutcome:
        """Return the outcome with its files stored. The files of a late or second result are left out, because nobody
        would own them."""
        if facts.is_awaited:
            self.blobs.keep(ref.session_id, ref.turn_id, files)
        elif isinstance(outcome, ToolSuccess) and files:
            return outcome.model_copy(update={"attachments": (), "files_lost": "nobody waits for this result"})
        return outcome

    def _complete(self, token: str, ref: CallRef, facts: CallFacts, outcome: OutsideOutcome) -> SettleResult:
        if isinstance(outcome, ToolUnknown):
            outcome = unknown_outcome(outcome, is_read=facts.effect.is_read)
        message = tool_message(outcome, ref.call_id, facts.tool, ref.turn_id, facts.step, self._edited_note(ref))
        reply = self.outside.complete(
            ref,
            token,
            status=_STATUSES[type(outcome)],
            message=message,
            detail=_outcome_detail(outcome),
            retryable=outcome.retryable,
            notice=None if facts.effect.is_read else self._notice(ref, facts, outcome),
            outcome=outcome,
        )
        if reply.word == "GONE":
            self.tenants.require_shown(ref.session_id)
        return reply.word

    def _awaited_call(self, token: str) -> tuple[CallRef, CallFacts]:
        if not isinstance(cast("object", token), str) or not 0 < len(token) <= MAX_TOKEN_CHARS:
            raise InvalidInput(
                "token",
                f"it must be a text of 1 to {MAX_TOKEN_CHARS} characters; use the one the tool put into Pending",
            )
        ref = parse_outside_token(token) or self.outside.find(token)
        if ref is None:
            raise TokenRefused(
                "no call waits for this token; one of a tool's own is known once the tool has returned Pending"
            )
        facts = self._facts(ref)
        if facts is None:
            raise TokenRefused(f"this token is refused: {_TOKEN_REFUSALS['GONE']}")
        return ref, facts

    def _facts(self, ref: CallRef) -> CallFacts | None:
        facts = self.calls.facts(ref)
        if facts is None:
            self.tenants.require_shown(ref.session_id)
        return facts

    def _edited_note(self, ref: CallRef) -> str:
        """Return the note that begins the message if a person changed the arguments."""
        status = self.holds.approvals([ref])[0]
        if status is None or not status.edited or status.arguments is None:
            return ""
        return edited_note(status.arguments)

    def _notice(self, ref: CallRef, facts: CallFacts, outcome: OutsideOutcome) -> Message:
        """Return the note for the model about a result that is too late for its call."""
        text, is_error = outcome_text(outcome)
        word = "an error" if is_error else "a result"
        return Message(
            role="user",
            content=(
                f"[Notice from the runtime: {word} came from outside after all for the earlier call "
                f"{facts.tool}({self._arguments(ref, facts)[:500]}), reported as not finished: {text[:2000]}]"
            ),
            extra={"note": "late write"},
        )

    def _arguments(self, ref: CallRef, facts: CallFacts) -> str:
        if facts.client_arguments is not None:
            return facts.client_arguments
        for row in self.intents.of_turn(ref.turn_id):
            if (row.call_id, row.attempt) == (ref.call_id, facts.attempt):
                kept: Any = None if row.args_json is None else json.loads(row.args_json)
                return "" if kept is None else json.dumps(kept, ensure_ascii=False)
        return ""

    def _record(self, ref: CallRef, facts: CallFacts, outcome: OutsideOutcome, *, late: bool) -> None:
        if facts.effect.is_read:
            return
        try:
            self.intents.record_outcome(ref.turn_id, ref.call_id, facts.attempt, outcome, late)
        except Exception as failure:
            # The call has its result. Only the evidence in SQL is incomplete.
            log.error("outcome not recorded in SQL", failure=failure, turn_id=ref.turn_id, call_id=ref.call_id)


def _failure(error: str | ToolError | OutcomeUnknown) -> ToolFailure | ToolUnknown:
    if isinstance(error, ToolError):
        return ToolFailure(
            error=_plain_words(error.text), error_type="OutsideFailure", retryable=error.retryable, own_words=True
        )
    if isinstance(error, OutcomeUnknown):
        return ToolUnknown(message=_plain_words(error.text), why="OutcomeUnknown")
    return ToolFailure(error=_plain_error(error), error_type="OutsideFailure")


def _outcome_detail(outcome: OutsideOutcome) -> str:
    match outcome:
        case ToolSuccess():
            return "partial" if outcome.partial else ""
        case ToolFailure():
            return outcome.error_type
        case ToolUnknown():
            return outcome.why


def _plain_words(text: object) -> str:
    if not isinstance(text, str) or not 0 < len(text.strip()) <= MAX_RESULT_CHARS:
        raise InvalidInput("error", f"its text must be 1 to {MAX_RESULT_CHARS:,} characters that say what went wrong")
    check_json("error", text)
    return text.strip()


def _plain_result(result: object) -> Any:
    text = json.dumps(check_json("result", result), ensure_ascii=False)
    if len(text) > MAX_RESULT_CHARS:
        raise InvalidInput(
            "result",
            f"it is {len(text):,} characters of JSON; send at most {MAX_RESULT_CHARS:,}, and link to the rest",
        )
    return json.loads(text)


def _plain_error(error: object) -> str:
    if not isinstance(error, str) or not error.strip():
        raise InvalidInput("error", "it is empty or no text; write one line for the model about what went wrong")
    check_json("error", error)
    return beginning(" ".join(error.split()), MAX_ERROR_CHARS)

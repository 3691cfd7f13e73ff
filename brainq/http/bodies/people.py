"""What people say to turns and sessions, and what they are answered: input, holds, approvals, results from outside."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from brainq.client.checks import MAX_COMMENT_CHARS, MAX_HOLD_S, MAX_REASON_CHARS
from brainq.contracts.approval import Approval
from brainq.contracts.file import MAX_FILES, read_files
from brainq.contracts.hold import DEFAULT_HOLD_S, HoldPolicy, StandingHold
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.http.bodies.base import Answer, Body
from brainq.http.bodies.files import FileBody
from brainq.http.gateway import ID, TURN_ID
from brainq.tools.with_files import WithFiles

MAX_BY_CHARS = 90  # with the caller's name before it


class InputBody(Body):
    """Follow-up input. With `readiness` or `attachments` the text may be empty."""

    text: str = Field(default="", max_length=MAX_MESSAGE_CHARS)
    client_message_id: str | None = Field(default=None, pattern=ID)
    readiness: bool | None = None
    expected_turn_id: str | None = Field(default=None, pattern=TURN_ID)
    attachments: list[FileBody] = Field(default=[], max_length=MAX_FILES)


class ReasonBody(Body):
    reason: str = Field(default="", max_length=MAX_REASON_CHARS)


class HoldBody(Body):
    """What a hold, or a readiness flag, is for, how long it may stand, and what becomes of it then."""

    reason: str = Field(default="", max_length=MAX_REASON_CHARS)
    expires_in_s: float = Field(default=DEFAULT_HOLD_S, gt=0, le=MAX_HOLD_S, allow_inf_nan=False)
    on_expiry: HoldPolicy = "deny"


class Holds(Answer):
    holds: tuple[StandingHold, ...]


class Placed(Answer):
    """A hold, or a readiness flag, by whose id it is released."""

    id: str
    session_id: str
    turn_id: str | None = None


class Released(Answer):
    """False: it stood no longer."""

    released: bool


class Approvals(Answer):
    approvals: tuple[Approval, ...]


class ApprovalPage(Approvals):
    """`next`: give it as `before` for the page after this one; None on the last."""

    next: str | None = None


class ApproveBody(Body):
    """`by`: the person who decides, beside the caller; `args_hash`: only if the arguments still are those of it."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    args_hash: str | None = Field(default=None, max_length=200)


class DenyBody(Body):
    """The model reads the reason."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    reason: str = Field(default="", max_length=MAX_COMMENT_CHARS)


class EditBody(Body):
    """The call runs with these arguments in place of the model's; `args_hash` is of those that were edited."""

    by: str = Field(default="", max_length=MAX_BY_CHARS)
    args_hash: str | None = Field(default=None, max_length=200)
    arguments: dict[str, JsonValue]


class OutsideResult(Body):
    """The result that a call waits for, and files beside it; `partial`: a part of what was asked for."""

    result: JsonValue
    files: list[FileBody] = Field(default=[], max_length=MAX_FILES)
    partial: bool = False


class OutsideError(Body):
    """There is no result; the model reads why."""

    error: str = Field(min_length=1, max_length=2_000)


class TakenAnswer(Answer):
    """`settled`: the call has it; `early`: it will, once its tool has returned; `late`: nobody waits any more."""

    taken: Literal["settled", "early", "late"]


def result_of(body: OutsideResult) -> object:
    """As the client takes it. Raises InvalidInput for what is no file."""
    if not body.files:
        return body.result
    return WithFiles(body.result, read_files("files", [file.model_dump() for file in body.files]))

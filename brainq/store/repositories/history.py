"""A session's past turns as what was asked, with its files, and answered."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, case, exists, func, select

from brainq.contracts.attachment import in_text
from brainq.contracts.earlier import EarlierTurn
from brainq.contracts.turn import TurnRequest
from brainq.store.database import Record
from brainq.store.tables import attachments, messages, turns

_BEYOND_ALL_ROWS = 2**62

_this_row = select(turns.c.row).where(turns.c.turn_id == bindparam("before")).scalar_subquery()
_last = (
    select(
        turns.c.turn_id,
        turns.c.row,
        case((exists().where(attachments.c.turn_id == turns.c.turn_id), turns.c.request_json)).label(
            "request_json"
        ),
    )
    .join(messages, messages.c.turn_id == turns.c.turn_id)
    .where(
        turns.c.session_id == bindparam("session"),
        turns.c.row < func.coalesce(_this_row, _BEYOND_ALL_ROWS),
        messages.c.role == "assistant",
        messages.c.seq == 0,
    )
    .order_by(turns.c.row.desc())
    .limit(bindparam("limit"))
    .subquery("last")
)

HISTORY = (
    select(messages.c.turn_id, messages.c.role, messages.c.content, messages.c.redacted, _last.c.request_json)
    .join(_last, _last.c.turn_id == messages.c.turn_id)
    .order_by(_last.c.row, messages.c.row)
)


def pair_up(found: Sequence[Record]) -> list[EarlierTurn]:
    """Rows of HISTORY to turns; several messages of one role in a turn are joined by an empty line."""
    by_turn: dict[str, dict[str, list[str]]] = {}
    hidden: set[str] = set()
    requests: dict[str, str] = {}
    for row in found:
        by_turn.setdefault(row["turn_id"], {}).setdefault(row["role"], []).append(row["content"])
        if row["redacted"]:
            hidden.add(row["turn_id"])
        if row["request_json"]:
            requests[row["turn_id"]] = row["request_json"]
    return [
        _earlier("\n\n".join(said["user"]), "\n\n".join(said["assistant"]), requests.get(turn_id))
        for turn_id, said in by_turn.items()
        if turn_id not in hidden and "user" in said and "assistant" in said
    ]


def _earlier(user: str, assistant: str, request_json: str | None) -> EarlierTurn:
    """The log names the files of what was said in its text; the model is shown them beside it again."""
    if request_json is not None:
        request = TurnRequest.model_validate_json(request_json)
        if request.attachments and user == in_text(request.user_message, request.attachments):
            return EarlierTurn(request.user_message, assistant, request.attachments)
    return EarlierTurn(user, assistant)

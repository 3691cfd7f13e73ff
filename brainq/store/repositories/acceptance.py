"""When two submits are one turn, and what is kept of a submit that was refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from brainq.contracts.ids import DERIVED, check_id, check_turn_id
from brainq.contracts.rows import Accepted
from brainq.contracts.turn import TurnRequest
from brainq.errors import InvalidInput, SubmitConflict, TurnRejected
from brainq.store.database import Record
from brainq.store.text import sql_text

MAX_RAW_BYTES = 10_240
MAX_REASON_CHARS = 2_000


def content_hash(request: TurnRequest) -> str:
    """sha256 over the canonical request without its ids, and without the trace it is sent in: a retry may be another.

    Fields at their defaults are left out, so that a field added later does not change old hashes.
    """
    content = request.model_dump(exclude={"turn_id", "request_key", "traceparent"}, exclude_defaults=True)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def same_turn(request: TurnRequest, digest: str, found: Sequence[Record]) -> Accepted:
    """Decide for a request that met existing rows. The request key counts before the turn id."""
    by_key = next((row for row in found if row["request_key"] == request.key), None)
    if by_key is not None:
        if by_key["state"] == "rejected":
            raise TurnRejected(by_key["reject_reason"] or "rejected")
        if by_key["content_hash"] != digest:
            raise SubmitConflict(
                f"request_key {request.key!r} was used before, by turn {by_key['turn_id']!r}, with other "
                "content; send other content under a new request_key"
            )
        return Accepted(
            by_key["turn_id"], by_key["session_id"], created=False, ended=by_key["state"] != "accepted"
        )
    by_turn = next((row for row in found if row["turn_id"] == request.turn_id), None)
    if by_turn is not None:
        raise SubmitConflict(
            f"turn_id {request.turn_id!r} was used before, with request_key {by_turn['request_key']!r}; "
            "make a new turn_id, or send that request_key again"
        )
    raise SubmitConflict(f"turn {request.turn_id!r} was deleted while it was submitted; submit it again")


def rejected_values(
    turn_id: object, request_key: object, session_id: object, reason: str, raw: object
) -> dict[str, object]:
    """The columns of a rejected row; never raises."""
    kept = _raw_text(raw)
    seen = json.dumps([_shown(turn_id), _shown(request_key), _shown(session_id), kept])
    stand_in = f"rejected-{hashlib.sha256(seen.encode()).hexdigest()[:32]}"
    kept_turn_id = _id_or(check_turn_id, turn_id, stand_in)
    return {
        "turn_id": kept_turn_id,
        "request_key": _id_or(check_id, request_key, kept_turn_id),
        "session_id": _id_or(check_id, session_id, "unknown"),
        "state": "rejected",
        "content_hash": "",
        "reject_reason": reason[:MAX_REASON_CHARS],
        "request_json": kept,
    }


def _id_or(check: Callable[[str, object], str], value: object, otherwise: str) -> str:
    try:
        kept = check("id", value)
    except InvalidInput:
        return otherwise
    # A refused submit must not stand in the way of the turn whose id brainq derives.
    return otherwise if kept.startswith(DERIVED) else kept


def _raw_text(raw: object) -> str:
    text = raw if isinstance(raw, str) else _shown(raw)
    return sql_text(text[:MAX_RAW_BYTES]).encode()[:MAX_RAW_BYTES].decode(errors="ignore")


def _shown(value: object) -> str:
    try:
        return repr(value)[: MAX_RAW_BYTES * 2]
    except Exception:
        return f"<{type(value).__name__}>"

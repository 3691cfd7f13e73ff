"""How an approval stands, of what SQL and Redis say; and why it cannot be decided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from brainq.contracts.approval import Approval, ApprovalState, AskState, DecideWord
from brainq.errors import ApprovalDecided

# SQL has an approval before its step is committed to Redis. For as long as this, one that Redis does not know may
# still come; only what is shown depends on it.
COMMITTING = timedelta(seconds=5)

_STATES: dict[DecideWord, ApprovalState] = {"EXPIRED": "expired", "ENDED": "void"}
_REASONS: dict[ApprovalState, str] = {
    "pending": "its step is just being committed; decide again in a few seconds",
    "void": "its turn ended before anybody decided; submit another turn",
    "expired": "nobody decided in time, and the call was refused; ask for it in another turn",
}


def in_truth(row: Approval, told: AskState | None) -> Approval | None:
    """SQL's row as it stands, by what Redis told; None when its step is just being committed."""
    if row.state != "pending" and (told is None or told.state == "void"):
        return row
    if told is None:
        if datetime.now(UTC) - row.created_at < COMMITTING:
            return None
        return row.model_copy(update={"state": "void"})
    kept = told.args_hash == row.args_hash  # else SQL's arguments are others than those it is about
    return row.model_copy(
        update={
            "state": told.state,
            "edited": told.edited,
            "args_hash": told.args_hash,
            "arguments": told.arguments if told.arguments is not None else row.arguments if kept else None,
            "decided_by": told.by,
            "comment": told.why,
            "decided_at": None
            if told.decided_at_ms is None
            else datetime.fromtimestamp(told.decided_at_ms / 1000, UTC),
        }
    )


def refusal(word: DecideWord, turn_state: str, now: Approval, decision: str) -> ApprovalDecided:
    """Why it cannot be decided like this (any more), and what to do. `turn_state` is told where the turn has ended."""
    state = _STATES.get(word, now.state)
    if word == "STALE":
        problem = "its arguments are others than those that were seen; look again, then decide"
    elif word == "ENDED":
        problem = f"its turn is {turn_state} and makes no more calls; submit another turn"
    else:
        problem = _REASONS.get(state) or _stands(now, decision)
    return ApprovalDecided(now.id, state, problem)


def _stands(now: Approval, decision: str) -> str:
    by = f" by {now.decided_by}" if now.decided_by else ""
    other = ", with other arguments" if now.state == decision else ""
    return f"it was {now.state}{by} before{other}; a decision stands"

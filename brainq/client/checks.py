"""The checks of a verb's arguments, before anything is stored or sent. Each error names the field and the remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

from brainq.contracts import ids
from brainq.contracts.file import File
from brainq.contracts.people import ApprovalState, HoldPolicy, HoldSpec, TurnInput
from brainq.contracts.turn import MAX_MESSAGE_CHARS
from brainq.errors import InvalidInput

MAX_HOLD_S = 31_536_000.0  # a year
MAX_REASON_CHARS = 500
MAX_COMMENT_CHARS = 2_000
MAX_NAME_CHARS = 200
MAX_LISTED = 10_000


def turn_input(text: object, client_message_id: str | None, readiness: object, files: Sequence[File] = ()) -> TurnInput:
    """Return follow-up input. Raises InvalidInput if the text is empty, unless it comes with files or readiness."""
    if readiness is not None and not isinstance(readiness, bool):
        raise InvalidInput("readiness", f"{readiness!r} must be True, False or None")
    if not isinstance(text, str):
        raise InvalidInput("text", f"must be a str, got {type(text).__name__}")
    if not text.strip() and (text or readiness is None) and not files:
        raise InvalidInput("text", "it is empty; send a text, or readiness without a text")
    if len(text) > MAX_MESSAGE_CHARS:
        raise InvalidInput(
            "text", f"it has {len(text):,} characters; send at most {MAX_MESSAGE_CHARS:,}, and a link to the rest"
        )
    if text:
        _without_surrogates("text", text)
    message_id = (
        f"m-{ids.new_turn_id()}" if client_message_id is None else ids.check_id("client_message_id", client_message_id)
    )
    return TurnInput(
        client_message_id=message_id,
        text=text,
        readiness=readiness,
        attachments=tuple(file.attachment for file in files),
    )


def hold(kind: str, reason: object, expires_in_s: object, on_expiry: object) -> HoldSpec:
    """Return a hold with a new id that begins with `kind`. Raises InvalidInput."""
    if isinstance(expires_in_s, bool) or not isinstance(expires_in_s, int | float):
        raise InvalidInput("expires_in_s", f"{expires_in_s!r} must be a number of seconds, such as 3600")
    if not (math.isfinite(expires_in_s) and 0 < expires_in_s <= MAX_HOLD_S):
        raise InvalidInput("expires_in_s", f"{expires_in_s!r} must be above 0 and at most {MAX_HOLD_S:.0f} seconds")
    policies: tuple[HoldPolicy, ...] = get_args(HoldPolicy)
    for policy in policies:
        if on_expiry == policy:
            return HoldSpec(
                id=f"{kind}-{ids.new_turn_id()}",
                reason=text("reason", reason, MAX_REASON_CHARS),
                timeout_s=float(expires_in_s),
                on_timeout=policy,
            )
    raise InvalidInput("on_expiry", f"{on_expiry!r} is not one of {', '.join(policies)}")


def text(field: str, text: object, max_chars: int) -> str:
    """Return a text of at most `max_chars` characters, which may be empty. Raises InvalidInput."""
    if not isinstance(text, str):
        raise InvalidInput(field, f"must be a str, got {type(text).__name__}")
    if len(text) > max_chars:
        raise InvalidInput(field, f"it has {len(text):,} characters; use at most {max_chars:,}")
    return _without_surrogates(field, text)


def name(by: object) -> str:
    """Return the name of the person who acts, for the record. The name may be empty."""
    return text("by", by, MAX_NAME_CHARS)


def args_hash(value: object) -> str | None:
    return None if value is None else text("args_hash", value, 200)


def expected_turn(turn_id: object) -> str | None:
    return None if turn_id is None else ids.check_turn_id("expected_turn_id", turn_id)


def approval_state(state: object) -> str | None:
    """Return the state to filter by. Returns None, which selects every state, if `state` is `all` or None."""
    known: tuple[str, ...] = get_args(ApprovalState)
    if state is None or state == "all":
        return None
    if not isinstance(state, str) or state not in known:
        raise InvalidInput("state", f"{state!r} is not one of {', '.join(known)}, all")
    return state


def limit(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LISTED:
        raise InvalidInput("limit", f"{value!r} must be a whole number from 1 to {MAX_LISTED}")
    return value


def session_prefixes(prefixes: object) -> tuple[str, ...] | None:
    return None if prefixes is None else ids.check_prefixes("session_prefixes", prefixes)


def approval(approval_id: object) -> str:
    """Return an approval's id, which is the full id of its call. Raises InvalidInput."""
    turn_id, call_id = ids.split_call_id(approval_id)
    return ids.full_call_id(ids.check_turn_id("id", turn_id), call_id)


def call_id(turn_id: str, value: object) -> str:
    """Return the id that a call has in its turn. Accepts that id or the call's full id. Raises InvalidInput."""
    if isinstance(value, str) and ids.is_call_id(value):
        return value
    of_turn, call = ids.split_call_id(value)
    if of_turn != turn_id:
        raise InvalidInput("call_id", f"{value!r} is not a call of turn {turn_id!r}")
    return call


def after_call(turn_id: str, call_id: object) -> str | None:
    """Return the id that a call has in its turn, given its full id. Returns None if `call_id` is None. Raises
    InvalidInput."""
    if call_id is None:
        return None
    of_turn, call = ids.split_call_id(call_id)
    if of_turn != turn_id:
        raise InvalidInput("after", f"{call_id!r} is not a call of turn {turn_id!r}")
    return call


def after_count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidInput("after", f"{count!r} must be the number of messages to skip, 0 or more")
    return count


def _without_surrogates(field: str, text: str) -> str:
    """Return the text. Raises InvalidInput if it has half of a surrogate pair, because storing that
    would fail later."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "it contains half of a surrogate pair; send whole characters") from None
    return text

"""Ids, and how each is made and checked.

Ids go into Redis keys, Celery task ids and file names, so they are a strict alphabet everywhere: no braces
(a hash tag), no spaces, no control characters, no slashes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time

from brainq.errors import InvalidInput

MAX_ID_LENGTH = 128
CHILD = "ch-"
BOUNCED = "in-"
SCHEDULED = "schedule:"
DERIVED = (CHILD, BOUNCED, SCHEDULED)
"""How the turn ids begin that brainq derives, of child turns and of input that becomes a turn, and the request keys of
scheduled turns. Whoever took one first would stand in the way of its turn."""
ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,127}$"
TURN_ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9_-]{2,63}$"
"""What ids look like, as JSON schemas say it; Python's `$` would let a line feed follow."""
_ID = re.compile(ID_PATTERN[1:-1], re.ASCII)
_TURN_ID = re.compile(TURN_ID_PATTERN[1:-1], re.ASCII)
_CALL_ID = re.compile(r"c([0-9]{1,9})-([0-9]{1,9})")
_FULL_CALL_ID = re.compile(rf"(.+)[-.]({_CALL_ID.pattern})")
_UNNAMED = re.compile(r"oa-[0-9a-f]{24}")
_BACKGROUND = "-bg"
_ATTENDED = "-att"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u


def new_turn_id() -> str:
    """A ULID: 48 bits of time, 80 random bits, 26 characters that sort by time."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    letters: list[str] = []
    for _ in range(26):
        letters.append(_ALPHABET[number & 31])
        number >>= 5
    return "".join(reversed(letters))


def background_turn_id() -> str:
    """The id of a turn whose client does not wait for it. It says so for as long as the turn is kept.

    A key that is sent again is the turn that was begun first, with that one's id.
    """
    return new_turn_id() + _BACKGROUND


def is_background_turn(turn_id: str) -> bool:
    """Whether `background_turn_id` may have made it."""
    return turn_id.endswith(_BACKGROUND)


def attended_turn_id() -> str:
    """The id of a turn that goes on only while its client is there to run its tools. It says so for as long as the turn
    is kept."""
    return new_turn_id() + _ATTENDED


def is_attended_turn(turn_id: str) -> bool:
    """Whether `attended_turn_id` may have made it."""
    return turn_id.endswith(_ATTENDED)


def unnamed_session(prefix: str, digest: str) -> str:
    """The id of a session that its client did not name. It says so, because nobody may come back to it.

    digest   24 hex digits or more, of what tells it from the others
    """
    return f"{prefix}oa-{digest[:24]}"


def is_unnamed_session(session_id: str) -> bool:
    """Whether `unnamed_session` may have made it."""
    return _UNNAMED.fullmatch(session_id[-27:]) is not None


def call_id(step: int, index: int) -> str:
    """The id of the call at `index` of a step's reply.

    It is derived, not drawn: if Redis loses its last second and a step is asked again, the new calls meet
    the old intents in SQL instead of running a second time.
    """
    return f"c{step}-{index}"


def child_turn_id(turn_id: str, call_id: str) -> str:
    """The id of the turn that a call starts: the same one for every attempt of it."""
    return f"{CHILD}{hashlib.sha256(f'{turn_id} {call_id}'.encode()).hexdigest()[:24]}"


def call_place(call_id: str) -> tuple[int, int]:
    """(step, index) of a call, from its id. Raises ValueError for what `call_id` did not make."""
    found = _CALL_ID.fullmatch(call_id)
    if found is None:
        raise ValueError(f"{call_id!r} is not the id of a call")
    return int(found[1]), int(found[2])


def is_call_id(text: str) -> bool:
    """Whether `call_id` may have made it."""
    return _CALL_ID.fullmatch(text) is not None


def full_call_id(turn_id: str, call_id: str) -> str:
    """The id of a call wherever calls of several turns meet: `TURN-CALL`, such as `01k7x2-c2-0`.

    It is of A-Z a-z 0-9 _ -, as services want the ids of calls. Where brainq made the turn's id it has at most 40
    characters; at most 64, the most that services take, where the turn's id has 53 or less.
    """
    return f"{turn_id}-{call_id}"


def split_call_id(full: object) -> tuple[str, str]:
    """(turn id, call id) of a full call id. A person may have written the beginning of a turn's id, or a dot between
    the two; the turn's id is not looked at. Raises InvalidInput."""
    found = _FULL_CALL_ID.fullmatch(full) if isinstance(full, str) else None
    if found is None:
        raise InvalidInput("id", f"{_shown(full)} is not a call's id; write TURN-CALL, such as 01k7x2-c1-0")
    return found[1], found[2]


def check_id(field: str, value: object) -> str:
    """Return `value` if it may be used as an id; raise InvalidInput naming `field` if not."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidInput(
            field,
            f"{_shown(value)} is not a valid id; use 1 to {MAX_ID_LENGTH} of A-Z a-z 0-9 . _ : @ + = -, "
            "starting with a letter or digit",
        )
    return value


def check_turn_id(field: str, value: object) -> str:
    """Like `check_id`, for turn ids: 3 to 64 of A-Z a-z 0-9 _ - (they begin Celery task ids)."""
    if not isinstance(value, str) or not _TURN_ID.fullmatch(value):
        raise InvalidInput(
            field,
            f"{_shown(value)} is not a valid turn id; use 3 to 64 of A-Z a-z 0-9 _ -, "
            "starting with a letter or digit",
        )
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

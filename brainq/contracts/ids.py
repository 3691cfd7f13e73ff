"""Ids: how each is made and checked, and session prefixes, which separate one tenant's sessions from another's.

Ids go into Redis keys, Celery task ids and file names. So their alphabet is strict: no braces (a hash tag), no spaces,
no control characters, no slashes. A tenant's sessions all begin with its prefix, which ends with a colon: `acme:` has
`acme:42` and `acme:eu:7`, and neither `acme2:1` nor `acme`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Sequence
from typing import cast

from brainq.errors import InvalidInput

MAX_ID_LENGTH = 128
CHILD_TURN_PREFIX = "ch-"
BOUNCED_TURN_PREFIX = "in-"
SCHEDULED_KEY_PREFIX = "schedule:"
DERIVED_PREFIXES = (CHILD_TURN_PREFIX, BOUNCED_TURN_PREFIX, SCHEDULED_KEY_PREFIX)
"""The prefixes of the turn ids that brainq derives, for child turns and for input that becomes a turn, and of the
request keys of scheduled turns. A producer that used one could block its turn."""
ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,127}$"
TURN_ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9_-]{2,63}$"
"""The pattern of ids in JSON schemas. Python's `$` would also allow a line feed at the end."""
_ID = re.compile(ID_PATTERN[1:-1], re.ASCII)
_TURN_ID = re.compile(TURN_ID_PATTERN[1:-1], re.ASCII)
call_id: Callable[[int, int], str] = "c{}-{}".format
"""Returns the id of a call, from its step and its index in the step's reply.

It is derived, not drawn. If Redis loses its last second and a step is repeated, the new calls meet the old intents in
SQL and do not run a second time.
"""
_CALL_ID = re.compile(r"c([0-9]{1,9})-([0-9]{1,9})")
_FULL_CALL_ID = re.compile(rf"(.+)[-.]({_CALL_ID.pattern})")
_UNNAMED_SESSION = re.compile(r"oa-[0-9a-f]{24}")
_BACKGROUND_SUFFIX = "-bg"
_ATTENDED = "-att"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u
ALL_SESSIONS = "*"
"""Stands for every session, in place of a prefix."""
PREFIX_BOUNDARY = ":"
_AFTER_BOUNDARY = chr(ord(PREFIX_BOUNDARY) + 1)
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,125}:", re.ASCII)


def new_turn_id() -> str:
    """Return a ULID: 48 bits of time and 80 random bits, as 26 characters that sort by time."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    letters: list[str] = []
    for _ in range(26):
        letters.append(_ALPHABET[number & 31])
        number >>= 5
    return "".join(reversed(letters))


def background_turn_id() -> str:
    """Return the id of a turn whose client does not wait for it. The id shows this for as long as the turn is kept.

    A repeated request key leads to the turn that began first, with its id.
    """
    return new_turn_id() + _BACKGROUND_SUFFIX


def is_background_turn(turn_id: str) -> bool:
    """Return whether `background_turn_id` may have made the id."""
    return turn_id.endswith(_BACKGROUND_SUFFIX)


def attended_turn_id() -> str:
    """Return the id of a turn that continues only while its client is there to run its tools. The id shows this for as
    long as the turn is kept."""
    return new_turn_id() + _ATTENDED


def is_attended_turn(turn_id: str) -> bool:
    """Return whether `attended_turn_id` may have made the id."""
    return turn_id.endswith(_ATTENDED)


def unnamed_session(prefix: str, digest: str) -> str:
    """Return the id of a session that its client did not name.

    The id marks such a session, because its client may never come back to it.

    digest: 24 or more hex digits that distinguish it from other sessions.
    """
    return f"{prefix}oa-{digest[:24]}"


def is_unnamed_session(session_id: str) -> bool:
    """Return whether `unnamed_session` may have made the id."""
    return _UNNAMED_SESSION.fullmatch(session_id[-27:]) is not None


def child_turn_id(turn_id: str, call_id: str) -> str:
    """Return the id of the turn that a call starts. It is the same for every attempt of the call."""
    return f"{CHILD_TURN_PREFIX}{hashlib.sha256(f'{turn_id} {call_id}'.encode()).hexdigest()[:24]}"


def parse_call_id(call_id: str) -> tuple[int, int]:
    """Return the step and the index of a call, from its id. Raises ValueError for an id that `call_id` did not make."""
    found = _CALL_ID.fullmatch(call_id)
    if found is None:
        raise ValueError(f"{call_id!r} is not the id of a call")
    return int(found[1]), int(found[2])


def is_call_id(text: str) -> bool:
    """Return whether `call_id` may have made the text."""
    return _CALL_ID.fullmatch(text) is not None


def full_call_id(turn_id: str, call_id: str) -> str:
    """Return the id of a call among calls of several turns: `TURN-CALL`, such as `01k7x2-c2-0`.

    It consists of A-Z a-z 0-9 _ -, as services require of call ids. It has at most 40 characters if brainq made the
    turn's id, and at most 64, the most that services accept, if the turn's id has at most 53.
    """
    return f"{turn_id}-{call_id}"


def call_order(call_id: str) -> tuple[int, int]:
    """Return the step of a call and its position in the step's reply, for sorting: `c10-0` comes after `c2-1`."""
    step, _, at = call_id[1:].partition("-")
    return int(step), int(at)


def split_call_id(full: object) -> tuple[str, str]:
    """Return the turn id and the call id of a full call id. A person may have written the beginning of a turn's id, or
    a dot between the two; the turn's id is not checked. Raises InvalidInput."""
    found = _FULL_CALL_ID.fullmatch(full) if isinstance(full, str) else None
    if found is None:
        raise InvalidInput("id", f"{_shortened_repr(full)} is not a call's id; write TURN-CALL, such as 01k7x2-c1-0")
    return found[1], found[2]


def check_id(field: str, value: object) -> str:
    """Return `value` if it is a valid id. Raises InvalidInput naming `field` if it is not."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidInput(
            field,
            f"{_shortened_repr(value)} is not a valid id; use 1 to {MAX_ID_LENGTH} of A-Z a-z 0-9 . _ : @ + = -, "
            "starting with a letter or digit",
        )
    return value


def check_turn_id(field: str, value: object) -> str:
    """Return `value` if it is a valid turn id: 3 to 64 of A-Z a-z 0-9 _ - (turn ids begin Celery task ids). Raises
    InvalidInput naming `field` if it is not."""
    if not isinstance(value, str) or not _TURN_ID.fullmatch(value):
        raise InvalidInput(
            field,
            f"{_shortened_repr(value)} is not a valid turn id; use 3 to 64 of A-Z a-z 0-9 _ -, "
            "starting with a letter or digit",
        )
    return value


def _shortened_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_prefixes(field: str, values: object) -> tuple[str, ...]:
    """Return these prefixes, each once, or only `*`. Raises InvalidInput for a prefix that could begin another tenant's
    sessions, for an empty one, and if there is none."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InvalidInput(field, f"{values!r} names no session; give prefixes such as 'acme:', or '*' for all")
    given = cast("Sequence[object]", values)
    kept = tuple(dict.fromkeys(_check_prefix(field, value) for value in given))
    if ALL_SESSIONS in kept and len(kept) > 1:
        raise InvalidInput(field, f"'*' is all sessions; give it alone, or leave it out of {', '.join(kept)}")
    return kept


def is_within(prefixes: Sequence[str], session_id: str) -> bool:
    """Return whether a session is covered by these prefixes, or by `*`."""
    return any(prefix == ALL_SESSIONS or session_id.startswith(prefix) for prefix in prefixes)


def tenant_of(session_id: str) -> str:
    """Return the prefix of its tenant's sessions, up to the first colon. It is `:` for all sessions without a colon."""
    tenant, boundary, _ = session_id.partition(PREFIX_BOUNDARY)
    return tenant + PREFIX_BOUNDARY if boundary else PREFIX_BOUNDARY


def prefix_upper_bound(prefix: str) -> str:
    """Return the least text that sorts, by its bytes, after everything with this prefix."""
    return prefix.removesuffix(PREFIX_BOUNDARY) + _AFTER_BOUNDARY


def sibling_session_id(session_id: str, name: str) -> str:
    """Return the id of a session called `name` that everybody who may see this session may see, too.

    `acme:eu:7` and `ch-1` give `acme:eu:ch-1`. If that is too long for an id, the prefix is shortened. A longer prefix
    is never used, so nobody loses access to see it.
    """
    prefix = session_id[: session_id.rfind(PREFIX_BOUNDARY) + 1]
    while prefix and len(prefix) + len(name) > MAX_ID_LENGTH:
        prefix = prefix[: prefix.rfind(PREFIX_BOUNDARY, 0, -1) + 1]
    return prefix + name


def _check_prefix(field: str, value: object) -> str:
    if value == ALL_SESSIONS:
        return ALL_SESSIONS
    if not isinstance(value, str) or not value:
        raise InvalidInput(field, f"{value!r} is no prefix; write 'acme:' for one tenant, or '*' for all sessions")
    if not value.endswith(PREFIX_BOUNDARY) and _PREFIX.fullmatch(value + PREFIX_BOUNDARY):
        raise InvalidInput(
            field,
            f"{value!r} is also how another tenant's sessions may begin ({value + '2:1'!r}); end it with a colon: "
            f"{value + PREFIX_BOUNDARY!r}",
        )
    if not _PREFIX.fullmatch(value):
        shown = value if len(value) <= 60 else value[:57] + "..."
        raise InvalidInput(
            field,
            f"{shown!r} is not a valid prefix; use 2 to {MAX_ID_LENGTH - 1} of A-Z a-z 0-9 . _ : @ + = -, starting "
            "with a letter or digit and ending with a colon",
        )
    return value

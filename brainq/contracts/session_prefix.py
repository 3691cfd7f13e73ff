"""Session prefixes: how a tenant's sessions are told from another's.

A tenant's sessions all begin with its prefix, which ends with a colon: `acme:` has `acme:42` and `acme:eu:7`, and
neither `acme2:1` nor `acme`. Without the colon `acme` would be the beginning of `acme2:1`, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from brainq.contracts.ids import MAX_ID_LENGTH
from brainq.errors import InvalidInput

ALL = "*"
"""In the place of a prefix: every session."""
BOUNDARY = ":"
_NEXT = chr(ord(BOUNDARY) + 1)
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,125}:", re.ASCII)


def check_prefixes(field: str, values: object) -> tuple[str, ...]:
    """These prefixes, each once, or only `*`. Raises InvalidInput for one that could be the beginning of another
    tenant's sessions, for an empty one, and for none at all."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InvalidInput(
            field, f"{values!r} names no session; give prefixes such as 'acme:', or '*' for all"
        )
    given = cast("Sequence[object]", values)
    kept = tuple(dict.fromkeys(_check_prefix(field, value) for value in given))
    if ALL in kept and len(kept) > 1:
        raise InvalidInput(field, f"'*' is all sessions; give it alone, or leave it out of {', '.join(kept)}")
    return kept


def is_within(prefixes: Sequence[str], session_id: str) -> bool:
    """Whether a session is one of those that these prefixes, or `*`, name."""
    return any(prefix == ALL or session_id.startswith(prefix) for prefix in prefixes)


def tenant_of(session_id: str) -> str:
    """What the ids of its tenant's sessions begin with: up to the first colon. `:` where it has none: those are one."""
    tenant, boundary, _ = session_id.partition(BOUNDARY)
    return tenant + BOUNDARY if boundary else BOUNDARY


def first_beyond(prefix: str) -> str:
    """The least text that sorts, by its bytes, after everything that begins with this prefix."""
    return prefix.removesuffix(BOUNDARY) + _NEXT


def beside(session_id: str, name: str) -> str:
    """A session called `name` that whoever sees this one sees, too: `acme:eu:7` and `ch-1` are `acme:eu:ch-1`.

    Where that is too long for an id the prefix is shortened, so that fewer see it and never more.
    """
    prefix = session_id[: session_id.rfind(BOUNDARY) + 1]
    while prefix and len(prefix) + len(name) > MAX_ID_LENGTH:
        prefix = prefix[: prefix.rfind(BOUNDARY, 0, -1) + 1]
    return prefix + name


def _check_prefix(field: str, value: object) -> str:
    if value == ALL:
        return ALL
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            field, f"{value!r} is no prefix; write 'acme:' for one tenant, or '*' for all sessions"
        )
    if not value.endswith(BOUNDARY) and _PREFIX.fullmatch(value + BOUNDARY):
        raise InvalidInput(
            field,
            f"{value!r} is also how another tenant's sessions may begin ({value + '2:1'!r}); end it with a colon: "
            f"{value + BOUNDARY!r}",
        )
    if not _PREFIX.fullmatch(value):
        shown = value if len(value) <= 60 else value[:57] + "..."
        raise InvalidInput(
            field,
            f"{shown!r} can begin no session; use 2 to {MAX_ID_LENGTH - 1} of A-Z a-z 0-9 . _ : @ + = -, starting "
            "with a letter or digit and ending with a colon",
        )
    return value

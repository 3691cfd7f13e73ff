"""Callers: their sessions, what they may do there, and their request keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from brainq.contracts.ids import ALL_SESSIONS, check_prefixes, is_within
from brainq.errors import InvalidInput

MAX_NAME_CHARS = 100


class Verb(StrEnum):
    """A permission of a caller. None includes another."""

    READ = "read"
    """Read turns, results, events, history and approvals."""
    SUBMIT = "submit"
    """Submit turns."""
    CONFIGURE = "configure"
    """Choose the model, prompt, directory, limits and options of submitted turns. Without this verb, the brain's own
    are used."""
    STEER = "steer"
    """Steer live turns: input, holds, readiness, cancel, pause, interrupt, drop. Forget memories."""
    DECIDE = "decide"
    """Decide on calls: approve, deny, edit, give or fail an outside result."""
    OPERATE = "operate"
    """Operate the deployment: retry finalizer steps, manage pools. Work beyond single sessions also needs `*`."""
    METRICS = "metrics"
    """Read the metrics of the whole fleet, which also needs `*`, and nothing else."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: `Caller("acme-web", ("acme:",), frozenset({Verb.READ, Verb.SUBMIT}))`. Hashable.

    name       the name that is recorded with the caller's decisions
    sessions   prefixes of the caller's sessions, its tenants; ("*",) means all sessions
    verbs      what the caller may do there

    Raises InvalidInput for an empty name, for no prefix, and for a prefix that another tenant's sessions could have.
    """

    name: str
    sessions: tuple[str, ...]
    verbs: frozenset[Verb]

    def __post_init__(self) -> None:
        check_name("name", self.name)
        object.__setattr__(self, "sessions", check_prefixes("sessions", self.sessions))
        object.__setattr__(self, "verbs", check_verbs("verbs", self.verbs))

    @property
    def counted_as(self) -> str:
        """The key of the caller's counters. It contains the sessions, because two tenants may choose the same name."""
        return f"{self.name} of {' '.join(self.sessions)}"

    @property
    def prefixes(self) -> tuple[str, ...] | None:
        """The session prefixes that lists are filtered by, or None if the caller sees all sessions."""
        return None if ALL_SESSIONS in self.sessions else self.sessions


ALL_VERBS = frozenset(Verb)


def may(caller: Caller, verb: Verb, session_id: str | None) -> bool:
    """Return whether the caller may do this to a session, or, for None, beyond single sessions, which needs `*`."""
    if verb not in caller.verbs:
        return False
    if session_id is None:
        return ALL_SESSIONS in caller.sessions
    return bool(session_id) and is_within(caller.sessions, session_id)


def check_name(field: str, name: object) -> str:
    """Return a caller's name. Raises InvalidInput naming `field`."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(field, f"name its owner in 1 to {MAX_NAME_CHARS} printable characters, such as 'acme-web'")
    return name


def check_verbs(field: str, verbs: object) -> frozenset[Verb]:
    """Return the verbs. Raises InvalidInput naming `field` for an unknown verb, and for none at all."""
    known = ", ".join(Verb)
    words = () if isinstance(verbs, str) or not isinstance(verbs, Iterable) else tuple(cast("Iterable[object]", verbs))
    if not words:
        raise InvalidInput(field, f"name at least one verb: {known}")
    for verb in words:
        if verb not in tuple(Verb):
            raise InvalidInput(field, f"{verb!r} is not one of {known}")
    return frozenset(Verb(str(verb)) for verb in words)


def own_request_key(caller: Caller, session_id: str, key: str) -> str:
    """Return the request key to submit under. Tenants may choose equal keys without reaching each other's turns.

    A caller of all sessions keeps its key, so that the command line finds the turn by it. Any other key is hashed with
    its session: the same key in the same session means the same turn, whichever token is used.
    """
    if caller.prefixes is None:
        return key
    return f"k-{hashlib.sha256(f'{session_id} {key}'.encode()).hexdigest()[:40]}"  # ids have no spaces

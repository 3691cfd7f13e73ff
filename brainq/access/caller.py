"""Callers: the sessions that are theirs, what they may do there, and their own request keys."""

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
    """What a caller may do. None contains another."""

    READ = "read"
    """Look: turns, results, events, history, approvals."""
    SUBMIT = "submit"
    """Begin turns."""
    CONFIGURE = "configure"
    """Choose the model, prompt, directory, limits and options of its turns; without it they are the brain's."""
    STEER = "steer"
    """Talk to what runs: input, holds, readiness, cancel, pause, interrupt, drop; forget what is remembered."""
    DECIDE = "decide"
    """Decide about a call: approve, deny, edit, give or fail an outside result."""
    OPERATE = "operate"
    """Mend and run: finalizer steps again, pools. What belongs to no single session needs `*`, too."""
    METRICS = "metrics"
    """Read the metrics of the whole fleet, which needs `*`, too, and nothing else."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: `Caller("acme-web", ("acme:",), frozenset({Verb.READ, Verb.SUBMIT}))`. Hashable.

    name       is recorded with its decisions
    sessions   prefixes of the caller's sessions, its tenants; ("*",) is all
    verbs      what it may do there

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
        """The key of its counters. Two tenants may choose the same name, so the sessions are part of it."""
        return f"{self.name} of {' '.join(self.sessions)}"

    @property
    def prefixes(self) -> tuple[str, ...] | None:
        """The session prefixes that lists are filtered by; None: no filter, the caller sees all."""
        return None if ALL_SESSIONS in self.sessions else self.sessions


ALL_VERBS = frozenset(Verb)


def may(caller: Caller, verb: Verb, session_id: str | None) -> bool:
    """Whether the caller may do this to this session. None: to what belongs to no single session, which needs `*`."""
    if verb not in caller.verbs:
        return False
    if session_id is None:
        return ALL_SESSIONS in caller.sessions
    return bool(session_id) and is_within(caller.sessions, session_id)


def check_name(field: str, name: object) -> str:
    """Raises InvalidInput, naming `field`."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(field, f"name its owner in 1 to {MAX_NAME_CHARS} printable characters, such as 'acme-web'")
    return name


def check_verbs(field: str, verbs: object) -> frozenset[Verb]:
    """Raises InvalidInput, naming `field`, for a word that is not a verb, and for none at all."""
    known = ", ".join(Verb)
    words = () if isinstance(verbs, str) or not isinstance(verbs, Iterable) else tuple(cast("Iterable[object]", verbs))
    if not words:
        raise InvalidInput(field, f"name what it may do: {known}")
    for verb in words:
        if verb not in tuple(Verb):
            raise InvalidInput(field, f"{verb!r} is not one of {known}")
    return frozenset(Verb(str(verb)) for verb in words)


def own_request_key(caller: Caller, session_id: str, key: str) -> str:
    """The request key to submit under: two tenants may choose the same key, and neither reaches the other's turn.

    A caller of all sessions keeps its key, by which the command line finds the turn, too. Any other key is hashed with
    its session: the same key in the same session is the same turn, whatever token it comes with.
    """
    if caller.prefixes is None:
        return key
    return f"k-{hashlib.sha256(f'{session_id} {key}'.encode()).hexdigest()[:40]}"  # ids have no spaces

"""Callers: the sessions that are theirs, what they may do there, and their own request keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from brainq.contracts.ids import ALL_SESSIONS, check_prefixes, is_within
from brainq.errors import InvalidInput

# Who asks, and whether they may.

MAX_NAME_CHARS = 100


class Verb(StrEnum):
    """What a caller may do. None contains another."""

    READ = "read"
    """Look: turns, results, events, history, approvals."""
    SUBMIT = "submit"
    """Begin turns."""
    CONFIGURE = "configure"
    """Say of the turns it begins which model, prompt, directory, limits and options they have; without it the brain
    says so."""
    STEER = "steer"
    """Talk to what runs: input, holds, readiness, cancel, pause, interrupt, drop; forget what is remembered."""
    DECIDE = "decide"
    """Answer for a call: approve, deny, edit, give or fail an outside result."""
    OPERATE = "operate"
    """Mend and run: finalizer steps again, pools; what is of no one session needs `*` beside it."""
    METRICS = "metrics"
    """Read the metrics of the whole fleet, which needs `*` beside it, and nothing else."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `Caller("acme-web", ("acme:",), frozenset({Verb.READ, Verb.SUBMIT}))`. Hashable.

    name       stands in the record as who decided
    sessions   prefixes of the sessions that are the caller's, its tenants; ("*",) is all
    verbs      what it may do there

    Raises InvalidInput for a name of nothing, for no prefix, and for one that another tenant's sessions could begin
    with.
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
        """Under what its requests are counted: names are chosen, and two tenants may choose the same."""
        return f"{self.name} of {' '.join(self.sessions)}"

    @property
    def prefixes(self) -> tuple[str, ...] | None:
        """What lists are filtered by, as their `sessions`; None: no filter, the caller sees all."""
        return None if ALL_SESSIONS in self.sessions else self.sessions


ALL_VERBS = frozenset(Verb)


def may(caller: Caller, verb: Verb, session_id: str | None) -> bool:
    """Whether the caller may do this to this session. None: to what is of no one session, which `*` alone allows."""
    if verb not in caller.verbs:
        return False
    if session_id is None:
        return ALL_SESSIONS in caller.sessions
    return bool(session_id) and is_within(caller.sessions, session_id)


def check_name(field: str, name: object) -> str:
    """Raises InvalidInput, naming `field`."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(field, f"say whose it is in 1 to {MAX_NAME_CHARS} printable characters, such as 'acme-web'")
    return name


def check_verbs(field: str, verbs: object) -> frozenset[Verb]:
    """Raises InvalidInput, naming `field`, for a word that is no verb, and for none at all."""
    known = ", ".join(Verb)
    given = () if isinstance(verbs, str) or not isinstance(verbs, Iterable) else tuple(cast("Iterable[object]", verbs))
    if not given:
        raise InvalidInput(field, f"name what it may do: {known}")
    for verb in given:
        if verb not in tuple(Verb):
            raise InvalidInput(field, f"{verb!r} is none of {known}")
    return frozenset(Verb(str(verb)) for verb in given)


# Request keys that tenants choose, in a table where keys are unique over all of them.


def own_request_key(caller: Caller, session_id: str, key: str) -> str:
    """The request key to submit under: two tenants may use the same words, and neither meets the other's turn.

    A caller of all sessions has its own words, by which the command line finds the turn, too. Of any other the key is
    hashed with its session: the same words in the same session are the same turn, whatever token they come with.
    """
    if caller.prefixes is None:
        return key
    return f"k-{hashlib.sha256(f'{session_id} {key}'.encode()).hexdigest()[:40]}"  # ids have no spaces

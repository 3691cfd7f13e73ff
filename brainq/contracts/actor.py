"""The caller of the current act, for the audit log.

This module imports nothing, so that `brainq --help` stays fast.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

ActSource = Literal["http", "cli", "client"]
"""The front of an act: the gateway, the command line, or a user's own program."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of an act, as identified by the front, and the kind of front."""

    name: str = ""
    source: ActSource = "client"


_actor: ContextVar[Actor] = ContextVar("brainq_actor", default=Actor())  # noqa: B039 - it is frozen


def current_actor() -> Actor:
    return _actor.get()


@contextmanager
def acting_as(name: str, source: ActSource) -> Generator[None]:
    """Attribute all acts to this caller until the context ends."""
    token = _actor.set(Actor(name, source))
    try:
        yield
    finally:
        _actor.reset(token)

"""Who is acting at the moment, as the front says, for the audit log. It imports nothing: `brainq --help` is quick."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

ActSource = Literal["http", "cli", "client"]
"""Where it came from: the gateway, the command line, or a program of one's own."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, as far as the front knows, and which front it is."""

    name: str = ""
    source: ActSource = "client"


_actor: ContextVar[Actor] = ContextVar("brainq_actor", default=Actor())  # noqa: B039 - it is frozen


def current_actor() -> Actor:
    return _actor.get()


@contextmanager
def acting_as(name: str, source: ActSource) -> Generator[None]:
    """What is done in it is done by this caller."""
    token = _actor.set(Actor(name, source))
    try:
        yield
    finally:
        _actor.reset(token)

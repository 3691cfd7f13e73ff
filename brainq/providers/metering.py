"""Which models were asked beside a turn's steps while code ran that may ask them: reflections, extraction, judging."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from brainq.contracts.model import ModelReply
from brainq.contracts.usage import LostRequest
from brainq.providers.base import Provider


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: who was asked, and the reply (None: it failed); and requests for it that broke off."""

    provider: Provider
    model: str
    reply: ModelReply | None
    lost: tuple[LostRequest, ...] = ()


_meter: ContextVar[list[Asked] | None] = ContextVar("brainq_meter", default=None)


@contextmanager
def metered() -> Generator[list[Asked]]:
    """The calls of all AuxiliaryModels made inside, also in threads that `within` starts, as they come back."""
    asked: list[Asked] = []
    token = _meter.set(asked)
    try:
        yield asked
    finally:
        _meter.reset(token)


def note(asked: Asked) -> None:
    """Count the call, where somebody does."""
    meter = _meter.get()
    if meter is not None:
        meter.append(asked)

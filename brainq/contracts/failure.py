"""An error as data: what crosses a process line, or goes to the model, instead of an exception."""

from __future__ import annotations

from brainq.contracts.base import Wire


class Failure(Wire):
    """`kind` is one short word (`provider`, `tool`, `lost`, ...); `message` is for people and the model."""

    kind: str
    message: str
    retryable: bool = False

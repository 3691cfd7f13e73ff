"""What one look at a setup found: a line of `brainq doctor`, or a reason not to start."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True)
class Check:
    """What was looked at and found; `remedy` says what to do, and is empty for `ok`."""

    name: str
    level: Level
    said: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def ok(name: str, said: str) -> Check:
    return Check(name, "ok", said)


def warn(name: str, said: str, remedy: str) -> Check:
    return Check(name, "warn", said, remedy)


def fail(name: str, said: str, remedy: str) -> Check:
    return Check(name, "FAIL", said, remedy)

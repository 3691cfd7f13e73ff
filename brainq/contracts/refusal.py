"""A server that answers, but does not do what is requested."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a server refuses, as in "Redis ...", and what ends the refusal."""

    reason: str
    remedy: str

"""A server that answers, and does not do what it is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a server refuses, as in "Redis ...", and what ends that."""

    reason: str
    remedy: str

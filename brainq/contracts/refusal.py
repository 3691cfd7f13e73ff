"""The refusal of a server that answers, but does not do what is requested."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a server refuses, which continues a sentence such as "Redis ...", and the remedy."""

    reason: str
    remedy: str

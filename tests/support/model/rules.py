"""The rules that a schedule may not break."""

from __future__ import annotations


class BrokenRule(BaseException):
    """The error of an invariant that does not hold."""


def require(holds: bool, rule: str, *facts: object) -> None:
    """Raise BrokenRule, with the rule and the facts, unless it holds."""
    if not holds:
        raise BrokenRule(f"{rule}: {', '.join(map(str, facts))}")

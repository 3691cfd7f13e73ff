"""What a schedule may not do."""

from __future__ import annotations


class BrokenRule(BaseException):
    """An invariant does not hold."""


def require(holds: bool, rule: str, *facts: object) -> None:
    """Raises BrokenRule, naming the rule and the facts, unless it holds."""
    if not holds:
        raise BrokenRule(f"{rule}: {', '.join(map(str, facts))}")

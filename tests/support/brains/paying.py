"""Brains that pay, one for each wire. Each payment is a line of the diary, outside of Redis and SQL."""

from __future__ import annotations

from brainq import Brain, Effect, make_tool
from tests.support.brains import diary

WIRES = ("openai", "openai-responses", "anthropic")


def pay(case: int, n: int) -> str:
    """Pay for a case. Called with equal arguments it pays again."""
    diary.note("paid", case=case, n=n)
    return f"paid {n}"


brains = [
    Brain(wire, f"{wire}:m", "You pay what you are asked to.", tools=[make_tool(pay, effect=Effect.NETWORK)])
    for wire in WIRES
]

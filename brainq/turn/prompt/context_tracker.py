"""ContextTracker: how full the model's context is.

What counts is the provider's own count of the last request, where there is one. The next request is not the last
one, so its tokens are estimated, and the estimate is corrected by how far it was off last time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

ContextLevel = Literal["ok", "warning", "critical"]

# `max_context_tokens` is all a model takes, its reply included, and a step adds its results before anybody can look
# again. 15 % is 30 000 tokens of 200 000 and 1 200 of 8 000: a long reply or a few results. The warning comes when as
# much again is left.
WARNING = 0.70
CRITICAL = 0.85

# Over recorded sessions of real models single steps cost 0.7 to 2.9 times their estimate (5th and 95th percentile, see
# docs/token-estimates.md). What lies far beyond is a wrong report, such as a proxy that leaves out cached tokens:
# unclamped it would switch the guard off, or compact a context that is nearly empty.
LOWEST_RATIO = 0.5
HIGHEST_RATIO = 3.0
# A service adds some hundred tokens of its own to a request: a smaller one says little about text.
STEADY_TOKENS = 500


def level_of(tokens: int, max_context_tokens: int) -> ContextLevel:
    """`warning` from 70 % of the context on, `critical` from 85 %."""
    if tokens >= CRITICAL * max_context_tokens:
        return "critical"
    return "warning" if tokens >= WARNING * max_context_tokens else "ok"


@dataclass(frozen=True, slots=True)
class ContextTracker:
    """Tokens of a context. Frozen: each reply gives a new one.

    reported    input tokens the provider counted for the last request; 0: not known
    estimated   what the same request was estimated at
    ratio       real tokens for one estimated token, from the last report that was one
    """

    max_context_tokens: int
    reported: int = 0
    estimated: int = 0
    ratio: float = 1.0

    @classmethod
    def from_state(cls, max_context_tokens: int, known: tuple[int, int]) -> ContextTracker:
        """From what the turn's state keeps: (reported, estimated) of the last request, (0, 0) for none."""
        return cls(max_context_tokens).after(*known)

    def after(self, reported: int, estimated: int) -> ContextTracker:
        """Once the reply is there. Both count the whole request, tools included; a report of 0 changes nothing, one
        of a tiny request not the ratio."""
        if reported <= 0 or estimated <= 0:
            return self
        ratio = self.ratio
        if estimated >= STEADY_TOKENS:
            ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, reported / estimated))
        return replace(self, reported=reported, estimated=estimated, ratio=ratio)

    def tokens(self, estimate: int) -> int:
        """Tokens of a request that is estimated at `estimate`; for the last request, what the provider counted."""
        return math.ceil(round(self.ratio * estimate, 6))

    def estimate_for(self, tokens: int) -> int:
        """The largest estimate that stays within so many tokens."""
        return max(0, math.floor(round(tokens / self.ratio, 6)))

    def warning_percent(self, estimate: int) -> int:
        """How full the context is with a request of this estimate, in per cent, from 70 on; below that 0."""
        tokens = self.tokens(estimate)
        if level_of(tokens, self.max_context_tokens) == "ok":
            return 0
        return math.floor(100 * tokens / self.max_context_tokens)

"""When requests arrived, and how many of them any window held."""

from __future__ import annotations

from collections.abc import Iterable


def most_in_a_window(arrivals: Iterable[float], window_s: float) -> int:
    """Of all windows of this length, the fullest."""
    ordered = sorted(arrivals)
    first, most = 0, 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= window_s:
            first += 1
        most = max(most, last - first + 1)
    return most

"""The times at which requests arrived, and the largest number of them in any window."""

from __future__ import annotations

from collections.abc import Iterable


def most_in_a_window(arrivals: Iterable[float], window_s: float) -> int:
    """Return the largest number of arrivals in any window of this length."""
    ordered = sorted(arrivals)
    first, most = 0, 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= window_s:
            first += 1
        most = max(most, last - first + 1)
    return most

"""How often a server is asked for a task."""

from __future__ import annotations

import pytest

from brainq.calls.server_tasks import MAX_DELAY_S, MIN_DELAY_S, poll_delay_s


@pytest.mark.parametrize(
    ("poll_ms", "watched_s", "failures", "expected_s"),
    [
        (0, 0.0, 0, MIN_DELAY_S),  # it does not say
        (50, 0.0, 0, MIN_DELAY_S),
        (5_000, 0.0, 0, 5.0),
        (5_000, 30.0, 0, 5.0),
        (1_000, 120.0, 0, 12.0),  # a long task is asked for rarely
        (1_000, 86_400.0, 0, MAX_DELAY_S),
        (3_600_000, 0.0, 0, MAX_DELAY_S),
        (1_000, 0.0, 3, 8.0),
        (1_000, 0.0, 1_000, MAX_DELAY_S),
    ],
)
def test_the_pace_is_the_server_s_within_bounds(
    poll_ms: int, watched_s: float, failures: int, expected_s: float
) -> None:
    assert poll_delay_s(poll_ms, watched_s, failures) == expected_s

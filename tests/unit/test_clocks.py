"""Redis has the one clock that decides a deadline or a lease. Other uses of a wall clock are listed with their reason,
and tests replace the clock of one module, never that of the whole process."""

from __future__ import annotations

import re
from pathlib import Path

import brainq

ROOT = Path(brainq.__file__).parent
WALL_CLOCK = re.compile(r"\btime\.time(?:_ns)?\(")
WHOLE_PROCESS = re.compile(r"""setattr\(\s*(?:[\w.]*\btime, "|"[\w.]+\.time\.\w+")""")
READ_IN = {
    "contracts/ids.py": "ids sort roughly by when they were made",
    "runtime/observe/metrics/export.py": "exported points carry the time of day",
    "adapters/celery/celery57/transport.py": "a broken message is saved with the time of day, for people",
    "adapters/models/failures.py": "a service's Retry-After may be a date, by the wall clock",
    "testing/clock.py": "a test that moves time moves it from the time of day, for this process and its Redis",
    "cli/doctor/services.py": "measures how far this machine's clock is from Redis'",
}


def test_no_other_file_reads_the_wall_clock() -> None:
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if WALL_CLOCK.search(path.read_text())}
    assert found == set(READ_IN)


def test_no_test_replaces_the_clock_of_the_whole_process() -> None:
    """Threads that live through many tests, such as the timers', would compute their waits by it."""
    tests = Path(__file__).parents[1]
    assert not [str(path) for path in tests.rglob("*.py") if WHOLE_PROCESS.search(path.read_text())]

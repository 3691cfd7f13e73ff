"""Redis has the one clock that decides a deadline or a lease: where else a wall clock is read, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import brainq

ROOT = Path(brainq.__file__).parent
WALL_CLOCK = re.compile(r"\btime\.time(?:_ns)?\(")
READ_IN = {
    "contracts/ids.py": "ids sort roughly by when they were made",
    "runtime/observe/metrics/export.py": "exported points carry the time of day",
    "adapters/celery/celery57/transport.py": "a broken message is saved with the time of day, for people",
    "adapters/models/failures.py": "a service's Retry-After may be a date, by the wall clock",
    "cli/doctor/services.py": "measures how far this machine's clock is from Redis'",
}


def test_no_other_file_reads_the_wall_clock() -> None:
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if WALL_CLOCK.search(path.read_text())}
    assert found == set(READ_IN)

"""The obedient brain in a process whose wall clock is off by TEST_CLOCK_OFF_S seconds."""

from __future__ import annotations

import os
import time

from tests.support.brains import diary
from tests.support.brains.obedient import brain

OFF = "TEST_CLOCK_OFF_S"

if OFF in os.environ:  # in a worker alone, not where a test imports it
    _off_s = float(os.environ[OFF])
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + _off_s
    time.time_ns = lambda: _time_ns() + int(_off_s * 1e9)
    diary.note("clock", says=time.time())

__all__ = ["brain"]

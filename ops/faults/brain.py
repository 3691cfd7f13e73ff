"""The shop as this build's workers run it: they say, too, when they are about to write an intent."""

from __future__ import annotations

import os
import time

from brainq import CallStart, Middleware
from ops.faults.shop import WRITES, make_shop, tell

CLOCK_OFF = "FAULTS_CLOCK_OFF_S"


class BeforeIntents(Middleware):
    """Called by a worker that claimed a call, before it writes the intent."""

    def before_call(self, call: CallStart) -> None:
        if call.call.name in WRITES:
            tell("visit", f"before {call.call.name}", call.turn_id)


brain = make_shop(middleware=[BeforeIntents()])

if CLOCK_OFF in os.environ:  # in a worker whose wall clock is to be wrong
    _off_s = float(os.environ[CLOCK_OFF])
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + _off_s
    time.time_ns = lambda: _time_ns() + int(_off_s * 1e9)
    tell("visit", "clock", "", says=time.time())

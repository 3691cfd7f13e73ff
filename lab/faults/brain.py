"""The shop as this build's workers run it: they say, too, when they are about to write an intent, and when a fence
refused what they wrote."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from brainq import CallStart, Middleware
from brainq.adapters.redis.scripts import Replies
from lab.faults.shop import EFFECTS, WRITES, make_shop, tell

CLOCK_OFF = "FAULTS_CLOCK_OFF_S"
REFUSALS = ("LOST", "LATE")
"""Replies of the scripts to one whose lease is over."""


class BeforeIntents(Middleware):
    """Called by a worker that claimed a call, before it writes the intent."""

    def before_call(self, call: CallStart) -> None:
        if call.call.name in WRITES:
            tell("visit", f"before {call.call.name}", call.turn_id)


brain = make_shop(middleware=[BeforeIntents()])


def tell_refusals() -> None:
    """Have this process say which of its scripts a fence refuses from now on."""
    read_reply = Replies.__getitem__

    def told(replies: Any, word: str) -> Any:
        if word in REFUSALS:
            with suppress(OSError):
                tell("visit", "refused", "", script=replies.name)
        return read_reply(replies, word)

    setattr(Replies, "__getitem__", told)  # noqa: B010


if EFFECTS in os.environ:
    tell_refusals()

if CLOCK_OFF in os.environ:  # in a worker whose wall clock is to be wrong
    _off_s = float(os.environ[CLOCK_OFF])
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + _off_s
    time.time_ns = lambda: _time_ns() + int(_off_s * 1e9)
    tell("visit", "clock", "", says=time.time())

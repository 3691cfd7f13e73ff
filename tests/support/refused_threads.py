"""A system that refuses to start threads of one name, as often as a test orders."""

from __future__ import annotations

import threading

import pytest

REFUSED = "can't start new thread"  # as CPython says it
FOR_EVER = 1_000_000


class RefusedThreads:
    """The refusal of threads with this `name`. `asked` counts every start of one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
        self.times = times
        self.asked = 0
        start = threading.Thread.start

        def refusing(thread: threading.Thread) -> None:
            if thread.name == name:
                self.asked += 1
                if self.times > 0:
                    self.times -= 1
                    raise RuntimeError(REFUSED)
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refusing)

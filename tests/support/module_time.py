"""The clock of one module under test."""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def replace_time(monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: Any) -> None:
    """Give `module` a `time` of its own, with `functions` (such as `monotonic` and `sleep`) in place of the real ones.

    A replaced function of the standard module would reach every thread of the process. A thread that waits for the
    timers of the process would then compute an hour's wait from the test's clock, and sleep through later tests.
    """
    monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **functions}))

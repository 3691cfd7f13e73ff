"""Tests of your own brains: models that follow a script, whole turns in the test's process, and tools alone.

from brainq import testing
from brainq.testing import calls, says

with testing.run(brain, [calls(("count", {"item": "apples"})), says("Three.")]) as t:
    assert t.turn("How many apples?").text == "Three."
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, calls, fails, says

if TYPE_CHECKING:
    from brainq.testing.runs import Run, run
    from brainq.testing.tools import call, context

_WHERE = {"Run": "runs", "run": "runs", "call": "tools", "context": "tools"}
"""What brains that follow a script do without: it imports the workers."""

__all__ = ["Run", "ScriptedFailure", "ScriptedProvider", "call", "calls", "context", "fails", "run", "says"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'brainq.testing' has no attribute {name!r}")
    return getattr(import_module(f"brainq.testing.{_WHERE[name]}"), name)

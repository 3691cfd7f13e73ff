"""The decisions and machines of a turn. An application rarely needs its parts.

    from brainq.engine import TurnBudget, TurnRuntimeState

docs/start/from-a-harness.md compares each part with the class of the same name in a single-process harness.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brainq.client.async_client import AsyncTurnBudget, AsyncTurnRuntimeState
    from brainq.client.runtime_state import CitationAccumulator, RuntimeSnapshot, TurnBudget, TurnRuntimeState
    from brainq.contracts.claim import CallClaim
    from brainq.engine.calls.executor import BoundedToolExecutor
    from brainq.engine.finalize.finalizer import TurnFinalizer
    from brainq.engine.gates.arguments import ToolArgValidator
    from brainq.engine.gates.chain import ReplayControl
    from brainq.engine.turn.call_plan import ToolScheduler
    from brainq.engine.turn.prompt.compaction import ContextCompactor
    from brainq.engine.turn.prompt.request_messages import TurnDrain, TurnMailbox, TurnPreparation, TurnPreparer
    from brainq.engine.turn.prompt.tool_selection import SemanticToolSelector
    from brainq.engine.turn.reflection import ReflectionEngine, ThinkingManager

_PARTS = {
    "brainq.engine.calls.executor": ("BoundedToolExecutor",),
    "brainq.client.async_client": ("AsyncTurnBudget", "AsyncTurnRuntimeState"),
    "brainq.client.runtime_state": ("CitationAccumulator", "RuntimeSnapshot", "TurnBudget", "TurnRuntimeState"),
    "brainq.contracts.claim": ("CallClaim",),
    "brainq.engine.finalize.finalizer": ("TurnFinalizer",),
    "brainq.engine.gates.arguments": ("ToolArgValidator",),
    "brainq.engine.gates.chain": ("ReplayControl",),
    "brainq.engine.turn.call_plan": ("ToolScheduler",),
    "brainq.engine.turn.prompt.compaction": ("ContextCompactor",),
    "brainq.engine.turn.prompt.request_messages": ("TurnDrain", "TurnMailbox", "TurnPreparation", "TurnPreparer"),
    "brainq.engine.turn.prompt.tool_selection": ("SemanticToolSelector",),
    "brainq.engine.turn.reflection": ("ReflectionEngine", "ThinkingManager"),
}
_MODULES = {name: module for module, names in _PARTS.items() for name in names}

__all__ = ["AsyncTurnBudget", "AsyncTurnRuntimeState", "BoundedToolExecutor", "CallClaim", "CitationAccumulator"]
__all__ += ["ContextCompactor", "ReflectionEngine", "ReplayControl", "RuntimeSnapshot", "SemanticToolSelector"]
__all__ += ["ThinkingManager", "ToolArgValidator", "ToolScheduler", "TurnBudget", "TurnDrain", "TurnFinalizer"]
__all__ += ["TurnMailbox", "TurnPreparation", "TurnPreparer", "TurnRuntimeState"]


def __getattr__(name: str) -> object:
    """Import a part when it is first used, because its module imports this package."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)

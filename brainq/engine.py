"""The parts that do the work inside a turn. An application rarely needs them.

    from brainq.engine import TurnBudget, TurnRuntimeState

docs/from-a-harness.md says which of them does what a single-process harness does by a class of the same name.
"""

from __future__ import annotations

from brainq.calls.executor import BoundedToolExecutor
from brainq.client.async_state import AsyncTurnBudget, AsyncTurnRuntimeState
from brainq.client.budget import TurnBudget
from brainq.client.runtime_state import CitationAccumulator, RuntimeSnapshot, TurnRuntimeState
from brainq.contracts.claim import CallClaim
from brainq.finalize.finalizer import TurnFinalizer
from brainq.gates.replay import ReplayControl
from brainq.gates.validation import ToolArgValidator
from brainq.turn.context.compaction import ContextCompactor
from brainq.turn.context.mailbox import TurnDrain, TurnMailbox
from brainq.turn.context.preparer import TurnPreparation, TurnPreparer
from brainq.turn.context.reflection import ReflectionEngine
from brainq.turn.context.selection import SemanticToolSelector
from brainq.turn.planning.scheduler import ToolScheduler
from brainq.turn.thinking import ThinkingManager

__all__ = [
    "AsyncTurnBudget",
    "AsyncTurnRuntimeState",
    "BoundedToolExecutor",
    "CallClaim",
    "CitationAccumulator",
    "ContextCompactor",
    "ReflectionEngine",
    "ReplayControl",
    "RuntimeSnapshot",
    "SemanticToolSelector",
    "ThinkingManager",
    "ToolArgValidator",
    "ToolScheduler",
    "TurnBudget",
    "TurnDrain",
    "TurnFinalizer",
    "TurnMailbox",
    "TurnPreparation",
    "TurnPreparer",
    "TurnRuntimeState",
]

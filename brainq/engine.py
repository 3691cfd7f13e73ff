"""The parts that do the work inside a turn. An application rarely needs them.

    from brainq.engine import TurnBudget, TurnRuntimeState

docs/start/from-a-harness.md says which of them does what a single-process harness does by a class of the same name.
"""

from __future__ import annotations

from brainq.calls.executor import BoundedToolExecutor
from brainq.client.async_client import AsyncTurnBudget, AsyncTurnRuntimeState
from brainq.client.runtime_state import CitationAccumulator, RuntimeSnapshot, TurnBudget, TurnRuntimeState
from brainq.contracts.claim import CallClaim
from brainq.finalize.finalizer import TurnFinalizer
from brainq.gates.arguments import ToolArgValidator
from brainq.gates.chain import ReplayControl
from brainq.turn.call_plan import ToolScheduler
from brainq.turn.prompt.compaction import ContextCompactor
from brainq.turn.prompt.request_messages import TurnDrain, TurnMailbox, TurnPreparation, TurnPreparer
from brainq.turn.prompt.tool_selection import SemanticToolSelector
from brainq.turn.reflection import ReflectionEngine, ThinkingManager

__all__ = ["AsyncTurnBudget", "AsyncTurnRuntimeState", "BoundedToolExecutor", "CallClaim", "CitationAccumulator"]
__all__ += ["ContextCompactor", "ReflectionEngine", "ReplayControl", "RuntimeSnapshot", "SemanticToolSelector"]
__all__ += ["ThinkingManager", "ToolArgValidator", "ToolScheduler", "TurnBudget", "TurnDrain", "TurnFinalizer"]
__all__ += ["TurnMailbox", "TurnPreparation", "TurnPreparer", "TurnRuntimeState"]

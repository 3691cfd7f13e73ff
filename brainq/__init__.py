"""brainq: LLM agent turns as distributed work on Celery and Redis.

    from brainq import Brain, Client, Effect

`import brainq` loads nothing but this file; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.brain import Brain
    from brainq.client.async_client import AsyncClient, AsyncTurnHandle
    from brainq.client.client import Client
    from brainq.client.handle import TurnHandle
    from brainq.contracts.callbacks import Callbacks, Deny
    from brainq.contracts.effect import Effect
    from brainq.contracts.judgement import JudgeCase, Judgement
    from brainq.contracts.limits import Limits
    from brainq.contracts.memory import MemoryItem, Observation, RetrievedMemory
    from brainq.contracts.parts import Context, Memory, Selection
    from brainq.contracts.prompt import PromptTemplate
    from brainq.contracts.recorded import RecordedTurn
    from brainq.contracts.reflection import ThinkLevel
    from brainq.contracts.turn import Citation, TurnRequest, TurnResult
    from brainq.errors import (
        BrainqError,
        InvalidInput,
        ResultTimeout,
        SubmitConflict,
        TurnNotFound,
        TurnRejected,
    )
    from brainq.providers.scripted import ScriptedProvider
    from brainq.settings import Settings
    from brainq.tools.context import RunContext
    from brainq.tools.deadline import DeadlineToken
    from brainq.tools.partial import Partial
    from brainq.turn.budget import TurnBudget
    from brainq.turn.runtime_state import TurnRuntimeState

__version__ = "0.1.0"

_WHERE = {
    "AsyncClient": "brainq.client.async_client",
    "AsyncTurnHandle": "brainq.client.async_client",
    "Brain": "brainq.brain",
    "BrainqError": "brainq.errors",
    "Callbacks": "brainq.contracts.callbacks",
    "Citation": "brainq.contracts.turn",
    "Client": "brainq.client.client",
    "Context": "brainq.contracts.parts",
    "DeadlineToken": "brainq.tools.deadline",
    "Deny": "brainq.contracts.callbacks",
    "Effect": "brainq.contracts.effect",
    "InvalidInput": "brainq.errors",
    "JudgeCase": "brainq.contracts.judgement",
    "Judgement": "brainq.contracts.judgement",
    "Limits": "brainq.contracts.limits",
    "Memory": "brainq.contracts.parts",
    "MemoryItem": "brainq.contracts.memory",
    "Observation": "brainq.contracts.memory",
    "Partial": "brainq.tools.partial",
    "PromptTemplate": "brainq.contracts.prompt",
    "RecordedTurn": "brainq.contracts.recorded",
    "ResultTimeout": "brainq.errors",
    "RetrievedMemory": "brainq.contracts.memory",
    "RunContext": "brainq.tools.context",
    "ScriptedProvider": "brainq.providers.scripted",
    "Selection": "brainq.contracts.parts",
    "Settings": "brainq.settings",
    "SubmitConflict": "brainq.errors",
    "ThinkLevel": "brainq.contracts.reflection",
    "TurnBudget": "brainq.turn.budget",
    "TurnHandle": "brainq.client.handle",
    "TurnNotFound": "brainq.errors",
    "TurnRejected": "brainq.errors",
    "TurnRequest": "brainq.contracts.turn",
    "TurnResult": "brainq.contracts.turn",
    "TurnRuntimeState": "brainq.turn.runtime_state",
}

__all__ = [
    "AsyncClient",
    "AsyncTurnHandle",
    "Brain",
    "BrainqError",
    "Callbacks",
    "Citation",
    "Client",
    "Context",
    "DeadlineToken",
    "Deny",
    "Effect",
    "InvalidInput",
    "JudgeCase",
    "Judgement",
    "Limits",
    "Memory",
    "MemoryItem",
    "Observation",
    "Partial",
    "PromptTemplate",
    "RecordedTurn",
    "ResultTimeout",
    "RetrievedMemory",
    "RunContext",
    "ScriptedProvider",
    "Selection",
    "Settings",
    "SubmitConflict",
    "ThinkLevel",
    "TurnBudget",
    "TurnHandle",
    "TurnNotFound",
    "TurnRejected",
    "TurnRequest",
    "TurnResult",
    "TurnRuntimeState",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'brainq' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)

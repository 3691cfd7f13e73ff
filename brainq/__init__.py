"""brainq: LLM agent turns as distributed work on Celery and Redis.

    from brainq import Brain, Client, Effect

`import brainq` loads nothing but this file; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.brain import Brain
    from brainq.client.async_client import AsyncClient
    from brainq.client.async_handle import AsyncHold, AsyncTurnHandle
    from brainq.client.async_session import AsyncFlag, AsyncSession
    from brainq.client.client import Client
    from brainq.client.handle import TurnHandle
    from brainq.client.hold import Flag, Hold
    from brainq.client.session import Session, WaitingTurn
    from brainq.contracts.approval import Approval
    from brainq.contracts.callbacks import Callbacks, Deny
    from brainq.contracts.effect import Effect
    from brainq.contracts.event import EventKind, TurnEvent
    from brainq.contracts.hold import StandingHold
    from brainq.contracts.judgement import JudgeCase, Judgement
    from brainq.contracts.limits import Limits
    from brainq.contracts.mailbox import Receipt, TurnInput
    from brainq.contracts.memory import MemoryItem, Observation, RetrievedMemory
    from brainq.contracts.parts import Approvals, Children, Context, Memory, Selection
    from brainq.contracts.prompt import PromptTemplate
    from brainq.contracts.recorded import RecordedTurn
    from brainq.contracts.reflection import ThinkLevel
    from brainq.contracts.snapshot import TurnSnapshot
    from brainq.contracts.status import Ending, StopReason, TurnState
    from brainq.contracts.turn import Citation, TurnRequest, TurnResult
    from brainq.errors import (
        ApprovalDecided,
        BrainqError,
        InvalidInput,
        ResultTimeout,
        SessionBusy,
        StaleTurn,
        SubmitConflict,
        TokenRefused,
        TurnNotFound,
        TurnRejected,
    )
    from brainq.providers.scripted import ScriptedProvider
    from brainq.settings import Settings
    from brainq.tools.child_turn import ChildTurn
    from brainq.tools.context import RunContext
    from brainq.tools.deadline import DeadlineToken
    from brainq.tools.partial import Partial
    from brainq.tools.pending import Pending
    from brainq.turn.budget import TurnBudget
    from brainq.turn.mailbox import TurnDrain, TurnMailbox
    from brainq.turn.runtime_state import TurnRuntimeState

__version__ = "0.1.0"

_WHERE = {
    "Approval": "brainq.contracts.approval",
    "ApprovalDecided": "brainq.errors",
    "Approvals": "brainq.contracts.parts",
    "AsyncClient": "brainq.client.async_client",
    "AsyncFlag": "brainq.client.async_session",
    "AsyncHold": "brainq.client.async_handle",
    "AsyncSession": "brainq.client.async_session",
    "AsyncTurnHandle": "brainq.client.async_handle",
    "Brain": "brainq.brain",
    "BrainqError": "brainq.errors",
    "Callbacks": "brainq.contracts.callbacks",
    "ChildTurn": "brainq.tools.child_turn",
    "Children": "brainq.contracts.parts",
    "Citation": "brainq.contracts.turn",
    "Client": "brainq.client.client",
    "Context": "brainq.contracts.parts",
    "DeadlineToken": "brainq.tools.deadline",
    "Deny": "brainq.contracts.callbacks",
    "Effect": "brainq.contracts.effect",
    "Ending": "brainq.contracts.status",
    "EventKind": "brainq.contracts.event",
    "Flag": "brainq.client.hold",
    "Hold": "brainq.client.hold",
    "InvalidInput": "brainq.errors",
    "JudgeCase": "brainq.contracts.judgement",
    "Judgement": "brainq.contracts.judgement",
    "Limits": "brainq.contracts.limits",
    "Memory": "brainq.contracts.parts",
    "MemoryItem": "brainq.contracts.memory",
    "Observation": "brainq.contracts.memory",
    "Partial": "brainq.tools.partial",
    "Pending": "brainq.tools.pending",
    "PromptTemplate": "brainq.contracts.prompt",
    "Receipt": "brainq.contracts.mailbox",
    "RecordedTurn": "brainq.contracts.recorded",
    "ResultTimeout": "brainq.errors",
    "RetrievedMemory": "brainq.contracts.memory",
    "RunContext": "brainq.tools.context",
    "ScriptedProvider": "brainq.providers.scripted",
    "Selection": "brainq.contracts.parts",
    "Session": "brainq.client.session",
    "SessionBusy": "brainq.errors",
    "Settings": "brainq.settings",
    "StaleTurn": "brainq.errors",
    "StandingHold": "brainq.contracts.hold",
    "StopReason": "brainq.contracts.status",
    "SubmitConflict": "brainq.errors",
    "ThinkLevel": "brainq.contracts.reflection",
    "TokenRefused": "brainq.errors",
    "TurnBudget": "brainq.turn.budget",
    "TurnDrain": "brainq.turn.mailbox",
    "TurnEvent": "brainq.contracts.event",
    "TurnHandle": "brainq.client.handle",
    "TurnInput": "brainq.contracts.mailbox",
    "TurnMailbox": "brainq.turn.mailbox",
    "TurnNotFound": "brainq.errors",
    "TurnRejected": "brainq.errors",
    "TurnRequest": "brainq.contracts.turn",
    "TurnResult": "brainq.contracts.turn",
    "TurnRuntimeState": "brainq.turn.runtime_state",
    "TurnSnapshot": "brainq.contracts.snapshot",
    "TurnState": "brainq.contracts.status",
    "WaitingTurn": "brainq.client.session",
}

__all__ = [
    "Approval",
    "ApprovalDecided",
    "Approvals",
    "AsyncClient",
    "AsyncFlag",
    "AsyncHold",
    "AsyncSession",
    "AsyncTurnHandle",
    "Brain",
    "BrainqError",
    "Callbacks",
    "ChildTurn",
    "Children",
    "Citation",
    "Client",
    "Context",
    "DeadlineToken",
    "Deny",
    "Effect",
    "Ending",
    "EventKind",
    "Flag",
    "Hold",
    "InvalidInput",
    "JudgeCase",
    "Judgement",
    "Limits",
    "Memory",
    "MemoryItem",
    "Observation",
    "Partial",
    "Pending",
    "PromptTemplate",
    "Receipt",
    "RecordedTurn",
    "ResultTimeout",
    "RetrievedMemory",
    "RunContext",
    "ScriptedProvider",
    "Selection",
    "Session",
    "SessionBusy",
    "Settings",
    "StaleTurn",
    "StandingHold",
    "StopReason",
    "SubmitConflict",
    "ThinkLevel",
    "TokenRefused",
    "TurnBudget",
    "TurnDrain",
    "TurnEvent",
    "TurnHandle",
    "TurnInput",
    "TurnMailbox",
    "TurnNotFound",
    "TurnRejected",
    "TurnRequest",
    "TurnResult",
    "TurnRuntimeState",
    "TurnSnapshot",
    "TurnState",
    "WaitingTurn",
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

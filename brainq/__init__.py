"""brainq: LLM agent turns as distributed work on Celery and Redis.

    from brainq import Brain, Client, Effect

Everything an application needs is here; models that follow a script, for tests, are in `brainq.testing`. Other modules
may change without notice. `import brainq` loads nothing but this file; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.brain import Brain
    from brainq.calls.executor import BoundedToolExecutor
    from brainq.client.async_client import AsyncClient
    from brainq.client.async_handle import AsyncHold, AsyncTurnHandle
    from brainq.client.async_session import AsyncFlag, AsyncSession
    from brainq.client.budget import TurnBudget
    from brainq.client.client import Client
    from brainq.client.handle import TurnHandle
    from brainq.client.hold import Flag, Hold
    from brainq.client.runtime_state import CitationAccumulator, TurnRuntimeState
    from brainq.client.session import Session, WaitingTurn
    from brainq.contracts.approval import Approval
    from brainq.contracts.callbacks import (
        Callbacks,
        Deny,
        PostToolUse,
        PreToolUse,
        StreamChunk,
        TurnEnd,
        TurnInfo,
        UsageInfo,
    )
    from brainq.contracts.child_turn import ChildTurn
    from brainq.contracts.decision import RuntimeDecisionRecord
    from brainq.contracts.effect import Effect
    from brainq.contracts.event import EventKind, TurnEvent
    from brainq.contracts.history import HistoryTurn
    from brainq.contracts.hold import StandingHold
    from brainq.contracts.judgement import Judge, JudgeCase, Judgement
    from brainq.contracts.limits import Limits
    from brainq.contracts.mailbox import Receipt, TurnInput
    from brainq.contracts.memory import (
        AutonomousResearchLearner,
        MemoryExtractor,
        MemoryItem,
        MemoryRetriever,
        Observation,
        RetrievedMemory,
    )
    from brainq.contracts.message import Message, ToolCall
    from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
    from brainq.contracts.outcome import (
        ToolDenied,
        ToolFailure,
        ToolOutcome,
        ToolSuccess,
        ToolTimeout,
        ToolUnknown,
    )
    from brainq.contracts.parts import Approvals, Children, Context, Memory, Selection, ToolRanker
    from brainq.contracts.prompt import PromptTemplate
    from brainq.contracts.recorded import RecordedTurn
    from brainq.contracts.reflection import ThinkLevel
    from brainq.contracts.snapshot import BudgetSnapshot, TurnSnapshot
    from brainq.contracts.status import Ending, StopReason, TraceStatus, TurnState
    from brainq.contracts.tool import ToolSpec
    from brainq.contracts.trace import ToolTraceEntry
    from brainq.contracts.turn import Citation, LimitsOverride, TurnRequest, TurnResult
    from brainq.contracts.usage import Spend, TokenUsage
    from brainq.errors import (
        ApprovalDecided,
        BrainqError,
        ContentNotKept,
        InvalidInput,
        MailboxFull,
        NoParsedOutput,
        ProviderError,
        ResultTimeout,
        SessionBusy,
        SetupError,
        StaleTurn,
        SubmitConflict,
        TokenRefused,
        ToolSchemaError,
        TurnNotFound,
        TurnRejected,
        Unreachable,
    )
    from brainq.finalize.finalizer import TurnFinalizer
    from brainq.finalize.step import FinalStep, StepContext
    from brainq.gates.replay import ReplayControl
    from brainq.gates.validation import ToolArgValidator
    from brainq.providers.base import Provider
    from brainq.providers.scripted import ScriptedProvider
    from brainq.settings import Settings
    from brainq.tools.context import RunContext
    from brainq.tools.deadline import DeadlineToken
    from brainq.tools.errors import OutcomeUnknown, ToolError
    from brainq.tools.partial import Partial
    from brainq.tools.pending import Pending
    from brainq.tools.tool import Tool, make_tool
    from brainq.turn.context.compaction import ContextCompactor
    from brainq.turn.context.mailbox import TurnDrain, TurnMailbox
    from brainq.turn.context.preparer import TurnPreparation, TurnPreparer
    from brainq.turn.context.reflection import ReflectionEngine
    from brainq.turn.context.selection import SemanticToolSelector
    from brainq.turn.planning.scheduler import ToolScheduler
    from brainq.turn.thinking import ThinkingManager

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
    "AutonomousResearchLearner": "brainq.contracts.memory",
    "BoundedToolExecutor": "brainq.calls.executor",
    "Brain": "brainq.brain",
    "BrainqError": "brainq.errors",
    "BudgetSnapshot": "brainq.contracts.snapshot",
    "Callbacks": "brainq.contracts.callbacks",
    "ChildTurn": "brainq.contracts.child_turn",
    "Children": "brainq.contracts.parts",
    "Citation": "brainq.contracts.turn",
    "CitationAccumulator": "brainq.client.runtime_state",
    "Client": "brainq.client.client",
    "ContentNotKept": "brainq.errors",
    "Context": "brainq.contracts.parts",
    "ContextCompactor": "brainq.turn.context.compaction",
    "DeadlineToken": "brainq.tools.deadline",
    "Deny": "brainq.contracts.callbacks",
    "Effect": "brainq.contracts.effect",
    "Ending": "brainq.contracts.status",
    "EventKind": "brainq.contracts.event",
    "FinalStep": "brainq.finalize.step",
    "Flag": "brainq.client.hold",
    "HistoryTurn": "brainq.contracts.history",
    "Hold": "brainq.client.hold",
    "InvalidInput": "brainq.errors",
    "Judge": "brainq.contracts.judgement",
    "JudgeCase": "brainq.contracts.judgement",
    "Judgement": "brainq.contracts.judgement",
    "Limits": "brainq.contracts.limits",
    "LimitsOverride": "brainq.contracts.turn",
    "Memory": "brainq.contracts.parts",
    "MemoryExtractor": "brainq.contracts.memory",
    "MemoryItem": "brainq.contracts.memory",
    "MemoryRetriever": "brainq.contracts.memory",
    "Message": "brainq.contracts.message",
    "ModelChunk": "brainq.contracts.model",
    "ModelReply": "brainq.contracts.model",
    "ModelRequest": "brainq.contracts.model",
    "Observation": "brainq.contracts.memory",
    "OutcomeUnknown": "brainq.tools.errors",
    "Partial": "brainq.tools.partial",
    "Pending": "brainq.tools.pending",
    "PostToolUse": "brainq.contracts.callbacks",
    "PreToolUse": "brainq.contracts.callbacks",
    "PromptTemplate": "brainq.contracts.prompt",
    "Provider": "brainq.providers.base",
    "ProviderError": "brainq.errors",
    "Receipt": "brainq.contracts.mailbox",
    "RecordedTurn": "brainq.contracts.recorded",
    "ReflectionEngine": "brainq.turn.context.reflection",
    "ReplayControl": "brainq.gates.replay",
    "NoParsedOutput": "brainq.errors",
    "ResultTimeout": "brainq.errors",
    "RetrievedMemory": "brainq.contracts.memory",
    "RunContext": "brainq.tools.context",
    "RuntimeDecisionRecord": "brainq.contracts.decision",
    "ScriptedProvider": "brainq.providers.scripted",
    "Selection": "brainq.contracts.parts",
    "SemanticToolSelector": "brainq.turn.context.selection",
    "Session": "brainq.client.session",
    "SessionBusy": "brainq.errors",
    "Settings": "brainq.settings",
    "SetupError": "brainq.errors",
    "Spend": "brainq.contracts.usage",
    "MailboxFull": "brainq.errors",
    "StaleTurn": "brainq.errors",
    "Unreachable": "brainq.errors",
    "StandingHold": "brainq.contracts.hold",
    "StepContext": "brainq.finalize.step",
    "StopReason": "brainq.contracts.status",
    "StreamChunk": "brainq.contracts.callbacks",
    "SubmitConflict": "brainq.errors",
    "ThinkLevel": "brainq.contracts.reflection",
    "ThinkingManager": "brainq.turn.thinking",
    "TokenRefused": "brainq.errors",
    "TokenUsage": "brainq.contracts.usage",
    "Tool": "brainq.tools.tool",
    "ToolArgValidator": "brainq.gates.validation",
    "ToolCall": "brainq.contracts.message",
    "ToolDenied": "brainq.contracts.outcome",
    "ToolError": "brainq.tools.errors",
    "ToolFailure": "brainq.contracts.outcome",
    "ToolOutcome": "brainq.contracts.outcome",
    "ToolRanker": "brainq.contracts.parts",
    "ToolScheduler": "brainq.turn.planning.scheduler",
    "ToolSchemaError": "brainq.errors",
    "ToolSpec": "brainq.contracts.tool",
    "ToolSuccess": "brainq.contracts.outcome",
    "ToolTimeout": "brainq.contracts.outcome",
    "ToolTraceEntry": "brainq.contracts.trace",
    "ToolUnknown": "brainq.contracts.outcome",
    "TraceStatus": "brainq.contracts.status",
    "TurnBudget": "brainq.client.budget",
    "TurnDrain": "brainq.turn.context.mailbox",
    "TurnEnd": "brainq.contracts.callbacks",
    "TurnEvent": "brainq.contracts.event",
    "TurnFinalizer": "brainq.finalize.finalizer",
    "TurnHandle": "brainq.client.handle",
    "TurnInfo": "brainq.contracts.callbacks",
    "TurnInput": "brainq.contracts.mailbox",
    "TurnMailbox": "brainq.turn.context.mailbox",
    "TurnNotFound": "brainq.errors",
    "TurnPreparation": "brainq.turn.context.preparer",
    "TurnPreparer": "brainq.turn.context.preparer",
    "TurnRejected": "brainq.errors",
    "TurnRequest": "brainq.contracts.turn",
    "TurnResult": "brainq.contracts.turn",
    "TurnRuntimeState": "brainq.client.runtime_state",
    "TurnSnapshot": "brainq.contracts.snapshot",
    "TurnState": "brainq.contracts.status",
    "UsageInfo": "brainq.contracts.callbacks",
    "WaitingTurn": "brainq.client.session",
    "make_tool": "brainq.tools.tool",
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
    "AutonomousResearchLearner",
    "BoundedToolExecutor",
    "Brain",
    "BrainqError",
    "BudgetSnapshot",
    "Callbacks",
    "ChildTurn",
    "Children",
    "Citation",
    "CitationAccumulator",
    "Client",
    "ContentNotKept",
    "Context",
    "ContextCompactor",
    "DeadlineToken",
    "Deny",
    "Effect",
    "Ending",
    "EventKind",
    "FinalStep",
    "Flag",
    "HistoryTurn",
    "Hold",
    "InvalidInput",
    "Judge",
    "JudgeCase",
    "Judgement",
    "Limits",
    "LimitsOverride",
    "MailboxFull",
    "Memory",
    "MemoryExtractor",
    "MemoryItem",
    "MemoryRetriever",
    "Message",
    "ModelChunk",
    "ModelReply",
    "ModelRequest",
    "NoParsedOutput",
    "Observation",
    "OutcomeUnknown",
    "Partial",
    "Pending",
    "PostToolUse",
    "PreToolUse",
    "PromptTemplate",
    "Provider",
    "ProviderError",
    "Receipt",
    "RecordedTurn",
    "ReflectionEngine",
    "ReplayControl",
    "ResultTimeout",
    "RetrievedMemory",
    "RunContext",
    "RuntimeDecisionRecord",
    "ScriptedProvider",
    "Selection",
    "SemanticToolSelector",
    "Session",
    "SessionBusy",
    "Settings",
    "SetupError",
    "Spend",
    "StaleTurn",
    "StandingHold",
    "StepContext",
    "StopReason",
    "StreamChunk",
    "SubmitConflict",
    "ThinkLevel",
    "ThinkingManager",
    "TokenRefused",
    "TokenUsage",
    "Tool",
    "ToolArgValidator",
    "ToolCall",
    "ToolDenied",
    "ToolError",
    "ToolFailure",
    "ToolOutcome",
    "ToolRanker",
    "ToolScheduler",
    "ToolSchemaError",
    "ToolSpec",
    "ToolSuccess",
    "ToolTimeout",
    "ToolTraceEntry",
    "ToolUnknown",
    "TraceStatus",
    "TurnBudget",
    "TurnDrain",
    "TurnEnd",
    "TurnEvent",
    "TurnFinalizer",
    "TurnHandle",
    "TurnInfo",
    "TurnInput",
    "TurnMailbox",
    "TurnNotFound",
    "TurnPreparation",
    "TurnPreparer",
    "TurnRejected",
    "TurnRequest",
    "TurnResult",
    "TurnRuntimeState",
    "TurnSnapshot",
    "TurnState",
    "Unreachable",
    "UsageInfo",
    "WaitingTurn",
    "__version__",
    "make_tool",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'brainq' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)

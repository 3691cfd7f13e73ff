"""brainq: LLM agent turns as distributed work on Celery and Redis.

    from brainq import Brain, Client, Effect

Everything an application needs is here; models that follow a script, for tests, are in `brainq.testing`, and the parts
that do the work inside a turn in `brainq.engine`. Other modules
may change without notice. `import brainq` loads nothing but this file; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.access.caller import Caller, Verb
    from brainq.brain import Brain
    from brainq.client.async_client import AsyncClient
    from brainq.client.async_handle import AsyncHold, AsyncTurnHandle
    from brainq.client.async_memories import AsyncMemories
    from brainq.client.async_session import AsyncFlag, AsyncSession
    from brainq.client.client import Client
    from brainq.client.handle import TurnHandle
    from brainq.client.hold import Flag, Hold
    from brainq.client.memories import Memories
    from brainq.client.options import Cancelled, SubmitOptions, TurnFilters, WaitFor
    from brainq.client.session import Session, WaitingTurn
    from brainq.contracts.approval import Approval
    from brainq.contracts.attachment import Attachment
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
    from brainq.contracts.client_tool import ClientTool
    from brainq.contracts.decision import DecisionStore, RuntimeDecisionRecord
    from brainq.contracts.effect import Effect
    from brainq.contracts.event import EventKind, TurnEvent
    from brainq.contracts.file import File
    from brainq.contracts.fleet import Fleet, FleetActivity
    from brainq.contracts.history import HistoryTurn, TurnCall
    from brainq.contracts.hold import HoldPolicy, StandingHold
    from brainq.contracts.ids import full_call_id, split_call_id
    from brainq.contracts.judgement import Judge, JudgeCase, Judgement
    from brainq.contracts.limits import Limits
    from brainq.contracts.listing import ListedSession, ListedTurn, Sort, StartedTurn
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
    from brainq.contracts.options import ModelOptions, OptionsFields
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
    from brainq.contracts.rows import MemoryRow, TurnRow
    from brainq.contracts.schedule import Missed, OnRunning, Schedule
    from brainq.contracts.snapshot import BudgetSnapshot, TurnSnapshot
    from brainq.contracts.status import Ending, StopReason, TraceStatus, TurnState
    from brainq.contracts.timeline import TimelineBar, TimelineSpan, TurnTimeline
    from brainq.contracts.tool import ToolSpec
    from brainq.contracts.trace import ToolTraceEntry
    from brainq.contracts.turn import (
        Citation,
        LimitsFields,
        LimitsOverride,
        OnBusy,
        Priority,
        TurnKind,
        TurnRequest,
        TurnResult,
    )
    from brainq.contracts.usage import Spend, TokenUsage
    from brainq.contracts.webhook import DeliveryRow
    from brainq.errors import (
        AlreadyRuns,
        ApprovalDecided,
        ApprovalNotFound,
        AttachmentNotFound,
        BrainNotLoaded,
        BrainqError,
        CallNotFound,
        ContentNotKept,
        InputNotFound,
        InvalidInput,
        MailboxFull,
        NoParsedOutput,
        NotFound,
        ProviderError,
        QueueFull,
        ResultRefused,
        ResultTimeout,
        ScheduleNotFound,
        SchedulesFull,
        SessionBusy,
        SetupError,
        StaleTurn,
        SubmitConflict,
        TokenRefused,
        ToolSchemaError,
        TurnFailed,
        TurnNotFound,
        TurnParked,
        TurnRejected,
        Unreachable,
    )
    from brainq.finalize.retry import Retried
    from brainq.finalize.step import FinalStep, StepContext
    from brainq.operator.facts import TurnFacts
    from brainq.operator.operator import Operator
    from brainq.people.outside import Taken
    from brainq.providers.base import Provider
    from brainq.providers.fallback import Fallback
    from brainq.providers.scripted import ScriptedProvider
    from brainq.settings import Settings
    from brainq.step_choice import StepChoice, StepInfo
    from brainq.tools.context import RunContext
    from brainq.tools.deadline import DeadlineToken
    from brainq.tools.errors import OutcomeUnknown, ToolError
    from brainq.tools.mcp.oauth import McpOAuth
    from brainq.tools.mcp.server import McpServer, McpTool
    from brainq.tools.output import OutputSchema
    from brainq.tools.partial import Partial
    from brainq.tools.pending import Pending
    from brainq.tools.tool import Tool, make_tool
    from brainq.tools.with_files import WithFiles

__version__ = "0.1.0"

_NAMES = {
    "brainq.access.caller": "Caller Verb",
    "brainq.brain": "Brain",
    "brainq.client.async_client": "AsyncClient",
    "brainq.client.async_handle": "AsyncHold AsyncTurnHandle",
    "brainq.client.async_memories": "AsyncMemories",
    "brainq.client.async_session": "AsyncFlag AsyncSession",
    "brainq.client.client": "Client",
    "brainq.client.handle": "TurnHandle",
    "brainq.client.hold": "Flag Hold",
    "brainq.client.memories": "Memories",
    "brainq.client.options": "Cancelled SubmitOptions TurnFilters WaitFor",
    "brainq.client.session": "Session WaitingTurn",
    "brainq.contracts.approval": "Approval",
    "brainq.contracts.attachment": "Attachment",
    "brainq.contracts.callbacks": (
        "Callbacks Deny PostToolUse PreToolUse StreamChunk TurnEnd TurnInfo UsageInfo"
    ),
    "brainq.contracts.child_turn": "ChildTurn",
    "brainq.contracts.client_tool": "ClientTool",
    "brainq.contracts.decision": "DecisionStore RuntimeDecisionRecord",
    "brainq.contracts.effect": "Effect",
    "brainq.contracts.event": "EventKind TurnEvent",
    "brainq.contracts.file": "File",
    "brainq.contracts.fleet": "Fleet FleetActivity",
    "brainq.contracts.history": "HistoryTurn TurnCall",
    "brainq.contracts.hold": "HoldPolicy StandingHold",
    "brainq.contracts.ids": "full_call_id split_call_id",
    "brainq.contracts.judgement": "Judge JudgeCase Judgement",
    "brainq.contracts.limits": "Limits",
    "brainq.contracts.listing": "ListedSession ListedTurn Sort StartedTurn",
    "brainq.contracts.mailbox": "Receipt TurnInput",
    "brainq.contracts.memory": (
        "AutonomousResearchLearner MemoryExtractor MemoryItem MemoryRetriever Observation RetrievedMemory"
    ),
    "brainq.contracts.message": "Message ToolCall",
    "brainq.contracts.model": "ModelChunk ModelReply ModelRequest",
    "brainq.contracts.options": "ModelOptions OptionsFields",
    "brainq.contracts.outcome": ("ToolDenied ToolFailure ToolOutcome ToolSuccess ToolTimeout ToolUnknown"),
    "brainq.contracts.parts": "Approvals Children Context Memory Selection ToolRanker",
    "brainq.contracts.prompt": "PromptTemplate",
    "brainq.contracts.recorded": "RecordedTurn",
    "brainq.contracts.reflection": "ThinkLevel",
    "brainq.contracts.rows": "MemoryRow TurnRow",
    "brainq.contracts.schedule": "Missed OnRunning Schedule",
    "brainq.contracts.snapshot": "BudgetSnapshot TurnSnapshot",
    "brainq.contracts.status": "Ending StopReason TraceStatus TurnState",
    "brainq.contracts.timeline": "TimelineBar TimelineSpan TurnTimeline",
    "brainq.contracts.tool": "ToolSpec",
    "brainq.contracts.trace": "ToolTraceEntry",
    "brainq.contracts.turn": (
        "Citation LimitsFields LimitsOverride OnBusy Priority TurnKind TurnRequest TurnResult"
    ),
    "brainq.contracts.usage": "Spend TokenUsage",
    "brainq.contracts.webhook": "DeliveryRow",
    "brainq.errors": (
        "AlreadyRuns ApprovalDecided ApprovalNotFound AttachmentNotFound BrainNotLoaded "
        "BrainqError CallNotFound ContentNotKept InputNotFound InvalidInput MailboxFull "
        "NoParsedOutput NotFound ProviderError QueueFull ResultRefused ResultTimeout "
        "ScheduleNotFound SchedulesFull SessionBusy SetupError StaleTurn SubmitConflict "
        "TokenRefused ToolSchemaError TurnFailed TurnNotFound TurnParked TurnRejected Unreachable"
    ),
    "brainq.finalize.retry": "Retried",
    "brainq.finalize.step": "FinalStep StepContext",
    "brainq.operator.facts": "TurnFacts",
    "brainq.operator.operator": "Operator",
    "brainq.people.outside": "Taken",
    "brainq.providers.base": "Provider",
    "brainq.providers.fallback": "Fallback",
    "brainq.providers.scripted": "ScriptedProvider",
    "brainq.settings": "Settings",
    "brainq.step_choice": "StepChoice StepInfo",
    "brainq.tools.context": "RunContext",
    "brainq.tools.deadline": "DeadlineToken",
    "brainq.tools.errors": "OutcomeUnknown ToolError",
    "brainq.tools.mcp.oauth": "McpOAuth",
    "brainq.tools.mcp.server": "McpServer McpTool",
    "brainq.tools.output": "OutputSchema",
    "brainq.tools.partial": "Partial",
    "brainq.tools.pending": "Pending",
    "brainq.tools.tool": "Tool make_tool",
    "brainq.tools.with_files": "WithFiles",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
_OF_THE_ENGINE = [
    "BoundedToolExecutor",
    "CitationAccumulator",
    "ContextCompactor",
    "ReflectionEngine",
    "ReplayControl",
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
"""They were here before they had a module of their own, and are found here still."""

__all__ = [
    "AlreadyRuns",
    "Approval",
    "ApprovalDecided",
    "ApprovalNotFound",
    "Approvals",
    "AsyncClient",
    "AsyncFlag",
    "AsyncHold",
    "AsyncMemories",
    "AsyncSession",
    "AsyncTurnHandle",
    "Attachment",
    "AttachmentNotFound",
    "AutonomousResearchLearner",
    "Brain",
    "BrainNotLoaded",
    "BrainqError",
    "BudgetSnapshot",
    "CallNotFound",
    "Callbacks",
    "Caller",
    "Cancelled",
    "ChildTurn",
    "Children",
    "Citation",
    "Client",
    "ClientTool",
    "ContentNotKept",
    "Context",
    "DeadlineToken",
    "DecisionStore",
    "DeliveryRow",
    "Deny",
    "Effect",
    "Ending",
    "EventKind",
    "Fallback",
    "File",
    "FinalStep",
    "Flag",
    "Fleet",
    "FleetActivity",
    "HistoryTurn",
    "Hold",
    "HoldPolicy",
    "InputNotFound",
    "InvalidInput",
    "Judge",
    "JudgeCase",
    "Judgement",
    "Limits",
    "LimitsFields",
    "LimitsOverride",
    "ListedSession",
    "ListedTurn",
    "MailboxFull",
    "McpOAuth",
    "McpServer",
    "McpTool",
    "Memories",
    "Memory",
    "MemoryExtractor",
    "MemoryItem",
    "MemoryRetriever",
    "MemoryRow",
    "Message",
    "Missed",
    "ModelChunk",
    "ModelOptions",
    "ModelReply",
    "ModelRequest",
    "NoParsedOutput",
    "NotFound",
    "Observation",
    "OnBusy",
    "OnRunning",
    "Operator",
    "OptionsFields",
    "OutcomeUnknown",
    "OutputSchema",
    "Partial",
    "Pending",
    "PostToolUse",
    "PreToolUse",
    "Priority",
    "PromptTemplate",
    "Provider",
    "ProviderError",
    "QueueFull",
    "Receipt",
    "RecordedTurn",
    "ResultRefused",
    "ResultTimeout",
    "Retried",
    "RetrievedMemory",
    "RunContext",
    "RuntimeDecisionRecord",
    "Schedule",
    "ScheduleNotFound",
    "SchedulesFull",
    "ScriptedProvider",
    "Selection",
    "Session",
    "SessionBusy",
    "Settings",
    "SetupError",
    "Sort",
    "Spend",
    "StaleTurn",
    "StandingHold",
    "StartedTurn",
    "StepChoice",
    "StepContext",
    "StepInfo",
    "StopReason",
    "StreamChunk",
    "SubmitConflict",
    "SubmitOptions",
    "Taken",
    "ThinkLevel",
    "TimelineBar",
    "TimelineSpan",
    "TokenRefused",
    "TokenUsage",
    "Tool",
    "ToolCall",
    "ToolDenied",
    "ToolError",
    "ToolFailure",
    "ToolOutcome",
    "ToolRanker",
    "ToolSchemaError",
    "ToolSpec",
    "ToolSuccess",
    "ToolTimeout",
    "ToolTraceEntry",
    "ToolUnknown",
    "TraceStatus",
    "TurnCall",
    "TurnEnd",
    "TurnEvent",
    "TurnFacts",
    "TurnFailed",
    "TurnFilters",
    "TurnHandle",
    "TurnInfo",
    "TurnInput",
    "TurnKind",
    "TurnNotFound",
    "TurnParked",
    "TurnRejected",
    "TurnRequest",
    "TurnResult",
    "TurnRow",
    "TurnSnapshot",
    "TurnState",
    "TurnTimeline",
    "Unreachable",
    "UsageInfo",
    "Verb",
    "WaitFor",
    "WaitingTurn",
    "WithFiles",
    "__version__",
    "full_call_id",
    "make_tool",
    "split_call_id",
]


def __getattr__(name: str) -> Any:
    if name in _OF_THE_ENGINE:
        return getattr(import_module("brainq.engine"), name)
    if name not in _WHERE:
        raise AttributeError(f"module 'brainq' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)

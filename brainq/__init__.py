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
    from brainq.brain.brain import Brain, StepChoice, StepInfo
    from brainq.brain.middleware import CallStart, FinalStepInfo, Middleware
    from brainq.client.async_client import AsyncClient, AsyncFlag, AsyncMemories, AsyncSession
    from brainq.client.async_handle import AsyncHold, AsyncTurnHandle
    from brainq.client.client import Client
    from brainq.client.content_keys import ContentKeys
    from brainq.client.handle import Hold, TurnHandle
    from brainq.client.memories import Memories
    from brainq.client.operator import Operator
    from brainq.client.options import BulkOptions, Cancelled, SubmitOptions, TurnFilters, WaitFor
    from brainq.client.session import Flag, Session, WaitingTurn
    from brainq.client.turn_facts import CallFacts, TurnFacts
    from brainq.contracts.act import Act
    from brainq.contracts.brain import (
        Approvals,
        Children,
        Context,
        Memory,
        PromptTemplate,
        Selection,
        ThinkLevel,
        ToolRanker,
    )
    from brainq.contracts.bulk import BulkReport, BulkVerb
    from brainq.contracts.call import (
        ChildTurn,
        ToolDenied,
        ToolFailure,
        ToolOutcome,
        ToolSuccess,
        ToolTimeout,
        ToolTraceEntry,
        ToolUnknown,
    )
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
    from brainq.contracts.encryption import ContentKeyMissing, ContentShredded, ReencryptProgress, TenantKey
    from brainq.contracts.erasure import Erasure
    from brainq.contracts.evaluation import DecisionStore, Judge, JudgeCase, Judgement, RuntimeDecisionRecord
    from brainq.contracts.event import EventKind, TimelineBar, TimelineSpan, TurnEvent, TurnTimeline
    from brainq.contracts.file import File
    from brainq.contracts.fleet import CellsState, Fleet, FleetActivity, FleetScale
    from brainq.contracts.history import HistoryTurn, ListedSession, ListedTurn, Sort, StartedTurn, TurnCall
    from brainq.contracts.ids import full_call_id, split_call_id
    from brainq.contracts.memory import (
        AutonomousResearchLearner,
        MemoryExtractor,
        MemoryItem,
        MemoryRetriever,
        Observation,
        RecordedTurn,
        RetrievedMemory,
    )
    from brainq.contracts.message import Attachment, Message, ToolCall
    from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, Spend
    from brainq.contracts.model_options import ModelOptions, OptionsFields
    from brainq.contracts.people import Approval, HoldPolicy, Receipt, StandingHold, TurnInput
    from brainq.contracts.rows import MemoryRow, TurnRow
    from brainq.contracts.schedule import Missed, OnRunning, Schedule
    from brainq.contracts.spending import SpendLine
    from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus, TurnState
    from brainq.contracts.stop import Stop, StopKind, StopMode
    from brainq.contracts.tool import ClientTool, ToolSpec
    from brainq.contracts.turn import (
        Citation,
        Limits,
        LimitsFields,
        LimitsOverride,
        OnBusy,
        Priority,
        TurnKind,
        TurnRequest,
        TurnResult,
    )
    from brainq.contracts.usage import TokenUsage
    from brainq.contracts.view import BudgetSnapshot, TurnSnapshot
    from brainq.contracts.webhook import DeliveryRow
    from brainq.errors import (
        AlreadyRuns,
        ApprovalDecided,
        ApprovalNotFound,
        AttachmentNotFound,
        BrainNotLoaded,
        BrainqError,
        BudgetSpent,
        BuildUnserved,
        CallNotFound,
        CellUnreachable,
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
        TurnForbidden,
        TurnNotFound,
        TurnParked,
        TurnRejected,
        Unreachable,
    )
    from brainq.finalize.rerun import Retried
    from brainq.finalize.steps import FinalStep, StepContext
    from brainq.gates.answer_schema import OutputSchema
    from brainq.models.asking.fallback import Fallback
    from brainq.models.providers import Provider
    from brainq.models.scripted import ScriptedProvider
    from brainq.people.outside import Taken
    from brainq.settings.deployment import Settings
    from brainq.tools.context import RunContext
    from brainq.tools.deadline import DeadlineToken
    from brainq.tools.mcp.server import McpOAuth, McpServer, McpTool
    from brainq.tools.results import OutcomeUnknown, Partial, Pending, ToolError, WithFiles
    from brainq.tools.tool import Tool, make_tool

__version__ = "0.1.0"

_NAMES = {
    "brainq.access.caller": "Caller Verb",
    "brainq.brain.brain": "Brain StepChoice StepInfo",
    "brainq.brain.middleware": "CallStart FinalStepInfo Middleware",
    "brainq.client.async_client": "AsyncClient AsyncFlag AsyncMemories AsyncSession",
    "brainq.client.async_handle": "AsyncHold AsyncTurnHandle",
    "brainq.client.client": "Client",
    "brainq.client.content_keys": "ContentKeys",
    "brainq.client.handle": "Hold TurnHandle",
    "brainq.client.memories": "Memories",
    "brainq.client.options": "BulkOptions Cancelled SubmitOptions TurnFilters WaitFor",
    "brainq.client.session": "Flag Session WaitingTurn",
    "brainq.client.turn_facts": "CallFacts TurnFacts",
    "brainq.contracts.act": "Act",
    "brainq.contracts.brain": ("Approvals Children Context Memory PromptTemplate Selection ThinkLevel ToolRanker"),
    "brainq.contracts.bulk": "BulkReport BulkVerb",
    "brainq.contracts.call": (
        "ChildTurn ToolDenied ToolFailure ToolOutcome ToolSuccess ToolTimeout ToolTraceEntry ToolUnknown"
    ),
    "brainq.contracts.callbacks": ("Callbacks Deny PostToolUse PreToolUse StreamChunk TurnEnd TurnInfo UsageInfo"),
    "brainq.contracts.evaluation": "DecisionStore Judge JudgeCase Judgement RuntimeDecisionRecord",
    "brainq.contracts.event": "EventKind TimelineBar TimelineSpan TurnEvent TurnTimeline",
    "brainq.contracts.file": "File",
    "brainq.contracts.encryption": "ContentKeyMissing ContentShredded ReencryptProgress TenantKey",
    "brainq.contracts.erasure": "Erasure",
    "brainq.contracts.fleet": "CellsState Fleet FleetActivity FleetScale",
    "brainq.contracts.history": "HistoryTurn ListedSession ListedTurn Sort StartedTurn TurnCall",
    "brainq.contracts.ids": "full_call_id split_call_id",
    "brainq.contracts.memory": (
        "AutonomousResearchLearner MemoryExtractor MemoryItem MemoryRetriever Observation RecordedTurn RetrievedMemory"
    ),
    "brainq.contracts.message": "Attachment Message ToolCall",
    "brainq.contracts.model": "ModelChunk ModelReply ModelRequest Spend",
    "brainq.contracts.model_options": "ModelOptions OptionsFields",
    "brainq.contracts.people": "Approval HoldPolicy Receipt StandingHold TurnInput",
    "brainq.contracts.rows": "MemoryRow TurnRow",
    "brainq.contracts.schedule": "Missed OnRunning Schedule",
    "brainq.contracts.spending": "SpendLine",
    "brainq.contracts.status": "Effect Ending StopReason TraceStatus TurnState",
    "brainq.contracts.stop": "Stop StopKind StopMode",
    "brainq.contracts.tool": "ClientTool ToolSpec",
    "brainq.contracts.turn": (
        "Citation Limits LimitsFields LimitsOverride OnBusy Priority TurnKind TurnRequest TurnResult"
    ),
    "brainq.contracts.usage": "TokenUsage",
    "brainq.contracts.view": "BudgetSnapshot TurnSnapshot",
    "brainq.contracts.webhook": "DeliveryRow",
    "brainq.errors": (
        "AlreadyRuns ApprovalDecided ApprovalNotFound AttachmentNotFound BrainNotLoaded BrainqError "
        "BudgetSpent BuildUnserved CallNotFound CellUnreachable ContentNotKept InputNotFound InvalidInput MailboxFull "
        "NoParsedOutput NotFound ProviderError QueueFull ResultRefused ResultTimeout ScheduleNotFound SchedulesFull "
        "SessionBusy "
        "SetupError StaleTurn SubmitConflict TokenRefused ToolSchemaError TurnFailed TurnForbidden TurnNotFound "
        "TurnParked TurnRejected Unreachable"
    ),
    "brainq.finalize.rerun": "Retried",
    "brainq.finalize.steps": "FinalStep StepContext",
    "brainq.gates.answer_schema": "OutputSchema",
    "brainq.models.asking.fallback": "Fallback",
    "brainq.models.providers": "Provider",
    "brainq.models.scripted": "ScriptedProvider",
    "brainq.client.operator": "Operator",
    "brainq.people.outside": "Taken",
    "brainq.settings": "Settings",
    "brainq.tools.context": "RunContext",
    "brainq.tools.deadline": "DeadlineToken",
    "brainq.tools.mcp.server": "McpOAuth McpServer McpTool",
    "brainq.tools.results": "OutcomeUnknown Partial Pending ToolError WithFiles",
    "brainq.tools.tool": "Tool make_tool",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
_ENGINE_NAMES = (
    "BoundedToolExecutor CitationAccumulator ContextCompactor ReflectionEngine ReplayControl SemanticToolSelector "
    "ThinkingManager ToolArgValidator ToolScheduler TurnBudget TurnDrain TurnFinalizer TurnMailbox TurnPreparation "
    "TurnPreparer TurnRuntimeState"
)
_OF_THE_ENGINE = _ENGINE_NAMES.split()
"""They were here before they had a module of their own, and are found here still."""

__all__ = ["Act", "AlreadyRuns", "Approval", "ApprovalDecided", "ApprovalNotFound", "Approvals", "AsyncClient"]
__all__ += ["AsyncFlag", "AsyncHold", "AsyncMemories", "AsyncSession", "AsyncTurnHandle", "Attachment"]
__all__ += ["AttachmentNotFound", "AutonomousResearchLearner", "Brain", "BrainNotLoaded", "BrainqError"]
__all__ += ["BudgetSnapshot", "BudgetSpent", "BuildUnserved", "BulkOptions", "BulkReport", "BulkVerb", "CallFacts"]
__all__ += ["CallNotFound", "CallStart", "Callbacks", "Caller", "Cancelled", "CellUnreachable", "CellsState"]
__all__ += ["ChildTurn", "Children"]
__all__ += ["Citation", "Client", "ClientTool", "ContentKeyMissing", "ContentKeys", "ContentNotKept"]
__all__ += ["ContentShredded", "Context", "DeadlineToken", "DecisionStore", "DeliveryRow", "Deny", "Effect", "Ending"]
__all__ += ["Erasure", "EventKind", "Fallback", "File", "FinalStep", "FinalStepInfo", "Flag", "Fleet"]
__all__ += ["FleetActivity", "FleetScale", "HistoryTurn", "Hold", "HoldPolicy", "InputNotFound", "InvalidInput"]
__all__ += ["Judge", "JudgeCase", "Judgement", "Limits", "LimitsFields", "LimitsOverride", "ListedSession"]
__all__ += ["ListedTurn", "MailboxFull", "McpOAuth", "McpServer", "McpTool", "Memories", "Memory", "MemoryExtractor"]
__all__ += ["MemoryItem", "MemoryRetriever", "MemoryRow", "Message", "Middleware", "Missed", "ModelChunk"]
__all__ += ["ModelOptions", "ModelReply", "ModelRequest", "NoParsedOutput", "NotFound", "Observation", "OnBusy"]
__all__ += ["OnRunning", "Operator", "OptionsFields", "OutcomeUnknown", "OutputSchema", "Partial", "Pending"]
__all__ += ["PostToolUse", "PreToolUse", "Priority", "PromptTemplate", "Provider", "ProviderError", "QueueFull"]
__all__ += ["Receipt", "RecordedTurn", "ReencryptProgress", "ResultRefused", "ResultTimeout", "Retried"]
__all__ += ["RetrievedMemory", "RunContext", "RuntimeDecisionRecord", "Schedule", "ScheduleNotFound", "SchedulesFull"]
__all__ += ["ScriptedProvider", "Selection", "Session", "SessionBusy", "Settings", "SetupError", "Sort", "Spend"]
__all__ += ["SpendLine", "StaleTurn", "StandingHold", "StartedTurn", "StepChoice", "StepContext", "StepInfo", "Stop"]
__all__ += ["StopKind", "StopMode", "StopReason", "StreamChunk", "SubmitConflict", "SubmitOptions", "Taken"]
__all__ += ["TenantKey", "ThinkLevel", "TimelineBar", "TimelineSpan", "TokenRefused", "TokenUsage", "Tool"]
__all__ += ["ToolCall", "ToolDenied", "ToolError", "ToolFailure", "ToolOutcome", "ToolRanker", "ToolSchemaError"]
__all__ += ["ToolSpec", "ToolSuccess", "ToolTimeout", "ToolTraceEntry", "ToolUnknown", "TraceStatus", "TurnCall"]
__all__ += ["TurnEnd", "TurnEvent", "TurnFacts", "TurnFailed", "TurnFilters", "TurnForbidden", "TurnHandle"]
__all__ += ["TurnInfo", "TurnInput", "TurnKind", "TurnNotFound", "TurnParked", "TurnRejected", "TurnRequest"]
__all__ += ["TurnResult", "TurnRow", "TurnSnapshot", "TurnState", "TurnTimeline", "Unreachable", "UsageInfo", "Verb"]
__all__ += ["WaitFor", "WaitingTurn", "WithFiles", "full_call_id", "make_tool", "split_call_id"]
__all__ += ["__version__"]


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

"""The public names of brainq, by the module that has each: `__init__.py` loads them by this file."""

from brainq.app.access.caller import Caller as Caller, Verb as Verb
from brainq.engine.brain.brain import Brain as Brain, StepChoice as StepChoice, StepInfo as StepInfo
from brainq.engine.brain.middleware import (
    CallStart as CallStart,
    FinalStepInfo as FinalStepInfo,
    Middleware as Middleware,
)
from brainq.client.async_client import (
    AsyncClient as AsyncClient,
    AsyncFlag as AsyncFlag,
    AsyncMemories as AsyncMemories,
    AsyncSession as AsyncSession,
)
from brainq.client.async_handle import AsyncHold as AsyncHold, AsyncTurnHandle as AsyncTurnHandle
from brainq.client.client import Client as Client
from brainq.client.following import as_completed as as_completed, gather as gather
from brainq.client.handle import Hold as Hold, TurnHandle as TurnHandle
from brainq.client.http.async_client import AsyncHttpClient as AsyncHttpClient
from brainq.client.http.async_handle import AsyncHttpHold as AsyncHttpHold, AsyncHttpTurnHandle as AsyncHttpTurnHandle
from brainq.client.http.async_session import AsyncHttpFlag as AsyncHttpFlag, AsyncHttpSession as AsyncHttpSession
from brainq.client.http.async_memories import (
    AsyncHttpBudgets as AsyncHttpBudgets,
    AsyncHttpMemories as AsyncHttpMemories,
)
from brainq.client.http.client import (
    HttpBudgets as HttpBudgets,
    HttpClient as HttpClient,
    HttpFlag as HttpFlag,
    HttpHold as HttpHold,
    HttpMemories as HttpMemories,
    HttpSession as HttpSession,
    HttpTurnHandle as HttpTurnHandle,
)
from brainq.client.local import LocalClient as LocalClient, local as local
from brainq.client.http.refusals import GatewayRefused as GatewayRefused
from brainq.client.memories import Memories as Memories
from brainq.client.operator import Operator as Operator
from brainq.client.options import (
    BulkOptions as BulkOptions,
    Cancelled as Cancelled,
    SubmitOptions as SubmitOptions,
    TurnFilters as TurnFilters,
    WaitFor as WaitFor,
)
from brainq.client.session import Flag as Flag, Session as Session
from brainq.client.turn_facts import CallFacts as CallFacts, TurnFacts as TurnFacts
from brainq.contracts.act import Act as Act
from brainq.contracts.brain import (
    Approvals as Approvals,
    Children as Children,
    Context as Context,
    Memory as Memory,
    PromptTemplate as PromptTemplate,
    Selection as Selection,
    ThinkLevel as ThinkLevel,
    ToolRanker as ToolRanker,
)
from brainq.contracts.budgets import BudgetState as BudgetState
from brainq.contracts.build import BuildChange as BuildChange, Versions as Versions
from brainq.contracts.bulk import BulkReport as BulkReport, BulkVerb as BulkVerb
from brainq.contracts.call import (
    ChildTurn as ChildTurn,
    ToolDenied as ToolDenied,
    ToolFailure as ToolFailure,
    ToolOutcome as ToolOutcome,
    ToolSuccess as ToolSuccess,
    ToolTimeout as ToolTimeout,
    ToolTraceEntry as ToolTraceEntry,
    ToolUnknown as ToolUnknown,
)
from brainq.contracts.callbacks import (
    Callbacks as Callbacks,
    Deny as Deny,
    PostToolUse as PostToolUse,
    PreToolUse as PreToolUse,
    StreamChunk as StreamChunk,
    TurnEnd as TurnEnd,
    TurnInfo as TurnInfo,
    UsageInfo as UsageInfo,
)
from brainq.contracts.encryption import (
    ContentKeyMissing as ContentKeyMissing,
    ContentShredded as ContentShredded,
    ReencryptProgress as ReencryptProgress,
    TenantKey as TenantKey,
)
from brainq.contracts.erasure import Erasure as Erasure
from brainq.contracts.evaluation import (
    DecisionStore as DecisionStore,
    Judge as Judge,
    JudgeCase as JudgeCase,
    Judgement as Judgement,
    RuntimeDecisionRecord as RuntimeDecisionRecord,
)
from brainq.contracts.event import (
    EventKind as EventKind,
    TimelineBar as TimelineBar,
    TimelineSpan as TimelineSpan,
    TurnEvent as TurnEvent,
    TurnTimeline as TurnTimeline,
)
from brainq.contracts.file import File as File
from brainq.contracts.fleet import (
    CellsState as CellsState,
    Fleet as Fleet,
    FleetActivity as FleetActivity,
    FleetScale as FleetScale,
)
from brainq.contracts.history import (
    HistoryTurn as HistoryTurn,
    ListedSession as ListedSession,
    ListedTurn as ListedTurn,
    Sort as Sort,
    StartedTurn as StartedTurn,
    TurnCall as TurnCall,
    WaitingTurn as WaitingTurn,
)
from brainq.contracts.ids import full_call_id as full_call_id, split_call_id as split_call_id
from brainq.contracts.memory import (
    AutonomousResearchLearner as AutonomousResearchLearner,
    MemoryExtractor as MemoryExtractor,
    MemoryItem as MemoryItem,
    MemoryRetriever as MemoryRetriever,
    Observation as Observation,
    RecordedTurn as RecordedTurn,
    RetrievedMemory as RetrievedMemory,
)
from brainq.contracts.message import Attachment as Attachment, Message as Message, ToolCall as ToolCall
from brainq.contracts.model import (
    ModelChunk as ModelChunk,
    ModelReply as ModelReply,
    ModelRequest as ModelRequest,
    Spend as Spend,
)
from brainq.contracts.model_options import ModelOptions as ModelOptions, OptionsFields as OptionsFields
from brainq.contracts.people import (
    Approval as Approval,
    HoldPolicy as HoldPolicy,
    Receipt as Receipt,
    StandingHold as StandingHold,
    TurnInput as TurnInput,
)
from brainq.contracts.rows import MemoryRow as MemoryRow, TurnRow as TurnRow
from brainq.contracts.schedule import Missed as Missed, OnRunning as OnRunning, Schedule as Schedule
from brainq.contracts.spending import SpendLine as SpendLine
from brainq.contracts.status import (
    Effect as Effect,
    Ending as Ending,
    StopReason as StopReason,
    TraceStatus as TraceStatus,
    TurnState as TurnState,
)
from brainq.contracts.stop import Stop as Stop, StopKind as StopKind, StopMode as StopMode
from brainq.contracts.tool import ClientTool as ClientTool, ToolSpec as ToolSpec
from brainq.contracts.turn import (
    Citation as Citation,
    Limits as Limits,
    LimitsFields as LimitsFields,
    LimitsOverride as LimitsOverride,
    OnBusy as OnBusy,
    OutputSchema as OutputSchema,
    Priority as Priority,
    TurnKind as TurnKind,
    TurnRequest as TurnRequest,
    TurnResult as TurnResult,
)
from brainq.contracts.typed_events import (
    ApprovalDecidedEvent as ApprovalDecidedEvent,
    ApprovalRequested as ApprovalRequested,
    BudgetUsedUp as BudgetUsedUp,
    CallDispatched as CallDispatched,
    CallEnded as CallEnded,
    CallParked as CallParked,
    CallProgress as CallProgress,
    CallRunning as CallRunning,
    CallWaiting as CallWaiting,
    Compaction as Compaction,
    Event as Event,
    HoldPlaced as HoldPlaced,
    HoldReleased as HoldReleased,
    InputAccepted as InputAccepted,
    InputBounced as InputBounced,
    InputConsumed as InputConsumed,
    Notice as Notice,
    ReasoningDelta as ReasoningDelta,
    Reflection as Reflection,
    ResultOut as ResultOut,
    StepEnded as StepEnded,
    StepRetried as StepRetried,
    StepStarted as StepStarted,
    TextDelta as TextDelta,
    TurnActive as TurnActive,
    TurnCancelling as TurnCancelling,
    TurnClosing as TurnClosing,
    TurnDiff as TurnDiff,
    TurnOpening as TurnOpening,
    TurnParkedEvent as TurnParkedEvent,
    TurnQueued as TurnQueued,
    TurnResumed as TurnResumed,
    UnknownEvent as UnknownEvent,
)
from brainq.contracts.usage import TokenUsage as TokenUsage
from brainq.contracts.view import BudgetSnapshot as BudgetSnapshot, TurnSnapshot as TurnSnapshot
from brainq.contracts.webhook import DeliveryRow as DeliveryRow
from brainq.contrib.encryption.content_keys import ContentKeys as ContentKeys
from brainq.engine import (
    BoundedToolExecutor as BoundedToolExecutor,
    CitationAccumulator as CitationAccumulator,
    ContextCompactor as ContextCompactor,
    ReflectionEngine as ReflectionEngine,
    ReplayControl as ReplayControl,
    SemanticToolSelector as SemanticToolSelector,
    ThinkingManager as ThinkingManager,
    ToolArgValidator as ToolArgValidator,
    ToolScheduler as ToolScheduler,
    TurnBudget as TurnBudget,
    TurnDrain as TurnDrain,
    TurnFinalizer as TurnFinalizer,
    TurnMailbox as TurnMailbox,
    TurnPreparation as TurnPreparation,
    TurnPreparer as TurnPreparer,
    TurnRuntimeState as TurnRuntimeState,
)
from brainq.errors import (
    AlreadyRuns as AlreadyRuns,
    ApprovalDecided as ApprovalDecided,
    ApprovalNotFound as ApprovalNotFound,
    AttachmentNotFound as AttachmentNotFound,
    BrainNotLoaded as BrainNotLoaded,
    BrainqError as BrainqError,
    BudgetSpent as BudgetSpent,
    BuildUnserved as BuildUnserved,
    CallNotFound as CallNotFound,
    CellUnreachable as CellUnreachable,
    ContentNotKept as ContentNotKept,
    InputNotFound as InputNotFound,
    InvalidInput as InvalidInput,
    MailboxFull as MailboxFull,
    NoParsedOutput as NoParsedOutput,
    NotFound as NotFound,
    ProviderError as ProviderError,
    QueueFull as QueueFull,
    ResultRefused as ResultRefused,
    ResultTimeout as ResultTimeout,
    ScheduleNotFound as ScheduleNotFound,
    SchedulesFull as SchedulesFull,
    SessionBusy as SessionBusy,
    SetupError as SetupError,
    StaleTurn as StaleTurn,
    SubmitConflict as SubmitConflict,
    TokenRefused as TokenRefused,
    ToolSchemaError as ToolSchemaError,
    TurnFailed as TurnFailed,
    TurnForbidden as TurnForbidden,
    TurnNotFound as TurnNotFound,
    TurnParked as TurnParked,
    TurnRejected as TurnRejected,
    Unreachable as Unreachable,
)
from brainq.engine.finalize.rerun import Retried as Retried
from brainq.engine.finalize.steps import FinalStep as FinalStep, StepContext as StepContext
from brainq.engine.models.asking.fallback import Fallback as Fallback
from brainq.engine.models.providers import Provider as Provider
from brainq.engine.models.scripted import ScriptedProvider as ScriptedProvider
from brainq.engine.people.outside import Taken as Taken
from brainq.runtime.settings.deployment import Settings as Settings
from brainq.engine.tools.context import RunContext as RunContext
from brainq.engine.tools.deadline import DeadlineToken as DeadlineToken
from brainq.engine.tools.mcp.server import McpOAuth as McpOAuth, McpServer as McpServer, McpTool as McpTool
from brainq.engine.tools.results import (
    OutcomeUnknown as OutcomeUnknown,
    Partial as Partial,
    Pending as Pending,
    ToolError as ToolError,
    WithFiles as WithFiles,
)
from brainq.engine.tools.tool import Tool as Tool, make_tool as make_tool

__all__: list[str]
__version__: str

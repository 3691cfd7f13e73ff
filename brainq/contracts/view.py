"""A turn at one moment: the snapshot for readers, the view for decisions, and the ended turn for the finalizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from brainq.contracts.base import Wire
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.conversation import Conversation
from brainq.contracts.message import Message
from brainq.contracts.model import Spend, TokenUsage
from brainq.contracts.people import ApprovalStatus, TurnInput
from brainq.contracts.rate import QueueTicket
from brainq.contracts.status import Awaits, Ending, StopReason, TurnState
from brainq.contracts.turn import Priority, TurnRequest


class QueuePosition(Wire):
    """A queued turn's position, and what it waits for.

    live: its session's live turn, or "".
    ahead: the turns of its session that wait before it.
    is_paused: whether its session is paused, for `paused_ms` so far, because of `paused_why`.
    ahead_for_capacity: how many of its tenant's sessions will get capacity before its own, or None if it does not wait
        for capacity.
    full: what has no capacity: the `fleet`, or its `tenant`'s `share` alone. "" if there is capacity.
    brain: the brain that its session waits for, of which `brain_live` turns are live and at most `brain_cap` may be, or
        "". `ahead_for_capacity` then counts its tenant's sessions that wait for that brain. The numbers are 0 if an
        earlier turn of the session waits for the brain.
    share: how many turns of its tenant may be live, or None until a sweeper has reported it.
    gives_up_ms: the time until it ends without having begun, by its `max_wait_s`, or None if it has no such limit.
    """

    live: str = ""
    ahead: int = 0
    is_paused: bool = False
    paused_ms: int = 0
    paused_why: str = ""
    ahead_for_capacity: int | None = None
    full: Literal["", "fleet", "tenant"] = ""
    brain: str = ""
    brain_live: int = 0
    brain_cap: int = 0
    share: int | None = None
    priority: Priority = "normal"
    gives_up_ms: int | None = None


class BudgetSnapshot(Wire):
    """The limits of a turn and its usage, at one moment. `cost_known` is False until a model call had a price."""

    remaining_s: float
    expired: bool
    steps_used: int
    steps_max: int
    tool_calls_used: int
    tool_calls_max: int
    reflections_used: int
    reflections_max: int
    max_context_tokens: int
    tokens_used: int
    tokens_max: int | None
    cost_usd: float
    cost_max_usd: float | None
    cost_known: bool = True


class TurnSnapshot(Wire):
    """A turn as Redis has it.

    awaits: who must act next.
    waiting_behind: for a queued turn, how many turns of its session are before it, including the live one. If it waits
        for capacity or its brain, how many of its tenant's sessions and of its own turns are before it.
    queue: for a queued turn, why it has not begun.
    parked_ms: how long it has waited for people and outside results so far.
    brain: the brain that the turn names, or None in a deployment with one brain.
    waits_for: the limit of its model that it waits for, such as `openai:gpt-5: 60 requests a minute`, for `waits_ms`
        more.
    waits_for_build: the build whose brain it is pinned to, if no coordinator has that.
    text: the turn's answer, or the newest published text of its model while it lives.
    """

    turn_id: str
    session_id: str
    state: TurnState
    awaits: Awaits
    step: int
    attempt: int
    fence: int
    owner: str
    lease_remaining_ms: int
    ending: Ending | None
    stop_reason: StopReason | None
    cancel_requested: bool
    budget: BudgetSnapshot
    trace: tuple[ToolTraceEntry, ...]
    finalizer_step: str = ""
    finalizer_tries: int = 0
    text: str = ""
    kind: str = "chat"
    parked_ms: int = 0
    waiting_behind: int = 0
    queue: QueuePosition | None = None
    created_at_ms: int = 0
    now_ms: int = 0
    brain: str | None = None
    waits_for: str = ""
    waits_ms: int = 0
    waits_for_build: str = ""


@dataclass(slots=True)
class TurnView:
    """A live turn as its owner sees it. Times are Redis time in ms. Nobody else has it, so the additions of the brain
    to the request, and the beginning of the turn, are stored in it.

    lost_attempts: workers that it lost since it last advanced.
    quarantine_deaths: how many of them died while they worked on this turn alone.
    died_how: how the last of those died, such as `was killed by signal 9`.
    succeeded: maps fingerprints of calls that succeeded to the write epoch of their success.
    steps_max: the most steps that the turn's budget allows. A step that was begun (`thinking_step`) is already paid
        for.
    opened: whether the opening wave (memory, context pack) was dispatched.
    opening: maps the tools of opening calls that succeeded to their text.
    reflected_step: the step of the last attempt to reflect.
    compaction_tried_at: the tokens of the context at the last attempt to compact, or 0 if there was none in this turn.
    known: (input tokens reported, estimated) of the session's last model call; (0, 0) if there is none.
    shown: the tools chosen for this turn. Empty for all, or before the choice.
    compacted: whether its history was compacted in this turn.
    flag: the readiness flag of its session that it took when it became live.
    inputs: follow-up input that no step has read yet, oldest first.
    rung_at_ms: when its doorbell was last rung.
    parked_ms: how long it was parked so far.
    max_wait_ms: how long it may wait before it begins, or None for no limit of its own.
    queue_ticket: its last place in a queue for a model's limit, or None.
    hooks_due: calls that no worker ended, whose `on_post_tool_use` has not run yet.
    """

    request: TurnRequest
    state: TurnState
    awaits: Awaits
    now_ms: int
    deadline_ms: int
    created_at_ms: int
    active_at_ms: int
    step: int
    thinking_step: int
    steps_used: int
    steps_max: int
    lost_attempts: int
    cancel: bool
    cancel_reason: str
    begun: bool
    turn_number: int
    write_epoch: int
    succeeded: Mapping[str, int]
    blocked: frozenset[str]
    history: Conversation
    usage: TokenUsage
    cost_usd: float
    open_calls: bool
    lost_reason: str = ""
    opened: bool = False
    opening: Mapping[str, str] = field(default_factory=dict[str, str])
    reflected_step: int = 0
    compaction_tried_at: int = 0
    known: tuple[int, int] = (0, 0)
    shown: frozenset[str] = frozenset()
    inputs: tuple[TurnInput, ...] = ()
    compacted: bool = False
    flag: str = ""
    quarantine_deaths: int = 0
    died_how: str = ""
    rung_at_ms: int = 0
    parked_ms: int = 0
    max_wait_ms: int | None = None
    queue_ticket: QueueTicket | None = None
    hooks_due: tuple[str, ...] = ()

    @property
    def remaining_ms(self) -> int:
        return self.deadline_ms - self.now_ms

    @property
    def own_messages(self) -> tuple[Message, ...]:
        return self.history.of_turn(self.request.turn_id)

    @property
    def failed_calls(self) -> int:
        """The number of calls of the last step that did not succeed."""
        return sum(
            message.is_error for message in self.own_messages if message.role == "tool" and message.step == self.step
        )


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """An ended turn for the finalizer.

    context_hash, prompt_hash: as in RuntimeDecisionRecord.
    opening_failed: maps the tools of opening calls that failed to how the call ended.
    notes: warnings that are known before the result is made, or that it had when it went out.
    problems: maps problems of replies that could not be used to their number.
    wait_ms: how long it was queued before it became active, or was ended.
    context_full: the highest percentage of the context that a step filled, if that is worth a warning, or else 0.
    unsummarised: why rules wrote a summary that a model should have written, or "".
    created_at_ms, ended_at_ms: Redis time in ms.
    pin: the digest of the brain that it is pinned to, or "".
    builds: the builds that advanced it, in order: `BUILD#DIGEST`, with the digest of its brain.
    format: the format of its state in Redis.
    """

    request: TurnRequest
    ending: Ending
    stop_reason: StopReason
    text: str
    error: str
    steps: int
    tool_calls: int
    tools: tuple[str, ...]
    usage: TokenUsage
    cost_usd: float
    cost_known: bool
    sources: tuple[Mapping[str, str], ...]
    context_hash: str
    prompt_hash: str
    turn_number: int
    elapsed_ms: int
    failing_error: str
    notes: tuple[str, ...] = ()
    problems: Mapping[str, int] = field(default_factory=dict[str, int])
    context_full: int = 0
    unsummarised: str = ""
    opening_failed: Mapping[str, str] = field(default_factory=dict[str, str])
    spends: tuple[Spend, ...] = ()
    context_pack_json: str | None = None
    last_agent_message: str | None = None
    diff: str | None = None
    parked_ms: int = 0
    created_at_ms: int = 0
    ended_at_ms: int = 0
    wait_ms: int = 0
    pin: str = ""
    builds: tuple[str, ...] = ()
    format: int = 1


@dataclass(frozen=True, slots=True)
class TurnDetails:
    """The content that SQL keeps of an ended turn beside its answer.

    messages: its conversation.
    trace: the trace of its calls.
    receipts: the outcomes of its inputs, by client_message_id.
    approvals: the states of its approvals, by call.
    outside: the outcomes of changes that were completed from outside, by call: `success`, `failure` or `unknown`.
    """

    messages: tuple[Message, ...] = ()
    trace: tuple[ToolTraceEntry, ...] = ()
    receipts: Mapping[str, str] = field(default_factory=dict[str, str])
    approvals: Mapping[str, ApprovalStatus] = field(default_factory=dict[str, ApprovalStatus])
    outside: Mapping[str, str] = field(default_factory=dict[str, str])

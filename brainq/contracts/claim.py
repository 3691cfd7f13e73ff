"""The rights that workers have after a claim, as plain frozen dataclasses, because they are made on the hot path and
never sent anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from brainq.contracts.budgets import MoneyHold
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import ApprovalRequirement, HoldSpec
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus, TurnState

if TYPE_CHECKING:
    from brainq.contracts.stop import Stop

DropReason = TypeVar("DropReason")
CancelResult = Literal["CANCELLED", "REQUESTED", "LIVE", "ENDED", "GONE"]
SettleResult = Literal["SETTLED", "PARKED", "LATE", "LOST", "ALIVE", "GONE", "EARLY", "USED", "BAD"]


@dataclass(frozen=True, slots=True)
class NoClaim(Generic[DropReason]):
    """The answer to a doorbell that the worker must drop, with the reason (`why`)."""

    why: DropReason


@dataclass(slots=True)
class RunningAttempt:
    """The attempt at a step that runs under a claim.

    spends: a function that returns the cost of its model call if the call ended now. Any thread may call it. None if no
        model is called.
    """

    step: int = 0
    attempt: int = 0
    spends: Callable[[], Sequence[Spend]] | None = None


@dataclass(frozen=True, slots=True)
class TurnClaim:
    """The ownership of a turn for one advance. Every write carries `owner` and `fence`.

    reads: the turn as it was read with the claim. `Turns.look` makes a view of it.
    lost: whether the previous owner stopped beating.
    stops: the stops in force.
    only_ends: whether the turn may only be ended, because its brain is not here, or because another brain began it.
    under_way: the attempt that is written with each beat and each published text. If this worker dies, its model call
        is charged as recorded there.
    """

    session_id: str
    turn_id: str
    owner: str
    fence: int
    now_ms: int
    reads: object = field(default=None, compare=False, repr=False)
    lost: bool = False
    only_ends: bool = False
    under_way: RunningAttempt = field(default_factory=RunningAttempt, compare=False, repr=False)
    stops: tuple[Stop, ...] = field(default=(), compare=False, repr=False)


NoTurnClaim = NoClaim[
    TurnState
    | Literal["gone", "stale", "held", "grace", "suspect", "awaits", "no_brain", "other_build", "other_format"]
]
"""The reasons why a turn cannot be claimed, beside its state.

suspect: it lost its worker too often to run beside other turns.
awaits: it waits for open calls.
no_brain: this worker does not have its brain.
other_build: it is pinned to another brain, or begins on another build.
other_format: this build cannot read its state.
"""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """The first entries of a turn in the history. They are written once.

    messages: the user's message comes last. Before it are the messages that SQL kept of a session whose history Redis
        has dropped.
    prompt_hash: the hash of the system prompt.
    earlier: the number of the session's turns that only SQL still counts.
    """

    messages: tuple[Message, ...]
    prompt_hash: str
    earlier: int = 0


@dataclass(frozen=True, slots=True)
class StepStart:
    """The data with which an attempt at a step begins.

    estimate: the estimated input tokens, which are compared with the bill later.
    most_tokens, max_usd: the worst case of the step in tokens and US dollars. It includes the reply if the reply has a
        limit.
    shown: the names of the tools chosen for this turn. The first choice of a turn stays in force.
    drained: how many of the mailbox's oldest inputs this step consumes.
    inputs: the messages that these inputs become in the history.
    readiness: the readiness that the newest of these inputs sets: `ready`, a hold, or "".
    full: the percentage of the context that the step fills, if that is worth a warning, or else 0.
    turn: the first entries of the turn, if it has not begun.
    lost: the cost of the previous attempt if that broke off, or None if it is unknown.
    money: the money that the step holds against its budgets, or None if no budget applies.
    """

    estimate: int
    most_tokens: int
    max_usd: float | None
    shown: tuple[str, ...] = ()
    drained: int = 0
    inputs: tuple[Message, ...] = ()
    readiness: HoldSpec | str = ""
    full: int = 0
    turn: TurnStart | None = None
    lost: tuple[Spend, ...] | None = None
    money: MoneyHold | None = None

    @property
    def for_retry(self) -> StepStart:
        """The data for the next attempt, without the entries that the first attempt has written."""
        return replace(self, drained=0, inputs=(), readiness="", turn=None)


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """The right to call the model, with the step and the number of the attempt. Both count from 1."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class StepOverBudget:
    """The answer to a step that the turn's budget does not allow. `what` names the limit."""

    what: Literal["steps", "tokens", "cost"]


@dataclass(frozen=True, slots=True)
class CallsOverBudget:
    """The answer to a commit with calls that are over the turn's budget. The other calls are paid for."""

    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn, as its owner records it.

    answer: what enters the session's history, or None.
    marker: a note for the model of the next turn, or None.
    outcome: what the session keeps of a turn with a history of its own, or None.
    open_status, open_text: what becomes of calls that are still open.
    tail: the end of the answer's text, which is not published yet.
    last: the last text of the model, if that is not `text`.
    diff, n_changes: what the turn changed, and how many changes that was made of.
    lost: requests that broke off, or None if nobody knows what became of one that is under way.
    """

    ending: Ending
    stop_reason: StopReason
    text: str
    error: str
    answer: Message | None
    marker: Message | None
    open_status: TraceStatus
    open_text: str
    first_step: str
    spend: Spend | None
    tail: str
    outcome: Message | None = None
    last: str = ""
    diff: str = ""
    n_changes: int = 0
    lost: Sequence[Spend] | None = None


@dataclass(frozen=True, slots=True)
class TurnCleanup:
    """The work left after a turn has ended.

    bounced: inputs that no step has read. They become separate turns.
    children: child turns that nobody waits for any more.
    opened: the first finalizer step, if it was claimed for the thread that ended the turn.
    """

    bounced: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    opened: FinalStepClaim | None = None


@dataclass(frozen=True, slots=True)
class CallClaim:
    """The right to run one attempt of a call.

    cap_ms: the tool's own limit.
    remaining_ms: the time until the turn's deadline, at the claim.
    brain: the brain that the turn names, or "" for the default.
    waited_ms: the time that it spent in its queue before the claim.
    lane_waited_ms: the time that it had waited for its lanes before that.
    traceparent: the W3C trace context of the turn's request.
    """

    session_id: str
    turn_id: str
    call_id: str
    attempt: int
    owner: str
    tool: str
    effect: Effect
    step: int
    arguments: dict[str, Any]
    args_hash: str
    cap_ms: int
    remaining_ms: int
    lanes: tuple[str, ...] = ()
    cwd: str | None = None
    metadata: dict[str, Any] | None = None
    edited: bool = False
    brain: str = ""
    waited_ms: int = 0
    lane_waited_ms: int = 0
    traceparent: str | None = None

    @property
    def ref(self) -> CallRef:
        return CallRef(self.session_id, self.turn_id, self.call_id)

    @property
    def idempotency_key(self) -> str:
        return f"{self.turn_id}:{self.call_id}"


NoCallClaim = NoClaim[
    TraceStatus
    | Literal["gone", "stale", "unserved", "closed", "expired", "held", "stopped"]
    | Literal["no_brain", "other_build", "other_format"]
]
"""The reasons why a call cannot be claimed, beside its status.

unserved: another pool serves the call's effect.
closed: the turn no longer needs it.
held: a hold is in force.
stopped: operators have paused or forbidden it.
no_brain: this worker does not have its turn's brain.
"""


@dataclass(frozen=True, slots=True)
class FinalStepClaim:
    """The right to run one finalizer step once.

    tries: counts from 1.
    revision: counts changes of the text.
    sent: whether the result went out before.
    lost: how many workers took the step before and did not report its end.
    replies: what was read of the turn with the claim. `look` makes the turn of it.
    details: likewise, for `details_of`.
    brain: the brain that the turn names, or "" for the default.
    waited_ms: the time from its doorbell to the claim.
    done_before: later steps that an older build did ahead of a failing one.
    is_job: whether the step runs outside its turn's chain.
    """

    session_id: str
    turn_id: str
    step: str
    owner: str
    fence: int
    tries: int
    revision: int = 0
    sent: bool = False
    lost: int = 0
    replies: list[Any] = field(default_factory=list[Any], compare=False, repr=False)
    details: list[Any] = field(default_factory=list[Any], compare=False, repr=False)
    brain: str = ""
    waited_ms: int = 0
    done_before: frozenset[str] = frozenset()
    is_job: bool = False

    def followed_by(self, step: str, *, fence: int, tries: int, revision: int, sent: bool) -> FinalStepClaim:
        """Return the claim of the step that its owner continues with, including what was read with this one."""
        return FinalStepClaim(
            *(self.session_id, self.turn_id, step, self.owner, fence, tries, revision, sent),
            details=self.details,
            brain=self.brain,
            done_before=self.done_before,
        )

    @property
    def step_key(self) -> str:
        """The idempotency key of this step of this turn for services. It is the same for every try."""
        return f"{self.turn_id}:{self.step}"


Opened = TurnClaim | CallClaim | FinalStepClaim
"""The claim of work that a script has opened, for the thread that ran the script."""


@dataclass(frozen=True, slots=True)
class StayOffer:
    """The offer of a thread to continue with what a script opens.

    queues: a word for each queue that its process serves. `QUEUE:NUMBER`: it may take the queue's work, and this number
        of threads remains free for others. `QUEUE:WHY`: it may not, because the pool is `full` or `paused`.
    owner: the owner of the claim. Every offer has its own.
    """

    queues: tuple[str, ...]
    owner: str


NoFinalStepClaim = NoClaim[Literal["gone", "stale", "held", "later", "no_brain", "other_build", "other_format"]]


@dataclass(frozen=True, slots=True)
class CallRef:
    """The session, turn and id of a call."""

    session_id: str
    turn_id: str
    call_id: str

    @property
    def holder(self) -> str:
        """The call's name in the queues of its lanes."""
        return f"{self.session_id} {self.turn_id} {self.call_id}"

    @classmethod
    def from_holder(cls, holder: str) -> CallRef:
        session_id, turn_id, call_id = holder.split(" ")
        return cls(session_id, turn_id, call_id)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts about a call, and about its newest attempt, that its turn records.

    is_awaited: whether it still waits for a result from outside, so that a result would not be late.
    has_begun: whether the newest attempt of a write was allowed to call its function.
    """

    status: TraceStatus
    tool: str
    effect: Effect
    attempt: int
    idempotent: bool
    step: int
    client_arguments: str | None = None  # the beginning of them, if the client runs it
    is_awaited: bool = True
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class ClientCall:
    """The parameters with which a call of a client's tool is parked. `arguments_json` is published as JSON text."""

    arguments_json: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a reply, as the step's commit records it. `denied` is a gate's reason, or empty."""

    id: str
    tool: str
    effect: Effect
    wave: int
    arguments_json: str
    args_hash: str
    fingerprint: str
    cap_ms: int
    lanes: tuple[str, ...] = ()
    idempotent: bool = False
    repairs: int = 0
    denied: str = ""
    message_json: str = ""
    ask: ApprovalRequirement | None = None
    client: ClientCall | None = None


@dataclass(frozen=True, slots=True)
class SettleReply:
    """The result of recording a call's end: `SETTLED`, `PARKED`, or `LATE` or `LOST` with its status.

    opened: what was opened by that, if it was claimed for the thread that settled the call.
    """

    word: SettleResult
    status: TraceStatus | Literal["gone", ""] = ""
    opened: TurnClaim | CallClaim | None = None

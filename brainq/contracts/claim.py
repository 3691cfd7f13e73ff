"""What a worker holds after a claim. Plain frozen dataclasses: made on the hot path, never sent anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from brainq.contracts.budgets import MoneyHold
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import ApprovalRequirement, HoldSpec
from brainq.contracts.status import Effect, TraceStatus, TurnState

if TYPE_CHECKING:
    from brainq.contracts.stop import Stop

DropReason = TypeVar("DropReason")
CancelResult = Literal["CANCELLED", "REQUESTED", "LIVE", "ENDED", "GONE"]
SettleResult = Literal["SETTLED", "PARKED", "LATE", "LOST", "ALIVE", "GONE", "EARLY", "USED", "BAD"]


@dataclass(frozen=True, slots=True)
class NoClaim(Generic[DropReason]):
    """In place of a claim: the doorbell is to be dropped."""

    why: DropReason


@dataclass(slots=True)
class RunningAttempt:
    """The attempt at a step that is made under a claim.

    spends   reads what its model call has come to, should it end here; any thread may call it. None: no model is asked
    """

    step: int = 0
    attempt: int = 0
    spends: Callable[[], Sequence[Spend]] | None = None


@dataclass(frozen=True, slots=True)
class TurnClaim:
    """The ownership of a turn for one advance. Every write carries `owner` and `fence`.

    reads: the turn as it was read with the claim; `Turns.look` makes a view of it.
    lost: the previous owner stopped beating.
    stops: what operators have stopped.
    only_ends: the turn may only be ended: its brain is not here, or another brain began it.
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
"""`suspect`: the turn lost its worker too often to be worked on beside others; `awaits`: its calls; `no_brain`: this
worker does not have its brain; `other_build`: it is pinned to another brain, or begins elsewhere; `other_format`: this
build does not read its state."""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """What a turn begins with: it enters the history, once.

    messages      the user's is the last; before it what SQL kept of a session whose history Redis has let go
    prompt_hash   of the system prompt
    earlier       turns of the session that only SQL still counts
    """

    messages: tuple[Message, ...]
    prompt_hash: str
    earlier: int = 0


@dataclass(frozen=True, slots=True)
class StepStart:
    """What an attempt at a step is begun with.

    estimate    tokens of its input, as they are compared with the bill later
    most_tokens, max_usd   what the step is thought to take at most, its reply included where that is bounded
    shown       names of the tools chosen for this turn; the first choice remains
    drained     so many of the mailbox's oldest inputs are consumed by this step
    inputs      the messages they become in the history
    readiness   the newest word of theirs about it: `ready`, a hold, or "" for none
    full        how much of the context it fills, in per cent, where that is worth a warning; else 0
    turn        what the turn begins with, if it has not begun
    lost        what the attempt before came to, if that broke off; None: nobody knows
    money       what it holds against its budgets; None if no budget applies
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
        """Another attempt at it: what the first one brought is there."""
        return replace(self, drained=0, inputs=(), readiness="", turn=None)


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """The right to ask the model: the step, and which attempt at it this is. Both count from 1."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class StepOverBudget:
    """In place of it: the budget does not allow the step."""

    what: Literal["steps", "tokens", "cost"]


@dataclass(frozen=True, slots=True)
class CallsOverBudget:
    """In place of a commit: these calls are over the budget. The others are paid for."""

    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnCleanup:
    """What ending a turn left to be done.

    bounced    inputs no step has read: they become turns of their own
    children   child turns nobody waits for any more
    """

    bounced: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallClaim:
    """The right to run one attempt of a call.

    cap_ms         the tool's own limit; remaining_ms: until the turn's deadline, at the claim
    brain          the one that the turn names; "": the default
    waited_ms      in its queue, to the claim; lane_waited_ms: before that, for its lanes
    traceparent    of the turn's request
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
"""`unserved`: another pool serves the call's effect; `closed`: the turn no longer wants it; `held`: a hold is in force;
`stopped`: operators have paused or forbidden it; `no_brain`: this worker does not have its turn's brain."""


@dataclass(frozen=True, slots=True)
class FinalStepClaim:
    """The right to run one finalizer step once. `tries` counts from 1; `revision` counts changes of the text;
    `sent` says that the result went out before; `lost` counts the workers that took the step before and reported no end
    of it. `replies` are what was read of the turn with the claim; `look` makes the turn of it. `details` likewise, for
    `details_of`. `brain` is the one that the turn names; "": the default. `waited_ms`: from its doorbell to the
    claim.

    base      the chain's own step, where this one goes ahead of it; "": this one is it
    past      what went ahead of it so far, as `finalize.step_order.StepHistory` writes it
    failing   why the chain's own step waits: `memory: ValueError`; "" where none was given"""

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
    base: str = ""
    past: str = ""
    failing: str = ""

    def followed_by(self, step: str, *, fence: int, tries: int, revision: int, sent: bool) -> FinalStepClaim:
        """The claim of the step that its owner goes on with. What was read with this one is handed on."""
        return FinalStepClaim(
            *(self.session_id, self.turn_id, step, self.owner, fence, tries, revision, sent),
            details=self.details,
            brain=self.brain,
            past=self.past,
        )

    @property
    def chain_step(self) -> str:
        """The chain's current step."""
        return self.base or self.step

    @property
    def step_key(self) -> str:
        """The same for every try of this step of this turn: give it to services as idempotency key."""
        return f"{self.turn_id}:{self.step}"


NoFinalStepClaim = NoClaim[Literal["gone", "stale", "held", "later", "no_brain", "other_build", "other_format"]]


@dataclass(frozen=True, slots=True)
class CallRef:
    """Where a call lives."""

    session_id: str
    turn_id: str
    call_id: str

    @property
    def holder(self) -> str:
        """The call's name in the lines of its lanes."""
        return f"{self.session_id} {self.turn_id} {self.call_id}"

    @classmethod
    def from_holder(cls, holder: str) -> CallRef:
        session_id, turn_id, call_id = holder.split(" ")
        return cls(session_id, turn_id, call_id)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call as its turn knows it.

    attempt           the newest
    client_arguments  where the client runs it, the beginning of its arguments
    is_awaited        a result from outside would be its own: neither late nor a second one
    """

    status: TraceStatus
    tool: str
    effect: Effect
    attempt: int
    idempotent: bool
    step: int
    client_arguments: str | None = None
    is_awaited: bool = True


@dataclass(frozen=True, slots=True)
class ClientCall:
    """How a call of a client's tool parks: `arguments_json` is published, a text of JSON."""

    arguments_json: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a reply as the step's commit records it. `denied` is a gate's reason, or empty."""

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
    """What recording a call's end did: `SETTLED`, `PARKED`, `LATE` or `LOST`; after the last two its status."""

    word: SettleResult
    status: TraceStatus | Literal["gone", ""] = ""

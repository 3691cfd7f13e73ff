"""Turns, calls and sessions for readers, in lists and one by one: from Redis while a turn lives, and from SQL later."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast, get_args

from brainq.contracts.base import OfTurn, Wire
from brainq.contracts.evaluation import Strategy
from brainq.contracts.message import Attachment
from brainq.contracts.status import Awaits, Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import ParentCall, TurnKind

LIVE_TURN_STATES = ("queued", "active", "parked", "closing")
LIST_STATES = (*LIVE_TURN_STATES, "accepted", "ended", "rejected")
"""The states by which lists can be filtered. `accepted` is any turn that has not ended."""
Sort = Literal["newest", "oldest", "cost", "tokens"]
SORTS: tuple[Sort, ...] = get_args(Sort)
"""The orders of lists. By cost and by tokens, only ended turns are listed, the highest first."""
MAX_SEARCHED_TURNS = 20_000
"""How many of the newest turns up to `until` a search reads."""


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """A turn that waits for the live one. `place` 1 is next; `created_at` is when it was accepted."""

    turn_id: str
    place: int
    created_at: datetime


class HistoryTurn(OfTurn):
    """One turn of a session.

    state: as `brainq list` shows it: queued, active, parked, closing, or the ending; `accepted` if only SQL knows the
        turn yet.
    brain: the brain that the turn names, or None in a deployment with one brain.
    greeting: the assistant's first message, if this is the session's first turn.
    user_message: the user's message.
    attachments: images and files of the user's message.
    text: the answer, or the model's newest text while the turn is live.
    calls: how many calls it made, or 0 before it has ended.
    is_kept: False if the brain keeps content out of SQL (`redact_logs`). Both texts are then empty.
    """

    kind: TurnKind = "chat"
    state: str
    stop_reason: StopReason | None = None
    greeting: str = ""
    user_message: str = ""
    attachments: tuple[Attachment, ...] = ()
    text: str = ""
    is_kept: bool = True
    accepted_at: datetime
    ended_at: datetime | None = None
    brain: str | None = None
    calls: int = 0


class TurnCall(Wire):
    """One call of a turn, with its arguments and its result. Times are Redis time in ms; 0 means not yet.

    id: unique over all turns: `TURN-CALL`. `call_id` is unique in its turn.
    step: the model call that made it. 0 means that the runtime did, before the first step (memory, the context pack).
    attempt: how often it was dispatched, including after lost workers.
    arguments: as the model wrote them: an object, or text that is not an object. None if they are not kept.
    result: the text that the model reads. None if there is none yet, or if it is not kept.
    attachments: images and files of the result.
    is_error: whether the model gets it as an error.
    repairs: the attempts to repair its arguments.
    detail: the reason for its status, in a word or two.
    park: what a parked call waits for: approval, hold, outside, child or client. Empty for any other call.
    is_kept: False if `arguments` and `result` are no longer kept (`redact_logs`), or never were (step 0).
    """

    id: str
    session_id: str
    turn_id: str
    call_id: str
    tool: str
    effect: Effect
    status: TraceStatus
    step: int
    wave: int
    attempt: int = 1
    arguments: dict[str, Any] | str | None = None
    result: str | None = None
    attachments: tuple[Attachment, ...] = ()
    is_error: bool = False
    is_kept: bool = True
    dispatched_at_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int = 0
    latency_ms: int = 0
    repairs: int = 0
    retryable: bool = False
    detail: str = ""
    park: str = ""


def metadata_pairs(value: object, path: str = "") -> Iterator[str]:
    """Yield each value of metadata with its name, as text: `customer=42`, `order.id=A-1`. The items of a list are
    separate values."""
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, object]", value).items():
            yield from metadata_pairs(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from metadata_pairs(inner, path)
    elif path:
        yield f"{path}={value if isinstance(value, str) else json.dumps(value)}"


class ListedTurn(OfTurn):
    """A turn in a list.

    state: queued, active, parked or closing; `accepted` if Redis does not know it yet; `rejected`; or the ending.
    brain: the brain that the turn names, or None in a deployment with one brain.
    note: what happens next while it is open, and why it stopped afterwards.
    message: the beginning of the user's message, or "" if content is not kept.
    awaits: who must act next, while it is open.
    steps, calls: their number so far. `calls` counts those that were paid for.
    failed_calls: calls so far that failed, timed out, or are unknown.
    unknown_calls: writes that may or may not have happened.
    dead_steps: finalizer steps that were given up.
    cost_usd: None if the price of the model is unknown.
    parent: the call that started it, if it is a child turn.
    """

    request_key: str
    kind: TurnKind = "chat"
    brain: str | None = None
    state: str
    ending: Ending | None = None
    stop_reason: StopReason | None = None
    note: str = ""
    message: str = ""
    awaits: Awaits | None = None
    accepted_at: datetime
    ended_at: datetime | None = None
    steps: int = 0
    calls: int = 0
    failed_calls: int = 0
    unknown_calls: int = 0
    dead_steps: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    parent: ParentCall | None = None


class StartedTurn(OfTurn):
    """A turn that a call started (`ChildTurn`). `state` is `accepted` until it has ended, or was refused."""

    call_id: str
    state: str


class ListedSession(Wire):
    """A session in a list.

    last_turn: the turn that was accepted last.
    live: the turn that runs now, parked or not.
    waiting: how many turns wait for it.
    turns: how many were accepted, including those that were pruned.
    flags: readiness flags that no turn has taken yet.
    """

    session_id: str
    last_turn: ListedTurn
    turns: int
    live: str | None = None
    waiting: int = 0
    is_paused: bool = False
    flags: int = 0


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """The filter of a list of turns; see `Client.turns`.

    `sessions` are prefixes. Times are UTC. `metadata` are pairs as `metadata_pairs` makes them.
    """

    session: str | None = None
    brain: str | None = None
    sessions: tuple[str, ...] | None = None
    state: str | None = None
    ending: Ending | None = None
    stop_reason: StopReason | None = None
    failing: bool = False
    unknown: bool = False
    min_cost_usd: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    strategy: Strategy | None = None
    search: str = ""
    sort: Sort = "newest"
    metadata: tuple[str, ...] = ()
    prompt_tags: tuple[str, ...] = ()

    @property
    def needs_content(self) -> bool:
        """Whether the content of turns must be read, because SQL alone finds turns that do not match."""
        return bool(self.search or self.metadata or self.prompt_tags)

    @property
    def has_live(self) -> bool:
        """Whether turns that have not ended can match."""
        return (
            self.state in (None, "accepted", *LIVE_TURN_STATES)
            and self.ending is None
            and self.stop_reason is None
            and self.strategy is None
            and self.sort not in ("cost", "tokens")
        )

    @property
    def has_ended(self) -> bool:
        """Whether turns that have ended, or were refused, can match."""
        return self.state in (None, "ended", "rejected")

    @property
    def needs_redis(self) -> bool:
        """Whether only Redis knows which of the turns that have not ended match."""
        return self.state in LIVE_TURN_STATES or self.failing or self.unknown or self.min_cost_usd is not None

    def fits(self, turn: ListedTurn) -> bool:
        """Return whether a turn that has not ended matches, by the facts that only Redis has."""
        return (
            (self.state not in LIVE_TURN_STATES or turn.state == self.state)
            and (not self.failing or turn.failed_calls + turn.dead_steps > 0)
            and (not self.unknown or turn.unknown_calls > 0)
            and (self.min_cost_usd is None or (turn.cost_usd or 0.0) >= self.min_cost_usd)
        )

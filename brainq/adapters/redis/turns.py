"""Turns in Redis: submit, claim, look, end, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

from pydantic import TypeAdapter

from brainq.adapters.redis.conversations import Conversations
from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.adapters.redis.turn_steps import TurnSteps
from brainq.adapters.redis.turn_view import ViewReplies, read_step_text, read_view, view_reads
from brainq.contracts.build import WorkerBuild
from brainq.contracts.call import DueHook, ToolOutcome
from brainq.contracts.claim import CancelResult, NoClaim, NoTurnClaim, TurnClaim, TurnCleanup
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import NOTHING_TO_RESTORE, RestoredState, SubmitWord
from brainq.contracts.rate import QueueTicket
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.stop import read_stops
from brainq.contracts.turn import Limits, TurnRequest
from brainq.contracts.view import TurnView

MAX_REASON_CHARS = 500  # of a cancel
MAX_LOST_WORKERS = 2  # a turn that lost so many workers since it last went on is worked on alone

_OUTCOME: TypeAdapter[Any] = TypeAdapter(ToolOutcome)


class _Go(NamedTuple):
    """A turn_claim's GO."""

    fence: int
    now_ms: int
    lost: bool
    stops: str
    only_ends: bool


def _submitted(word: SubmitWord, *fields: Any) -> tuple[SubmitWord, str, tuple[str, ...]]:
    return word, str(fields[0]) if fields else "", fields[1] if word == "QUEUED" else ()


def _ended(_: str, bounced: tuple[str, ...], children: tuple[str, ...]) -> TurnCleanup:
    return TurnCleanup(bounced, children)


class RedisTurns(TurnSteps):
    """The operations on turns in one Redis, each one script."""

    def __init__(
        self,
        scripts: Scripts,
        *,
        lease_s: float,
        keep_session_s: float,
        grace_s: float = 2.0,
        first_step: str = "log",
        build: WorkerBuild | None = None,
        in_cells: bool = False,
    ) -> None:
        """`build`: what this process is when it claims; None: one without brains but the default. `in_cells`: a tenant
        may be in another cell."""
        super().__init__(scripts)
        self._owned = scripts.patient(lease_s)
        self._client = scripts.client
        self._conversations = Conversations(scripts.client)
        self._lease_ms = self._after_ms = int(lease_s * 1000)
        self._keep_session_ms = int(keep_session_s * 1000)
        self._grace_ms = int(grace_s * 1000)
        self._first_step = first_step
        self._build = build or WorkerBuild.of_names()
        self._in_cells = in_cells

    @script("turn_submit", max_children=Parameter("children"), others=_submitted)
    def submit(
        self,
        request: TurnRequest,
        limits: Limits,
        *,
        lost_reason: str = "",
        children: int = 0,
        kept: RestoredState = NOTHING_TO_RESTORE,
        stop_fields: Sequence[str] = (),
    ) -> tuple[SubmitWord, str, tuple[str, ...]]:
        """Queue an accepted turn. Returns a word, its detail, and the turns that this one interrupts.

        The words are `ACTIVE`, `QUEUED` (how many are ahead), `EXISTS` (the turn's state), `BUSY` (the live turn),
        `FORBIDDEN` (the stop, as JSON) and `UNSERVED` (the build that the session waits for). A turn of a tenant that
        is in another cell is not queued: `MOVED` (the cell), or `MOVING` while the tenant moves.

        children      how many child turns the turn may start
        kept          what SQL keeps of the turn that Redis may have lost
        stop_fields   the stops that may forbid the turn
        """
        ...

    @script_call("turn_claim", patient=True, GO=_Go, DROP=NoClaim)
    def _claim(
        self, session_id: str, turn_id: str, fence: int, owner: str, most_lost: int
    ) -> ScriptCall[_Go | NoTurnClaim]: ...

    def claim(
        self, session_id: str, turn_id: str, fence: int, owner: str, max_lost: int = MAX_LOST_WORKERS
    ) -> TurnClaim | NoTurnClaim:
        """The turn's ownership, or why the doorbell is dropped: `suspect` when it lost its worker `max_lost` times.

        What `look` needs is read in the same round trip.
        """
        known = self._conversations.known(self._keys.of_session(session_id, "history"))
        claim = self._claim(session_id, turn_id, fence, owner, max_lost)
        reply, replies = claim.with_reads(view_reads(self._keys, session_id, turn_id, known))
        if isinstance(reply, NoClaim):
            return reply
        return TurnClaim(
            session_id,
            turn_id,
            owner,
            reply.fence,
            reply.now_ms,
            ViewReplies(known, replies),
            reply.lost,
            reply.only_ends,
            stops=read_stops(reply.stops) if reply.stops else (),
        )

    @script("turn_beat")
    def beat(self, claim: TurnClaim) -> Literal["OK", "CANCEL", "LOST"]:
        """Renew the lease, and keep what the running model call has come to."""
        ...

    @script("turn_release")
    def release(self, claim: TurnClaim) -> Literal["RELEASED", "CLEARED", "GONE"]:
        """Give the turn up although this advance did nothing. `CLEARED`: it no longer counts as a lost worker."""
        ...

    @script("turn_wait", after_ms=Parameter("ring_s"), queue_position=Parameter("ticket"))
    def wait_for_permit(
        self,
        claim: TurnClaim,
        ring_s: float,
        wait_s: float,
        why: str,
        ticket: QueueTicket | None,
        lost: Sequence[Spend] = (),
        stop: str = "",
    ) -> Literal["WAITS", "LOST"]:
        """Give the turn up until its model can be called. `wait_s` and `why` are published. If the turn has no reply
        yet, its time begins then.

        ring_s   the turn is rung after this time
        ticket   the place in the model's queue
        lost     requests to other models that broke off before
        stop     the turn is also rung when this stop is lifted
        """
        ...

    @script("turn_blame", BLAMED="BLAMED")
    def _blame(
        self, session_id: str, turn_id: str, process: str, how: str, among: int
    ) -> Literal["BLAMED", "GONE"]: ...

    def blame(self, session_id: str, turn_id: str, process: str, how: str, among: int = 1) -> Literal["BLAMED", "GONE"]:
        """The process of this name worked on the turn in quarantine, and died with `among` turns in it: `BLAMED`, or
        `GONE` when it held it no more."""
        return self._blame(session_id, turn_id, f"@{process}", how, among)

    def died_among(self, session_id: str, turn_id: str) -> int:
        """With how many turns in it the last process died that worked on the turn in quarantine; 0: none did."""
        found = self._client.hget(self._keys.turn(session_id, turn_id), "died_among")
        return int(cast("str | None", found) or 0)

    @script("quarantine_wait")
    def wait_in_quarantine(self, session_id: str, turn_id: str, fence: int) -> Literal["WAITS", "GONE"]:
        """For the next lease the turn waits for a place in quarantine, and its deadline does not run. `GONE`: it need
        not wait any more."""
        ...

    def owner(self, session_id: str, turn_id: str) -> str:
        """Who holds the turn; "" when nobody does."""
        return cast("str | None", self._client.hget(self._keys.turn(session_id, turn_id), "owner")) or ""

    def pinned_to(self, session_id: str, turn_id: str) -> str:
        """The build whose brain the turn is pinned to; "" where it is not."""
        return cast("str | None", self._client.hget(self._keys.turn(session_id, turn_id), "pin_build")) or ""

    def look(self, claim: TurnClaim) -> TurnView:
        """What the owner needs to decide and to prepare, as it was right after the claim. Once a claim."""
        assert isinstance(claim.reads, ViewReplies)
        return read_view(self._client, self._keys, self._conversations, claim, claim.reads)

    def parked_calls(self, claim: TurnClaim, step: int) -> tuple[tuple[str, int], ...]:
        """Those of a step's calls that waited for somebody: id and newest attempt."""
        key = self._keys.named("trace", claim.session_id, claim.turn_id)
        fields = cast("dict[str, str]", self._client.hgetall(key))
        calls = [name.removesuffix(":park") for name in fields if name.endswith(":park")]
        return tuple((call, int(fields[f"{call}:attempt"])) for call in calls if call.startswith(f"c{step}-"))

    def due_hooks(self, claim: TurnClaim, calls: Sequence[str]) -> tuple[DueHook, ...]:
        """What the brain's hook is to hear of those of these calls of which it has not heard."""
        key = self._keys.named("trace", claim.session_id, claim.turn_id)
        fields = [f"{call}:{part}" for call in calls for part in ("tool", "hook")]
        found = cast("list[str | None]", self._client.hmget(key, fields))
        return tuple(
            _read_due_hook(call, str(tool), hook)
            for call, tool, hook in zip(calls, found[::2], found[1::2], strict=True)
            if hook
        )

    @script("hooks_done")
    def hooks_done(self, claim: TurnClaim, calls: Sequence[str]) -> Literal["DONE", "LOST"]:
        """Note that the brain's hook was called with these calls."""
        ...

    def text_so_far(self, claim: TurnClaim) -> str:
        """The published text of the reply that was being written; "" when none was."""
        return read_step_text(self._client, self._keys, claim.session_id, claim.turn_id)

    def changes(self, claim: TurnClaim) -> list[dict[str, str]]:
        """What the turn's calls changed, in the order they ended."""
        key = self._keys.named("changes", claim.session_id, claim.turn_id)
        return [json.loads(row) for row in cast(list[str], self._client.lrange(key, 0, -1))]

    @script("turn_end", failure=Parameter("error"), item=Parameter("answer"), ENDED=_ended)
    def end(
        self,
        claim: TurnClaim,
        *,
        ending: Ending,
        stop_reason: StopReason,
        text: str,
        error: str,
        answer: Message | None,
        marker: Message | None,
        outcome: Message | None = None,
        open_status: TraceStatus,
        open_text: str,
        first_step: str,
        spend: Spend | None,
        tail: str,
        last: str = "",
        diff: str = "",
        n_changes: int = 0,
        lost: Sequence[Spend] | None = None,
    ) -> TurnCleanup | Literal["MORE", "CHANGED", "LOST"]:
        """End the turn. `MORE`: input came, and another step may read it; `CHANGED`: the diff lacks changes; `LOST`.

        lost   requests that broke off; None: nobody knows what became of one that is under way
        """
        ...

    @script("turn_waited", ENDED=True, NONE=False)
    def end_wait(self, session_id: str, turn_id: str, text: str) -> bool:
        """End a turn that waited longer than it may. Returns False if it may still wait, or has begun."""
        ...

    @script("turn_cancel", ENDED="ENDED")
    def _cancel(self, session_id: str, turn_id: str, reason: str, *, queued_only: bool) -> CancelResult: ...

    def cancel(self, session_id: str, turn_id: str, reason: str, *, queued_only: bool = False) -> CancelResult:
        """Cancel a turn: `CANCELLED`, `REQUESTED`, `ENDED`, `GONE`, or `LIVE` if `queued_only` spared a live turn."""
        return self._cancel(session_id, turn_id, reason[:MAX_REASON_CHARS], queued_only=queued_only)


def _read_due_hook(call: str, tool: str, hook: str) -> DueHook:
    outcome, _, spec = hook.partition("\n")
    return DueHook(call, tool, json.loads(spec)["arguments"], _OUTCOME.validate_json(outcome))

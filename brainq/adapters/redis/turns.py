"""Turns in Redis: submit, claim, look, end, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

from brainq.adapters.redis.conversations import Conversations
from brainq.adapters.redis.opened import OpenedWork, StayRequest, unless_claimed
from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.adapters.redis.turn_steps import TurnSteps
from brainq.adapters.redis.turn_view import ViewReplies, read_step_text, read_view, view_reads
from brainq.contracts.build import WorkerBuild
from brainq.contracts.call import DueHook
from brainq.contracts.claim import CancelResult, NoClaim, NoTurnClaim, StayOffer, TurnClaim, TurnCleanup, TurnEnd
from brainq.contracts.model import Spend
from brainq.contracts.people import NOTHING_TO_RESTORE, RestoredState, SubmitWord
from brainq.contracts.rate import QueueTicket
from brainq.contracts.rows import read_outcome
from brainq.contracts.stop import read_stops
from brainq.contracts.turn import Limits, TurnRequest
from brainq.contracts.view import TurnView

MAX_REASON_CHARS = 500  # of a cancel
MAX_LOST_WORKERS = 2  # A turn that lost this many workers without progress is worked on in quarantine.


class _Go(NamedTuple):
    """The reply GO of turn_claim."""

    fence: int
    now_ms: int
    lost: bool
    stops: str
    only_ends: bool


class _Final(NamedTuple):
    """A turn_end's FINAL. `found` is what was read of the turn, then its messages."""

    next_turn: str
    bounced: tuple[str, ...]
    children: tuple[str, ...]
    brain: str
    found: tuple[Any, ...]


def _submitted(word: SubmitWord, *fields: Any) -> tuple[SubmitWord, str, tuple[str, ...]]:
    return word, str(fields[0]) if fields else "", fields[1] if word == "QUEUED" else ()


def _ended(_: str, bounced: tuple[str, ...], children: tuple[str, ...], declined: tuple[str, ...]) -> TurnCleanup:
    return unless_claimed(TurnCleanup(bounced, children))(declined)


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
        """Store the operations' settings.

        build      the brains and the build of this process; None for a process that has only the default brain
        in_cells   True if a tenant may be in another cell
        """
        self._lease_ms = self._after_ms = int(lease_s * 1000)
        self._build = build or WorkerBuild.of_names()
        self._conversations = Conversations(scripts.client)
        super().__init__(scripts, OpenedWork(scripts.keys, self._conversations, self._build, self._lease_ms))
        self._owned = scripts.patient(lease_s)
        self._client = scripts.client
        self._keep_session_ms = int(keep_session_s * 1000)
        self._grace_ms = int(grace_s * 1000)
        self._first_step = first_step
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
        """Return the claim of the turn's ownership, or the reason why the doorbell is dropped.

        The reason is `suspect` if the turn lost its worker `max_lost` times.

        The same round trip reads the data for `look`.
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
        """Renew the lease, and store the current charge of the running model call."""
        ...

    @script("turn_release")
    def release(self, claim: TurnClaim) -> Literal["RELEASED", "CLEARED", "GONE"]:
        """Give up the turn although this advance did nothing. `CLEARED` means that the advance no longer counts as a
        lost worker."""
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
        """Give up the turn until its model can be called.

        `wait_s` and `why` are published. If the turn has no reply yet, its time begins only then.

        ring_s   the seconds after which the turn is rung
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
        """Record that the process of this name died while it worked on the turn in quarantine, with `among` turns in
        it. Returns `BLAMED`, or `GONE` if it no longer held the turn."""
        return self._blame(session_id, turn_id, f"@{process}", how, among)

    def died_among(self, session_id: str, turn_id: str) -> int:
        """Return how many turns were in the last process that died while it worked on the turn in quarantine, or 0 if
        none died."""
        found = self._client.hget(self._keys.turn(session_id, turn_id), "died_among")
        return int(cast("str | None", found) or 0)

    @script("quarantine_wait")
    def wait_in_quarantine(self, session_id: str, turn_id: str, fence: int) -> Literal["WAITS", "GONE"]:
        """Pause the turn's deadline for the next lease, because it waits for a place in quarantine. `GONE` means that
        it need not wait any more."""
        ...

    def owner(self, session_id: str, turn_id: str) -> str:
        """Return the owner of the turn, or ""."""
        return cast("str | None", self._client.hget(self._keys.turn(session_id, turn_id), "owner")) or ""

    def pinned_to(self, session_id: str, turn_id: str) -> str:
        """Return the build whose brain the turn is pinned to, or "" if it is not pinned."""
        return cast("str | None", self._client.hget(self._keys.turn(session_id, turn_id), "pin_build")) or ""

    def look(self, claim: TurnClaim) -> TurnView:
        """Return the data with which the owner decides and prepares, as it was directly after the claim. Call it once
        per claim."""
        assert isinstance(claim.reads, ViewReplies)
        return read_view(self._client, self._keys, self._conversations, claim, claim.reads)

    def parked_calls(self, claim: TurnClaim, step: int) -> tuple[tuple[str, int], ...]:
        """Return the id and the newest attempt of those calls of a step that waited for input from outside."""
        key = self._keys.named("trace", claim.session_id, claim.turn_id)
        fields = cast("dict[str, str]", self._client.hgetall(key))
        calls = [name.removesuffix(":park") for name in fields if name.endswith(":park")]
        return tuple((call, int(fields[f"{call}:attempt"])) for call in calls if call.startswith(f"c{step}-"))

    def due_hooks(self, claim: TurnClaim, calls: Sequence[str]) -> tuple[DueHook, ...]:
        """Return those of these calls that were not yet reported to the brain's hook."""
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
        """Record that the brain's hook was called with these calls."""
        ...

    def text_so_far(self, claim: TurnClaim) -> str:
        """Return the published text of the interrupted reply, or "" if there is none."""
        return read_step_text(self._client, self._keys, claim.session_id, claim.turn_id)

    def changes(self, claim: TurnClaim) -> list[dict[str, str]]:
        """Return the changes by the turn's calls, in the order in which the calls ended."""
        key = self._keys.named("changes", claim.session_id, claim.turn_id)
        return [json.loads(row) for row in cast(list[str], self._client.lrange(key, 0, -1))]

    def end(
        self, claim: TurnClaim, end: TurnEnd, offer: StayOffer | None = None
    ) -> TurnCleanup | Literal["MORE", "CHANGED", "LOST"]:
        """End the turn.

        `MORE` means that input came, and another step may read it; `CHANGED` that the diff lacks changes; `LOST` that
        the turn was lost.

        offer   the thread continues with the finalizer's first step
        """
        stay = self.opened.after_end(offer, claim.session_id, claim.turn_id)
        ended = self._end(claim, end, stay)
        if not isinstance(ended, _Final):
            return ended
        first = self.opened.first_step(stay, claim.session_id, claim.turn_id, end.first_step, ended.brain, ended.found)
        return TurnCleanup(ended.bounced, ended.children, first)

    @script("turn_end", ENDED=_ended, FINAL=_Final)
    def _end(
        self, claim: TurnClaim, end: TurnEnd, stay: StayRequest
    ) -> TurnCleanup | _Final | Literal["MORE", "CHANGED", "LOST"]: ...

    @script("turn_waited", ENDED=True, NONE=False)
    def end_wait(self, session_id: str, turn_id: str, text: str) -> bool:
        """End a turn that has waited longer than its limit. Returns False if it may still wait, or has begun."""
        ...

    @script("turn_cancel", ENDED="ENDED")
    def _cancel(self, session_id: str, turn_id: str, reason: str, *, queued_only: bool) -> CancelResult: ...

    def cancel(self, session_id: str, turn_id: str, reason: str, *, queued_only: bool = False) -> CancelResult:
        """Cancel a turn: `CANCELLED`, `REQUESTED`, `ENDED`, `GONE`, or `LIVE` if `queued_only` spared a live turn."""
        return self._cancel(session_id, turn_id, reason[:MAX_REASON_CHARS], queued_only=queued_only)


def _read_due_hook(call: str, tool: str, hook: str) -> DueHook:
    outcome, _, spec = hook.partition("\n")
    return DueHook(call, tool, json.loads(spec)["arguments"], read_outcome(outcome))

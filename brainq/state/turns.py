"""Turns in Redis: submit, claim, look, end, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from pydantic import TypeAdapter

from brainq.contracts.build import WorkerBuild
from brainq.contracts.call import DueHook, ToolOutcome
from brainq.contracts.cell import tenant_key
from brainq.contracts.claim import CancelResult, NoClaim, NoTurnClaim, TurnClaim, TurnCleanup
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import NOTHING_TO_RESTORE, RestoredState, SubmitWord
from brainq.contracts.rate import QueueTicket
from brainq.contracts.status import Ending, StopReason, TraceStatus
from brainq.contracts.stop import read_stops
from brainq.contracts.turn import Limits, TurnRequest
from brainq.contracts.view import TurnView
from brainq.observe.tracing import traceparent_of, turn_context
from brainq.state.conversations import Conversations
from brainq.state.script_values import (
    as_json,
    json_or_none,
    readiness_argument,
    readiness_at_submit,
    restored_state_json,
    running_attempt_argument,
    spends_json,
    usage_arguments,
)
from brainq.state.turn_steps import TurnSteps
from brainq.state.turn_view import ViewReplies, read_step_text, read_view, view_reads
from brainq.state.typed_scripts import (
    Scripts,
    TurnCancelEnded,
    TurnClaimDrop,
    TurnEndEnded,
    TurnSubmitBusy,
    TurnSubmitExists,
    TurnSubmitForbidden,
    TurnSubmitMoved,
    TurnSubmitQueued,
    TurnSubmitUnserved,
)

MAX_REASON_CHARS = 500  # of a cancel
MAX_LOST_WORKERS = 2  # a turn that lost so many workers since it last went on is worked on alone

_OUTCOME: TypeAdapter[Any] = TypeAdapter(ToolOutcome)


class RedisTurns(TurnSteps):
    """The turn operations over one Redis, each one script. Fits `ports.redis_turns.Turns`."""

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
        self._lease_ms = int(lease_s * 1000)
        self._keep_session_ms = int(keep_session_s * 1000)
        self._grace_ms = int(grace_s * 1000)
        self._first_step = first_step
        self._build = build or WorkerBuild.of_names()
        self._in_cells = in_cells

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
        """Queue an accepted turn: `ACTIVE`, `QUEUED` (and how many are ahead), `EXISTS` (and its state), `BUSY` (and
        the live turn), `FORBIDDEN` (and the stop, as JSON), or `UNSERVED` (and the build that its session waits for);
        and the turns that it stopped. Where its tenant is in another cell nothing is queued: `MOVED` (and the cell), or
        `MOVING` while it is about to move.

        children   how many child turns it may start
        kept       what SQL knows of it that Redis may have lost
        stop_fields   the stops that may forbid it
        """
        sid, tid = request.session_id, request.turn_id
        parent = request.parent
        reply = self._scripts.turn_submit(
            sid,
            tid,
            spec_json=as_json(request),
            turn_kind=request.kind,
            isolated=request.kind == "review",
            brain=request.brain or "",
            parent=f"{parent.session_id} {parent.turn_id} {parent.call_id}" if parent else "",
            mode=request.on_busy,
            priority=request.priority,
            readiness_word=readiness_argument(readiness_at_submit(request.readiness, request.key)),
            first_step=self._first_step,
            timeout_ms=int(limits.timeout_s * 1000),
            max_wait_ms=None if limits.max_wait_s is None else int(limits.max_wait_s * 1000),
            max_steps=limits.max_steps,
            max_tool_calls=limits.tool_calls,
            max_reflections=limits.max_reflections,
            max_context_tokens=limits.max_context_tokens,
            max_total_tokens=limits.max_total_tokens,
            max_cost_usd=limits.max_cost_usd,
            max_children=children,
            lost_reason=lost_reason,
            kept=restored_state_json(kept),
            trace=_trace_parent(request),
            cell_tenant=tenant_key(sid) if self._in_cells else "",
            stop_fields=stop_fields,
        ).run()
        match reply:
            case TurnSubmitQueued():
                return "QUEUED", str(reply.ahead), reply.stopped
            case TurnSubmitExists():
                return "EXISTS", reply.state, ()
            case TurnSubmitBusy():
                return "BUSY", reply.live, ()
            case TurnSubmitForbidden():
                return "FORBIDDEN", reply.stop, ()
            case TurnSubmitMoved():
                return "MOVED", reply.cell, ()
            case TurnSubmitUnserved():
                return "UNSERVED", reply.build, ()
            case "ACTIVE" | "MOVING":
                return reply, "", ()

    def claim(
        self, session_id: str, turn_id: str, fence: int, owner: str, max_lost: int = MAX_LOST_WORKERS
    ) -> TurnClaim | NoTurnClaim:
        """The turn's ownership, or why the doorbell is dropped: `suspect` when it lost its worker `max_lost` times.

        What `look` needs is read in the same round trip.
        """
        known = self._conversations.known(self._keys.of_session(session_id, "history"))
        reply, replies = self._owned.turn_claim(
            session_id,
            turn_id,
            owner=owner,
            fence=fence,
            lease_ms=self._lease_ms,
            grace_ms=self._grace_ms,
            most_lost=max_lost,
            brains=self._build.words,
            declared=self._build.declared,
        ).with_reads(view_reads(self._keys, session_id, turn_id, known))
        if isinstance(reply, TurnClaimDrop):
            return NoClaim(reply.why)
        reads = ViewReplies(known, replies)
        claim = TurnClaim(session_id, turn_id, owner, reply.fence, reply.now, reads, reply.lost, reply.only_ends)
        return replace(claim, stops=read_stops(reply.stops)) if reply.stops else claim

    def beat(self, claim: TurnClaim) -> Literal["OK", "CANCEL", "LOST"]:
        return self._scripts.turn_beat(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            lease_ms=self._lease_ms,
            under_way=running_attempt_argument(claim),
        ).run()

    def release(self, claim: TurnClaim) -> Literal["RELEASED", "CLEARED", "GONE"]:
        """Let the turn go, though nothing came of this advance: `RELEASED`, or `CLEARED` of having lost its worker."""
        return self._scripts.turn_release(claim.session_id, claim.turn_id, owner=claim.owner, fence=claim.fence).run()

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
        """Let the turn go until its model may be asked: it is rung in `ring_s`; `wait_s` and `why` are published.
        Without a reply so far its time begins then. `ticket`: what it waits with. `lost`: requests to
        other models that broke off before. `stop`: it is rung when this is lifted, if that is sooner."""
        return self._scripts.turn_wait(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            after_ms=int(ring_s * 1000),
            wait_ms=int(wait_s * 1000),
            why=why,
            queue_position=str(ticket or ""),
            lost=spends_json(lost),
            stop=stop,
        ).run()

    def blame(self, session_id: str, turn_id: str, process: str, how: str, among: int = 1) -> Literal["BLAMED", "GONE"]:
        """The process of this name worked on the turn in quarantine, and died with `among` turns in it: `BLAMED`, or
        `GONE` when it held it no more."""
        reply = self._scripts.turn_blame(session_id, turn_id, process=f"@{process}", how=how, among=among).run()
        return "GONE" if reply == "GONE" else "BLAMED"

    def died_among(self, session_id: str, turn_id: str) -> int:
        """With how many turns in it the last process died that worked on the turn in quarantine; 0: none did."""
        found = self._client.hget(self._keys.turn(session_id, turn_id), "died_among")
        return int(cast("str | None", found) or 0)

    def wait_in_quarantine(self, session_id: str, turn_id: str, fence: int) -> Literal["WAITS", "GONE"]:
        """For the next lease the turn waits for a place in quarantine, and its deadline does not run. `GONE`: it need
        not wait any more."""
        return self._scripts.quarantine_wait(session_id, turn_id, fence=fence, after_ms=self._lease_ms).run()

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

    def hooks_done(self, claim: TurnClaim, calls: Sequence[str]) -> Literal["DONE", "LOST"]:
        """The hook has heard of these calls."""
        return self._scripts.hooks_done(
            claim.session_id, claim.turn_id, owner=claim.owner, fence=claim.fence, calls=calls
        ).run()

    def text_so_far(self, claim: TurnClaim) -> str:
        """The published text of the reply that was being written; "" when none was."""
        return read_step_text(self._client, self._keys, claim.session_id, claim.turn_id)

    def changes(self, claim: TurnClaim) -> list[dict[str, str]]:
        """What the turn's calls changed, in the order they ended."""
        key = self._keys.named("changes", claim.session_id, claim.turn_id)
        return [json.loads(row) for row in cast(list[str], self._client.lrange(key, 0, -1))]

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
        sid = claim.session_id
        reply = self._scripts.turn_end(
            sid,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            ending=ending,
            stop_reason=stop_reason,
            text=text,
            failure=error,
            item=json_or_none(answer),
            marker=json_or_none(marker),
            outcome=json_or_none(outcome),
            open_status=open_status,
            open_text=open_text,
            first_step=first_step,
            tail=tail,
            last=last,
            diff=diff,
            n_changes=n_changes,
            lost=spends_json(lost),
            **usage_arguments(spend),
            keep_session_ms=self._keep_session_ms,
        ).run()
        if isinstance(reply, TurnEndEnded):
            return TurnCleanup(reply.bounced, reply.children)
        return reply

    def end_wait(self, session_id: str, turn_id: str, text: str) -> bool:
        """End a turn that waited for longer than it may; False when it may wait still, or has begun."""
        reply = self._scripts.turn_waited(
            session_id, turn_id, text=text, first_step=self._first_step, keep_session_ms=self._keep_session_ms
        ).run()
        return reply == "ENDED"

    def cancel(self, session_id: str, turn_id: str, reason: str, *, queued_only: bool = False) -> CancelResult:
        """`CANCELLED`, `REQUESTED`, `LIVE` (it waits no more, and `queued_only` left it alone), `ENDED` or `GONE`."""
        reply = self._scripts.turn_cancel(
            session_id,
            turn_id,
            reason=reason[:MAX_REASON_CHARS],
            first_step=self._first_step,
            queued_only=queued_only,
            keep_session_ms=self._keep_session_ms,
        ).run()
        return "ENDED" if isinstance(reply, TurnCancelEnded) else reply


def _read_due_hook(call: str, tool: str, hook: str) -> DueHook:
    outcome, _, spec = hook.partition("\n")
    return DueHook(call, tool, json.loads(spec)["arguments"], _OUTCOME.validate_json(outcome))


def _trace_parent(request: TurnRequest) -> str:
    """Where spans of the turn belong, as a traceparent; "" where its producer traced nothing."""
    if request.traceparent is None:
        return ""
    return traceparent_of(turn_context(request.turn_id, request.traceparent, lambda trace_id: False))

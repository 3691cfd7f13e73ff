"""Calls in Redis: claim, start, beat, settle, rescue; and the lanes that they hold.

Every lane is a queue of calls, and a call holds its lanes when it is first in all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from brainq.contracts.build import WorkerBuild
from brainq.contracts.call import CallReport, Progress, ToolOutcome, ToolTraceEntry
from brainq.contracts.claim import CallClaim, CallFacts, CallRef, NoCallClaim, NoClaim, SettleReply
from brainq.contracts.ids import is_attended_turn, is_unnamed_session
from brainq.contracts.message import Message
from brainq.contracts.status import Effect, TraceStatus
from brainq.contracts.view import BudgetSnapshot
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS
from brainq.state.failover import ReplicaAcks
from brainq.state.script_values import as_json
from brainq.state.transcripts import read_trace
from brainq.state.turn_steps import read_budget
from brainq.state.typed_scripts import (
    CallClaimDrop,
    CallNextAttemptAgain,
    CallNextAttemptGone,
    CallParkLate,
    CallSettleLate,
    Scripts,
    WaitsExpireCancel,
)

WHENEVER_RENEWED = 2**53  # ms: later than any lease


class RedisCalls:
    """The call operations over one Redis, each one script. Fits `ports.redis_calls.Calls`.

    serves   the effects of the calls that run here
    build    what this process is when it claims
    """

    def __init__(
        self,
        scripts: Scripts,
        *,
        lease_s: float,
        serves: Iterable[Effect] = Effect,
        build: WorkerBuild | None = None,
        acks: ReplicaAcks | None = None,
    ) -> None:
        """`acks`: of replicas, before a write starts; None where none may take over."""
        self._scripts = scripts
        self._owned = scripts.patient(lease_s)
        self._keys = scripts.keys
        self._lease_ms = int(lease_s * 1000)
        self._acks = acks
        self._serves = [effect.value for effect in serves]
        self._build = build or WorkerBuild.of_names()

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | NoCallClaim:
        """The right to run this attempt, or why the doorbell is dropped."""
        reply = self._owned.call_claim(
            ref.session_id,
            ref.turn_id,
            owner=owner,
            call=ref.call_id,
            attempt=attempt,
            lease_ms=self._lease_ms,
            serves=self._serves,
            brains=self._build.words,
        ).run()
        if isinstance(reply, CallClaimDrop):
            return NoClaim(reply.why)
        spec: dict[str, Any] = json.loads(reply.spec)
        return CallClaim(
            session_id=ref.session_id,
            turn_id=ref.turn_id,
            call_id=ref.call_id,
            attempt=attempt,
            owner=owner,
            tool=reply.tool,
            effect=reply.effect,
            step=reply.step,
            arguments=spec["arguments"],
            args_hash=spec["hash"],
            cap_ms=reply.cap_ms,
            remaining_ms=reply.remaining_ms,
            lanes=tuple(spec["lanes"]),
            cwd=spec.get("cwd"),
            metadata=spec.get("metadata"),
            edited=reply.edited,
            brain=reply.brain,
            waited_ms=reply.waited_ms,
            lane_waited_ms=reply.lane_waited_ms,
            traceparent=spec.get("traceparent"),
        )

    def beat(self, claim: CallClaim) -> Literal["OK", "CLOSED", "LOST"]:
        """Renew its lease, and its lanes': `OK`, `CLOSED` (its turn no longer wants it) or `LOST` (it is another's)."""
        return self._scripts.call_beat(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            lease_ms=self._lease_ms,
        ).run()

    def let_lapse(self, claim: CallClaim) -> None:
        """End its lease, and its lanes', now: it was not started, and a sweeper is to judge it at once."""
        self._owned.leases_lapse(
            claim.session_id,
            claim.turn_id,
            process=claim.owner,
            absent_at=WHENEVER_RENEWED,
            lease_ms=self._lease_ms,
            beat_ms=0,
        ).run()

    def publish_progress(self, claim: CallClaim, number: int, progress: Progress) -> None:
        """Tell readers how far it is, once for each `number`; nothing where the call is another's by now."""
        self._scripts.call_progress(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            number=number,
            progress=as_json(progress),
        ).run()

    def start(self, claim: CallClaim) -> str:
        """As `beat`, once its intent is stored; `LOST` also when it no longer holds its lanes."""

        scripts = self._owned if self._acks is None else self._scripts
        start = scripts.call_start(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            lease_ms=self._lease_ms,
        )
        return start.run() if self._acks is None else self._acks.acknowledged(start)

    def budget(self, claim: CallClaim) -> BudgetSnapshot:
        """What is left of its turn's budget. Raises TurnNotFound when there is none."""
        return read_budget(self._owned, claim.session_id, claim.turn_id)

    def give_token(self, claim: CallClaim, token: str) -> str:
        """The token that this call gives away: `token`, or the one an earlier attempt of it gave. When the call is no
        longer ours nothing is noted, and the token is none."""
        reply = self._owned.call_token(
            claim.session_id, claim.turn_id, owner=claim.owner, call=claim.call_id, attempt=claim.attempt, token=token
        ).run()
        return token if reply == "LOST" else reply.token

    def settle(self, claim: CallClaim, report: CallReport, *, still_runs: bool = False) -> SettleReply:
        """Record the end of this attempt.

        still_runs   its function was abandoned: it keeps its lanes until a settle says that it has ended
        """
        reply = self._owned.call_settle(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            status=report.status,
            message=as_json(report.message),
            detail=report.detail,
            latency_ms=report.latency_ms,
            retryable=report.retryable,
            found=_rows_json(report.sources) if report.sources else "",
            block=report.block_tool,
            notice="" if report.notice is None else as_json(report.notice),
            changed=_rows_json(report.changes) if report.changes else "",
            still_runs=still_runs,
        ).run()
        if isinstance(reply, str):
            return SettleReply(reply)
        if not isinstance(reply, CallSettleLate):
            return SettleReply("LOST", status=reply.status)
        COUNTERS.add(m.LATE, claim.effect.value)
        return SettleReply("LATE", status=reply.status)

    def park(
        self,
        claim: CallClaim,
        *,
        park: Literal["outside", "child"],
        token: str,
        timeout_s: float,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        changes: Sequence[Mapping[str, str]] = (),
    ) -> SettleReply:
        """Have the call wait for a result from outside: `park` is `outside` or `child`.

        `PARKED`, `SETTLED` (the result was there already), `LATE` or `LOST`.
        """
        reply = self._owned.call_park(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            why=park,
            token=token,
            timeout_ms=int(timeout_s * 1000),
            found=_rows_json(sources),
            block=block_tool,
            changed=_rows_json(changes),
        ).run()
        if isinstance(reply, str):
            return SettleReply(reply)
        return SettleReply("LATE" if isinstance(reply, CallParkLate) else "LOST", status=reply.status)

    def expire(self, session_id: str, turn_id: str) -> tuple[Literal["EXPIRED", "CANCEL", "NONE"], str]:
        """Let what the turn has waited for too long end: (`EXPIRED`, ""), (`CANCEL`, reason) or (`NONE`, "")."""
        cancels = is_unnamed_session(session_id) or is_attended_turn(turn_id)
        reply = self._scripts.waits_expire(session_id, turn_id, cancels=cancels).run()
        return ("CANCEL", reply.reason) if isinstance(reply, WaitsExpireCancel) else (reply, "")

    def fence_unstarted(self, ref: CallRef, attempt: int, owner: str) -> bool:
        """Whether the attempt surely never started, though `owner` has stored its intent: from now on it cannot."""
        fence = self._scripts.call_unstarted(
            ref.session_id, ref.turn_id, call=ref.call_id, attempt=attempt, owner=owner
        )
        return fence.run() == "UNSTARTED"

    def dispatch_again(self, ref: CallRef, attempt: int) -> Literal["AGAIN", "ALIVE", "GONE"]:
        """Dispatch the next attempt of a call whose lease lapsed: `AGAIN`, `ALIVE` or `GONE`."""
        reply = self._scripts.call_next_attempt(ref.session_id, ref.turn_id, call=ref.call_id, attempt=attempt).run()
        match reply:
            case CallNextAttemptAgain():
                return "AGAIN"
            case CallNextAttemptGone():
                return "GONE"
            case "ALIVE":
                return "ALIVE"

    def give_up(
        self,
        ref: CallRef,
        attempt: int,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        retryable: bool = False,
        outcome: ToolOutcome | None = None,
    ) -> SettleReply:
        """Settle a call whose lease lapsed without running it again."""
        reply = self._scripts.call_give_up(
            ref.session_id,
            ref.turn_id,
            call=ref.call_id,
            attempt=attempt,
            status=status,
            message=as_json(message),
            detail=detail,
            retryable=retryable,
            outcome="" if outcome is None else outcome.model_dump_json(),
        ).run()
        return SettleReply(reply) if isinstance(reply, str) else SettleReply("GONE", status=reply.status)

    def facts(self, ref: CallRef) -> CallFacts | None:
        """What is known of a call; None when it is gone."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        parts = ("status", "tool", "effect", "attempt", "again", "client_said", "early", "completed_by")
        fields = [f"{ref.call_id}:{part}" for part in parts]
        found = cast(list[Any], self._scripts.client.hmget(key, fields))
        status, tool, effect, attempt, again, client, early, completed_by = found
        if not status:
            return None
        return CallFacts(
            status=TraceStatus(status),
            tool=tool,
            effect=Effect(effect),
            attempt=int(attempt),
            idempotent=again == "1",
            step=int(ref.call_id[1:].split("-")[0]),
            client_arguments=client,
            is_awaited=status in ("running", "parked") and early is None and completed_by is None,
        )

    def rung_again_ms(self, ref: CallRef) -> int | None:
        """When the doorbell of a call that runs was rung again last; None when it was rung once."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        fields = [f"{ref.call_id}:{name}" for name in ("rung_at", "dispatched_at", "bell")]
        rung_at, *first = cast("list[str | None]", self._scripts.client.hmget(key, fields))
        return None if rung_at is None or rung_at in first else int(rung_at)

    def traceparent(self, ref: CallRef) -> str | None:
        """The trace context of its turn's request; None where it had none."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        spec = cast("str | None", self._scripts.client.hget(key, f"{ref.call_id}:spec"))
        return json.loads(spec).get("traceparent") if spec else None

    def arguments(self, ref: CallRef) -> dict[str, Any]:
        """The arguments of a call that has not ended; empty once they are gone."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        spec = cast("str | None", self._scripts.client.hget(key, f"{ref.call_id}:spec"))
        return dict(json.loads(spec)["arguments"]) if spec else {}

    def trace(self, session_id: str, turn_id: str) -> tuple[ToolTraceEntry, ...]:
        """Every call of a turn, in the order the model made them."""
        key = self._keys.turn(session_id, turn_id) + ":trace"
        return read_trace(cast(dict[str, str], self._scripts.client.hgetall(key)))

    # Lanes are taken and left by the scripts that open waves and settle calls (`lua/lib/lanes.lua`, `leave_lanes.lua`).
    # What follows keeps the lanes of functions that were abandoned, and heals those of workers that died.

    def beat_lanes(self, ref: CallRef) -> Literal["OK", "LOST"]:
        """Keep the lanes of a function that still runs though its call was settled: `OK` or `LOST`."""
        return self._scripts.lane_beat(holder=ref.holder, lease_ms=self._lease_ms).run()

    def lapsed_lanes(self, limit: int) -> tuple[str, list[CallRef]]:
        """Holders whose lease has lapsed, each handed to one sweeper for a lease's time, and `check_lanes`' mark."""
        reply = self._scripts.lane_lapsed(most=limit, hold_ms=self._lease_ms, longest_lease_ms=self._lease_ms).run()
        return reply.mark, [CallRef.from_holder(holder) for holder in reply.holders]

    def check_lanes(self, ref: CallRef, mark: str) -> str:
        """What becomes of lanes whose lease has lapsed: `KEPT` for a call that is queued or runs, else `LEFT`."""
        return self._scripts.lane_check(
            ref.session_id, ref.turn_id, call=ref.call_id, mark=mark, lease_ms=self._lease_ms
        ).run()

    def lane_queue(self, lane: str) -> list[CallRef]:
        """Who holds a lane (first) and who waits for it."""
        kept = cast(list[str], self._scripts.client.lrange(self._keys.lane(lane), 0, -1))
        return [CallRef.from_holder(holder) for holder in kept]


def _rows_json(rows: Sequence[Mapping[str, str]]) -> str:
    """The argument `found` or `changed`: an array of rows, each a text of its own."""
    return json.dumps([json.dumps(row) for row in rows]) if rows else ""

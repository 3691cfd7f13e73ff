"""Calls in Redis: claim, start, beat, settle, rescue; and the lanes that they hold.

Every lane is a queue of calls, and a call holds its lanes when it is first in all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from brainq.adapters.redis.conversations import Conversations
from brainq.adapters.redis.failover import ReplicaAcks
from brainq.adapters.redis.opened import (
    GrantedCall,
    OpenedCall,
    OpenedTurn,
    OpenedWork,
    StayRequest,
    opened_call,
    unless_claimed,
)
from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.adapters.redis.transcripts import read_trace
from brainq.adapters.redis.turn_steps import read_budget
from brainq.contracts.build import WorkerBuild
from brainq.contracts.call import CallReport, Progress, ToolOutcome, ToolTraceEntry
from brainq.contracts.claim import CallClaim, CallFacts, CallRef, NoCallClaim, NoClaim, SettleReply, StayOffer
from brainq.contracts.ids import is_attended_turn, is_unnamed_session
from brainq.contracts.message import Message
from brainq.contracts.status import Effect, TraceStatus
from brainq.contracts.view import BudgetSnapshot
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS

NEVER_RENEWED_MS = 2**53  # later than the end of any lease


def _with_detail(word: Literal["EXPIRED", "CANCEL", "NONE"], detail: str = "") -> tuple[str, str]:
    return word, detail


def _lapsed(mark: str, holders: Sequence[str]) -> tuple[str, list[CallRef]]:
    return mark, [CallRef.from_holder(holder) for holder in holders]


class RedisCalls:
    """The operations on calls in one Redis, each one script.

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
        opened: OpenedWork | None = None,
    ) -> None:
        """`acks`: of replicas, before a write starts; None if none may take over. `opened`: that of the turns."""
        self._scripts = scripts
        self._owned = scripts.patient(lease_s)
        self._keys = scripts.keys
        self._lease_ms = self._hold_ms = self._longest_lease_ms = int(lease_s * 1000)
        self._acks = acks
        self._serves = [effect.value for effect in serves]
        self._build = build or WorkerBuild.of_names()
        self._opened = opened or OpenedWork(self._keys, Conversations(scripts.client), self._build, self._lease_ms)

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | NoCallClaim:
        """Claim an attempt of a call. Returns a NoClaim if the doorbell is to be dropped."""
        reply = self._claim(ref, attempt, owner)
        if isinstance(reply, NoClaim):
            return reply
        return reply.claim(ref, attempt, owner)

    @script("call_claim", patient=True, GO=GrantedCall, DROP=NoClaim)
    def _claim(self, ref: CallRef, attempt: int, owner: str) -> GrantedCall | NoCallClaim: ...

    @script("call_beat")
    def beat(self, claim: CallClaim) -> Literal["OK", "CLOSED", "LOST"]:
        """Renew the lease of a call and of its lanes. `CLOSED` means that its turn no longer wants it, and `LOST` that
        it has another owner."""
        ...

    @script("leases_lapse", patient=True, process=Parameter("owner"), absent_at=NEVER_RENEWED_MS, beat_ms=0)
    def let_lapse(self, claim: CallClaim) -> None:
        """End the lease of a call that was not started, and of its lanes, so that a sweeper handles it at once."""
        ...

    @script("call_progress")
    def publish_progress(self, claim: CallClaim, number: int, progress: Progress) -> None:
        """Publish the progress of a call, once for each `number`. Does nothing if the call has another owner."""
        ...

    def start(self, claim: CallClaim) -> str:
        """Check the lease of a call and of its lanes once more after its intent was stored. Returns what `beat`
        returns."""
        if self._acks is None:
            return self._start_patiently(claim).run()
        return self._acks.acknowledged(self._start(claim))

    @script_call("call_start")
    def _start(self, claim: CallClaim) -> ScriptCall[Literal["OK", "CLOSED", "LOST"]]: ...

    @script_call("call_start", patient=True)
    def _start_patiently(self, claim: CallClaim) -> ScriptCall[Literal["OK", "CLOSED", "LOST"]]: ...

    def budget(self, claim: CallClaim) -> BudgetSnapshot:
        """Return the rest of the turn's budget. Raises TurnNotFound."""
        return read_budget(self._owned, claim.session_id, claim.turn_id)

    def give_token(self, claim: CallClaim, token: str) -> str:
        """Return the token that this call gives away: `token`, or the token of an earlier attempt. If the call has
        another owner, nothing is recorded, and the token belongs to no call."""
        return self._give_token(claim, token) or token

    @script("call_token", patient=True, GIVEN=str, LOST="")
    def _give_token(self, claim: CallClaim, token: str) -> str: ...

    def settle(
        self, claim: CallClaim, report: CallReport, *, still_runs: bool = False, offer: StayOffer | None = None
    ) -> SettleReply:
        """Record the end of an attempt.

        still_runs   True if its function was abandoned and still runs. It keeps its lanes until another `settle`
        records its end
        offer        the thread continues with what this opens
        """
        stay = self._opened.after_calls(offer, claim.session_id, claim.turn_id)
        reply = self._settle(claim, report, still_runs, stay)
        if not isinstance(reply, SettleReply):
            return SettleReply("SETTLED", opened=self._opened.claim(stay, claim.session_id, claim.turn_id, reply))
        if reply.word == "LATE":
            COUNTERS.add(m.LATE, claim.effect.value)
        return reply

    @script(
        "call_settle",
        patient=True,
        SETTLED=unless_claimed(SettleReply("SETTLED")),
        CALL=opened_call,
        TURN=OpenedTurn,
        others=SettleReply,
    )
    def _settle(
        self, claim: CallClaim, report: CallReport, still_runs: bool, stay: StayRequest
    ) -> SettleReply | OpenedCall | OpenedTurn: ...

    @script(
        "call_park",
        patient=True,
        why=Parameter("park"),
        found=Parameter("sources"),
        block=Parameter("block_tool"),
        changed=Parameter("changes"),
        others=SettleReply,
    )
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
        """Make a call wait for a result from outside. `SETTLED` means that the result had already come."""
        ...

    def expire(self, session_id: str, turn_id: str) -> tuple[Literal["EXPIRED", "CANCEL", "NONE"], str]:
        """End the waits of a turn that lasted too long: (`EXPIRED`, ""), (`CANCEL`, reason) or (`NONE`, "")."""
        cancels = is_unnamed_session(session_id) or is_attended_turn(turn_id)
        return self._expire(session_id, turn_id, cancels)

    @script("waits_expire", others=_with_detail)
    def _expire(
        self, session_id: str, turn_id: str, cancels: bool
    ) -> tuple[Literal["EXPIRED", "CANCEL", "NONE"], str]: ...

    @script("call_unstarted", UNSTARTED=True, STARTED=False, GONE=False)
    def fence_unstarted(self, ref: CallRef, attempt: int, owner: str) -> bool:
        """Return whether an attempt certainly never started although `owner` stored its intent. If so, it can no longer
        start."""
        ...

    @script("call_next_attempt", AGAIN="AGAIN", GONE="GONE")
    def dispatch_again(self, ref: CallRef, attempt: int) -> Literal["AGAIN", "ALIVE", "GONE"]:
        """Dispatch the next attempt of a call whose lease lapsed."""
        ...

    @script("call_give_up", others=SettleReply)
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
        """Settle a call whose lease lapsed, without another attempt."""
        ...

    def facts(self, ref: CallRef) -> CallFacts | None:
        """Return the facts of a call, or None if it is gone."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        parts = ("status", "tool", "effect", "attempt", "again", "client_said", "early", "completed_by", "begun")
        fields = [f"{ref.call_id}:{part}" for part in parts]
        found = cast(list[Any], self._scripts.client.hmget(key, fields))
        status, tool, effect, attempt, again, client, early, completed_by, begun = found
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
            has_begun=begun == attempt,
        )

    def rung_again_ms(self, ref: CallRef) -> int | None:
        """Return when the doorbell of a running call was last rung again, or None if it was rung only once."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        fields = [f"{ref.call_id}:{name}" for name in ("rung_at", "dispatched_at", "bell")]
        rung_at, *first = cast("list[str | None]", self._scripts.client.hmget(key, fields))
        return None if rung_at is None or rung_at in first else int(rung_at)

    def traceparent(self, ref: CallRef) -> str | None:
        """Return the trace context of the turn's request, or None."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        spec = cast("str | None", self._scripts.client.hget(key, f"{ref.call_id}:spec"))
        return json.loads(spec).get("traceparent") if spec else None

    def arguments(self, ref: CallRef) -> dict[str, Any]:
        """Return the arguments of an open call; empty once they are gone."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        spec = cast("str | None", self._scripts.client.hget(key, f"{ref.call_id}:spec"))
        return dict(json.loads(spec)["arguments"]) if spec else {}

    def trace(self, session_id: str, turn_id: str) -> tuple[ToolTraceEntry, ...]:
        """Return every call of a turn, in the model's order."""
        key = self._keys.turn(session_id, turn_id) + ":trace"
        return read_trace(cast(dict[str, str], self._scripts.client.hgetall(key)))

    # The scripts that open waves and settle calls take and leave lanes (`lua/lib/lanes.lua`, `leave_lanes.lua`). The
    # methods below keep the lanes of abandoned functions, and free those of dead workers.

    @script("lane_beat")
    def beat_lanes(self, ref: CallRef) -> Literal["OK", "LOST"]:
        """Keep the lanes of a function that still runs after its call was settled."""
        ...

    @script("lane_lapsed", most=Parameter("limit"), LAPSED=_lapsed)
    def lapsed_lanes(self, limit: int) -> tuple[str, list[CallRef]]:
        """Return a mark for `check_lanes`, and the holders of lanes whose lease lapsed. Other sweepers do not get these
        holders for the time of a lease."""
        ...

    @script("lane_check")
    def check_lanes(self, ref: CallRef, mark: str) -> Literal["KEPT", "LEFT"]:
        """Release lanes whose lease lapsed, unless their call is queued or runs."""
        ...

    def lane_queue(self, lane: str) -> list[CallRef]:
        """Return the holder of a lane, and then the calls that wait for it."""
        kept = cast(list[str], self._scripts.client.lrange(self._keys.lane(lane), 0, -1))
        return [CallRef.from_holder(holder) for holder in kept]

"""Calls in Redis: claim, beat, settle, rescue. Fits `calls.ports.Calls`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from brainq.contracts.claim import CallClaim, CallRef, SettleReply
from brainq.contracts.effect import Effect
from brainq.contracts.message import Message
from brainq.contracts.status import TraceStatus
from brainq.contracts.trace import ToolTraceEntry
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.scripts import Scripts
from brainq.state.trace_rows import read_trace


class RedisCalls:
    """The call operations over one Redis, each one script."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox, *, lease_s: float) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._lease_ms = int(lease_s * 1000)

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | str:
        """The right to run this attempt, or why the doorbell is dropped."""
        key = self._keys.turn(ref.session_id, ref.turn_id)
        reply = self._run.call_claim(
            turn=key,
            budget=key + ":budget",
            trace=key + ":trace",
            events=key + ":events",
            owner=owner,
            call=ref.call_id,
            attempt=attempt,
            lease_ms=self._lease_ms,
        )
        if reply[0] == "DROP":
            return reply[1]
        spec: dict[str, Any] = json.loads(reply[1])
        return CallClaim(
            session_id=ref.session_id,
            turn_id=ref.turn_id,
            call_id=ref.call_id,
            attempt=attempt,
            owner=owner,
            tool=reply[5],
            effect=Effect(reply[4]),
            step=int(reply[6]),
            arguments=spec["arguments"],
            args_hash=spec["hash"],
            cap_ms=int(reply[2]),
            remaining_ms=int(reply[3]),
            lanes=tuple(spec["lanes"]),
            cwd=spec.get("cwd"),
            metadata=spec.get("metadata"),
        )

    def beat(self, claim: CallClaim) -> str:
        """`OK`, `CLOSED` (the turn no longer wants it) or `LOST` (somebody else has it)."""
        key = self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.call_beat(
            turn=key,
            trace=key + ":trace",
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            lease_ms=self._lease_ms,
        )
        return reply[0]

    def settle(
        self,
        claim: CallClaim,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        latency_ms: int,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        notice: Message | None = None,
    ) -> SettleReply:
        """Record the end of this attempt; `notice` is what the model reads if it comes too late."""
        sid, key = claim.session_id, self._keys.turn(claim.session_id, claim.turn_id)
        reply = self._run.call_settle(
            turn=key,
            trace=key + ":trace",
            history=self._keys.of_session(sid, "history"),
            events=key + ":events",
            guard=key + ":guard",
            sources=key + ":sources",
            blocked=key + ":blocked",
            notices=self._keys.of_session(sid, "notices"),
            sid=sid,
            tid=claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            status=status.value,
            message=message.model_dump_json(exclude_defaults=True),
            detail=detail,
            latency_ms=latency_ms,
            found=json.dumps([json.dumps(source) for source in sources]) if sources else "",
            block="1" if block_tool else "0",
            notice=notice.model_dump_json(exclude_defaults=True) if notice else "",
        )
        self._outbox.flush(sid)
        if reply[0] == "SETTLED":
            return SettleReply("SETTLED", wants=tuple(reply[1].split()))
        return SettleReply(reply[0], status=reply[1])

    def dispatch(self, ref: CallRef) -> str:
        """Queue a call that holds its lanes: `DISPATCHED`, `ALREADY` or `SETTLED` (leave its lanes)."""
        key = self._keys.turn(ref.session_id, ref.turn_id)
        reply = self._run.call_dispatch(
            turn=key,
            trace=key + ":trace",
            events=key + ":events",
            history=self._keys.of_session(ref.session_id, "history"),
            guard=key + ":guard",
            sid=ref.session_id,
            tid=ref.turn_id,
            call=ref.call_id,
        )
        self._outbox.flush(ref.session_id)
        return reply[0]

    def ask_again(self, ref: CallRef, attempt: int) -> str:
        """Dispatch the next attempt of a call whose lease lapsed: `AGAIN`, `ALIVE` or `GONE`."""
        key = self._keys.turn(ref.session_id, ref.turn_id)
        reply = self._run.call_rescue(
            turn=key,
            trace=key + ":trace",
            events=key + ":events",
            history=self._keys.of_session(ref.session_id, "history"),
            guard=key + ":guard",
            sid=ref.session_id,
            tid=ref.turn_id,
            call=ref.call_id,
            attempt=attempt,
        )
        self._outbox.flush(ref.session_id)
        return reply[0]

    def give_up(
        self, ref: CallRef, attempt: int, *, status: TraceStatus, message: Message, detail: str
    ) -> SettleReply:
        """Settle a call whose lease lapsed without running it again."""
        sid, key = ref.session_id, self._keys.turn(ref.session_id, ref.turn_id)
        reply = self._run.call_give_up(
            turn=key,
            trace=key + ":trace",
            history=self._keys.of_session(sid, "history"),
            events=key + ":events",
            guard=key + ":guard",
            sources=key + ":sources",
            blocked=key + ":blocked",
            sid=sid,
            tid=ref.turn_id,
            call=ref.call_id,
            attempt=attempt,
            status=status.value,
            message=message.model_dump_json(exclude_defaults=True),
            detail=detail,
        )
        self._outbox.flush(sid)
        wants = tuple(reply[1].split()) if reply[0] == "SETTLED" else ()
        return SettleReply(reply[0], wants=wants)

    def lanes_of(self, ref: CallRef) -> tuple[str, ...]:
        """The lanes a call needs, as its step's commit recorded them."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        kept = cast("str | None", self._run.client.hget(key, f"{ref.call_id}:lanes"))
        return tuple(json.loads(kept)) if kept else ()

    def facts(self, ref: CallRef) -> tuple[str, str, Effect, int, bool, int] | None:
        """(status, tool, effect, attempt, idempotent, step) of a call, or None when it is gone."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        fields = [f"{ref.call_id}:{part}" for part in ("status", "tool", "effect", "attempt", "again")]
        status, tool, effect, attempt, again = cast(list[str], self._run.client.hmget(key, fields))
        if not status:
            return None
        return status, tool, Effect(effect), int(attempt), again == "1", int(ref.call_id[1:].split("-")[0])

    def trace(self, session_id: str, turn_id: str) -> tuple[ToolTraceEntry, ...]:
        """Every call of a turn, in the order the model made them."""
        key = self._keys.turn(session_id, turn_id) + ":trace"
        return read_trace(cast(dict[str, str], self._run.client.hgetall(key)))

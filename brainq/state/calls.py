"""Calls in Redis: claim, beat, settle, rescue. Fits `calls.ports.Calls`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from brainq.contracts.claim import CallClaim, CallHeld, CallRef, SettleReply
from brainq.contracts.effect import Effect
from brainq.contracts.message import Message
from brainq.contracts.status import TraceStatus
from brainq.contracts.trace import ToolTraceEntry
from brainq.state.attention import GOING_ON_S, LOOKED_AT_ANYWAY_S, look_within
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.scripts import Scripts
from brainq.state.trace_rows import read_trace


class RedisCalls:
    """The call operations over one Redis, each one script. `serves`: the effects of the calls that run here."""

    def __init__(
        self,
        scripts: Scripts,
        keys: Keys,
        outbox: Outbox,
        *,
        lease_s: float,
        serves: Iterable[Effect] = Effect,
    ) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._lease_ms = int(lease_s * 1000)
        self._serves = " ".join(effect.value for effect in serves)

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | CallHeld | str:
        """The right to run this attempt, or that a hold stands, or why the doorbell is dropped."""
        reply = self._run.call_claim.on(
            self._keys,
            ref.session_id,
            ref.turn_id,
            owner=owner,
            call=ref.call_id,
            attempt=attempt,
            lease_ms=self._lease_ms,
            serves=self._serves,
        )
        if reply[0] == "DROP":
            return reply[1]
        if reply[0] == "HELD":
            self._outbox.flush(ref.session_id)
            return CallHeld(tuple(reply[1].split()))
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
            edited=reply[7] == "1",
        )

    def beat(self, claim: CallClaim) -> str:
        """`OK`, `CLOSED` (the turn no longer wants it) or `LOST` (somebody else has it)."""
        reply = self._run.call_beat.on(
            self._keys,
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            lease_ms=self._lease_ms,
        )
        return reply[0]

    def give_token(self, claim: CallClaim, token: str) -> str:
        """The token that this call gives away: `token`, or the one an earlier attempt of it gave. When the call is no
        longer ours nothing is noted, and the token is none."""
        reply = self._run.call_token(
            trace=self._keys.named("trace", claim.session_id, claim.turn_id),
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            token=token,
        )
        return reply[1] if reply[0] == "GIVEN" else token

    def settle(
        self,
        claim: CallClaim,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        latency_ms: int,
        retryable: bool = False,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        notice: Message | None = None,
        changes: Sequence[Mapping[str, str]] = (),
    ) -> SettleReply:
        """Record the end of this attempt; `notice` is what the model reads if it comes too late."""
        reply = self._run.call_settle.on(
            self._keys,
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            status=status.value,
            message=message.model_dump_json(exclude_defaults=True),
            detail=detail,
            latency_ms=latency_ms,
            retryable="1" if retryable else "0",
            found=_rows(sources),
            block="1" if block_tool else "0",
            notice=notice.model_dump_json(exclude_defaults=True) if notice else "",
            changed=_rows(changes),
        )
        self._outbox.flush(claim.session_id)
        return _settled(reply)

    def park(
        self,
        claim: CallClaim,
        *,
        park: str,
        token: str,
        timeout_s: float,
        sources: Sequence[Mapping[str, str]] = (),
        block_tool: bool = False,
        changes: Sequence[Mapping[str, str]] = (),
    ) -> SettleReply:
        """Have the call wait for a result from outside: `park` is `outside` or `child`.

        `PARKED`, `SETTLED` (the result was there already), `LATE` or `LOST`.
        """
        reply = self._run.call_park.on(
            self._keys,
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            call=claim.call_id,
            attempt=claim.attempt,
            why=park,
            token=token,
            timeout_ms=int(timeout_s * 1000),
            found=_rows(sources),
            block="1" if block_tool else "0",
            changed=_rows(changes),
        )
        self._outbox.flush(claim.session_id)
        if reply[0] == "PARKED":
            self._look_after(claim.session_id, claim.turn_id, timeout_s)
        return _settled(reply)

    def _look_after(self, session_id: str, turn_id: str, timeout_s: float) -> None:
        """The sweeper looks when the wait is over, not only when it would have looked anyway."""
        if timeout_s < LOOKED_AT_ANYWAY_S:
            look_within(self._run, self._keys, session_id, turn_id, timeout_s)

    def expire(self, session_id: str, turn_id: str) -> tuple[str, str]:
        """Let what the turn has waited for too long end: (`EXPIRED`, wants), (`CANCEL`, reason) or (`NONE`, "")."""
        reply = self._run.park_expire.on(self._keys, session_id, turn_id)
        self._outbox.flush(session_id)
        if reply[0] == "EXPIRED":
            look_within(self._run, self._keys, session_id, turn_id, GOING_ON_S)
        return reply[0], reply[1] if len(reply) > 1 else ""

    def dispatch(self, ref: CallRef) -> SettleReply:
        """Queue a call that holds its lanes.

        `DISPATCHED`, `ALREADY`, `SETTLED` (leave its lanes), or `HELD` (a hold stands: let its lanes lapse).
        """
        reply = self._run.call_dispatch.on(self._keys, ref.session_id, ref.turn_id, call=ref.call_id)
        self._outbox.flush(ref.session_id)
        if reply[0] == "HELD":
            return SettleReply("HELD", wants=tuple(reply[1].split()))
        return SettleReply(reply[0], status=reply[1] if len(reply) > 1 else "")

    def ask_again(self, ref: CallRef, attempt: int) -> str:
        """Dispatch the next attempt of a call whose lease lapsed: `AGAIN`, `ALIVE` or `GONE`."""
        reply = self._run.call_rescue.on(
            self._keys, ref.session_id, ref.turn_id, call=ref.call_id, attempt=attempt
        )
        self._outbox.flush(ref.session_id)
        return reply[0]

    def give_up(
        self,
        ref: CallRef,
        attempt: int,
        *,
        status: TraceStatus,
        message: Message,
        detail: str,
        retryable: bool = False,
    ) -> SettleReply:
        """Settle a call whose lease lapsed without running it again."""
        reply = self._run.call_give_up.on(
            self._keys,
            ref.session_id,
            ref.turn_id,
            call=ref.call_id,
            attempt=attempt,
            status=status.value,
            message=message.model_dump_json(exclude_defaults=True),
            detail=detail,
            retryable="1" if retryable else "0",
        )
        self._outbox.flush(ref.session_id)
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

    def arguments(self, ref: CallRef) -> dict[str, Any]:
        """The arguments of a call that has not ended; empty once they are gone."""
        key = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        spec = cast("str | None", self._run.client.hget(key, f"{ref.call_id}:spec"))
        return dict(json.loads(spec)["arguments"]) if spec else {}

    def trace(self, session_id: str, turn_id: str) -> tuple[ToolTraceEntry, ...]:
        """Every call of a turn, in the order the model made them."""
        key = self._keys.turn(session_id, turn_id) + ":trace"
        return read_trace(cast(dict[str, str], self._run.client.hgetall(key)))


def _rows(rows: Sequence[Mapping[str, str]]) -> str:
    """The argument `found` or `changed`: an array of rows, each a text of its own."""
    return json.dumps([json.dumps(row) for row in rows]) if rows else ""


def _settled(reply: Sequence[str]) -> SettleReply:
    if reply[0] in ("SETTLED", "PARKED"):
        return SettleReply(reply[0], wants=tuple(reply[1].split()))
    return SettleReply(reply[0], status=reply[1])

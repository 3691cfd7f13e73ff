"""The finalizer's chain in Redis: claim a step, go on, try later; and the result going out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from redis.exceptions import ResponseError

from brainq.contracts.claim import Dropped, StepClaim, StepDropped
from brainq.contracts.message import Message
from brainq.contracts.status import ENDS_OF_A_REPLY, Ending, StopReason
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.usage import Spend
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.state.approvals import asks_of
from brainq.state.connection import Command, as_mapping
from brainq.state.conversations import MOST_READ
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.trace_rows import outside_of, read_trace
from brainq.state.turn_view import opening_of, opening_reads, usage_of
from brainq.state.typed_scripts import FinalizeClaimDrop, FinalizeSettleGo, Scripts
from brainq.tools.opening import context_hash, opened_pack

OPENING_CALLS = "c0-"
PROBLEM = "problem:"  # begins the fields that count replies on which the turn could not act
JUDGE_RUNG_MS = 5_000  # a judge is not rung more often than this


class RedisFinals:
    """The finalizer operations over one Redis, each one script. Fits `ports.finals.Finals`."""

    def __init__(
        self,
        scripts: Scripts,
        keys: Keys,
        outbox: Outbox,
        *,
        lease_s: float,
        keep_turn_s: float,
        complete: Callable[[TurnRequest], TurnRequest] = lambda request: request,
    ) -> None:
        """`complete` adds to a request what the brain says where it says nothing."""
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._complete = complete
        self._lease_ms = int(lease_s * 1000)
        self._keep_ms = int(keep_turn_s * 1000)

    def claim(self, session_id: str, turn_id: str, step: str, owner: str) -> StepClaim | StepDropped:
        return self._claim(session_id, turn_id, step, owner, ())

    def claim_and_look(self, session_id: str, turn_id: str, step: str, owner: str) -> StepClaim | StepDropped:
        """As `claim`; what `look` needs is read in the same round trip."""
        return self._claim(
            session_id, turn_id, step, owner, _ended_reads(self._keys.turn(session_id, turn_id))
        )

    def _claim(
        self, session_id: str, turn_id: str, step: str, owner: str, reads: Sequence[Command]
    ) -> StepClaim | StepDropped:
        reply, seen = self._run.with_reads(
            lambda run: run.finalize_claim(
                session_id, turn_id, owner=owner, step=step, lease_ms=self._lease_ms
            ),
            reads,
        )
        if isinstance(reply, FinalizeClaimDrop):
            return Dropped(reply.why)
        return StepClaim(
            session_id=session_id,
            turn_id=turn_id,
            step=step,
            owner=owner,
            fence=reply.fence,
            tries=reply.tries,
            revision=reply.revision,
            sent=reply.sent,
            lost=reply.lost,
            seen=seen,
        )

    def look(self, claim: StepClaim) -> EndedTurn | None:
        """The ended turn as it is at this claim; None when Redis no longer knows it."""
        if not claim.seen:
            return self.ended(claim.session_id, claim.turn_id)
        # Taken out: they may be long.
        found = list(claim.seen)
        claim.seen.clear()
        for reply in found:
            if isinstance(reply, ResponseError):
                raise reply
        return self._ended(found)

    def beat(self, claim: StepClaim) -> Literal["OK", "LOST"]:
        return self._run.finalize_beat(
            claim.session_id, claim.turn_id, fence=claim.fence, lease_ms=self._lease_ms
        )

    def go_on(self, claim: StepClaim, next_step: str, *, stay: bool) -> StepClaim | Literal["NEXT", "LOST"]:
        """This step is over: the claim of `next_step` where its owner may take it at once (`stay`: it wants to),
        else `NEXT`: it was rung for. `LOST` when the claim is."""
        reply = self._run.finalize_settle(
            claim.session_id,
            claim.turn_id,
            fence=claim.fence,
            step=claim.step,
            next_step=next_step,
            owner=claim.owner if stay else "",
            lease_ms=self._lease_ms,
        )
        if isinstance(reply, FinalizeSettleGo):
            return replace(
                claim,
                step=next_step,
                fence=reply.fence,
                tries=reply.tries,
                revision=reply.revision,
                sent=reply.sent,
                seen=[],
            )
        self._outbox.flush(claim.session_id)
        return reply

    def finish(self, claim: StepClaim) -> Literal["FINISHED", "LOST"]:
        """The last step is over: `FINISHED`, or `LOST`. The turn's keys get their lifetime."""
        return self._run.finalize_finish(
            claim.session_id,
            claim.turn_id,
            fence=claim.fence,
            step=claim.step,
            keep_ms=self._keep_ms,
        )

    def retry(self, claim: StepClaim, after_s: float, error: str) -> Literal["WAIT", "LOST"]:
        """Try this step again after `after_s`; the sweeper rings then."""
        after_ms = int(after_s * 1000)
        return self._run.finalize_retry(
            claim.session_id, claim.turn_id, fence=claim.fence, retry_ms=after_ms, failure=error
        )

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """The ended turn as the steps see it; None when Redis no longer knows it."""
        return self._ended(self._run.client.many(_ended_reads(self._keys.turn(session_id, turn_id))))

    def _ended(self, found: Sequence[Any]) -> EndedTurn | None:
        turn, budget, spec, sources, trace, spends, *opening = found
        turn, budget, trace = as_mapping(turn), as_mapping(budget), as_mapping(trace)
        if not turn.get("ending") or not spec:
            return None
        tools = {field.split(":")[0]: tool for field, tool in trace.items() if field.endswith(":tool")}
        # What was loaded before the first step is not a tool use of the model's.
        ran = [
            tool
            for call, tool in tools.items()
            if f"{call}:started_at" in trace and not call.startswith(OPENING_CALLS)
        ]
        brought = opening_of(opening)
        started = int(turn.get("active_at") or turn["created_at"])
        return EndedTurn(
            request=self._complete(TurnRequest.model_validate_json(spec)),
            ending=Ending(turn["ending"]),
            stop_reason=StopReason(turn["stop_reason"]),
            text=turn.get("text", ""),
            error=turn.get("error", ""),
            steps=int(turn.get("step") or 0) + (turn.get("stop_reason") in ENDS_OF_A_REPLY),
            tool_calls=int(budget.get("tool_calls_used") or 0),
            tools=tuple(dict.fromkeys(ran)),
            usage=usage_of(budget),
            cost_usd=float(budget.get("cost_usd") or 0),
            cost_known="cost_usd" in budget,
            sources=tuple(json.loads(source) for source in sources),
            context_hash=context_hash(brought),
            prompt_hash=turn.get("prompt_hash", ""),
            turn_number=int(turn.get("number") or 0),
            elapsed_ms=int(turn["closing_at"]) - started,
            failing_error=turn.get("fin_error", "") if int(turn.get("fin_failing_since") or 0) else "",
            problems={
                field.removeprefix(PROBLEM): int(count)
                for field, count in turn.items()
                if field.startswith(PROBLEM)
            },
            context_full=int(turn.get("context_full") or 0),
            spends=tuple(Spend.model_validate_json(spend) for spend in spends),
            opening_failed={
                tool: trace.get(f"{call}:status", "")
                for call, tool in tools.items()
                if call.startswith(OPENING_CALLS) and trace.get(f"{call}:status") != "completed"
            },
            context_pack_json=opened_pack(brought),
            last_agent_message=turn.get("last_agent_message"),
            diff=turn.get("diff"),
            parked_ms=int(turn.get("parked_ms") or 0),
        )

    def details(self, session_id: str, turn_id: str) -> TurnDetails:
        """The turn's conversation as far as the session's history still holds it, and its calls."""
        key = self._keys.turn(session_id, turn_id)
        reply, (trace, receipts) = self._run.with_reads(
            lambda run: run.turn_said(session_id, turn_id, most=MOST_READ),
            [("HGETALL", key + ":trace"), ("HGETALL", key + ":receipts")],
        )
        said = (Message.model_validate_json(item) for item in reply.messages)
        calls = as_mapping(trace)
        return TurnDetails(
            tuple(message for message in said if message.turn == turn_id),
            read_trace(calls),
            as_mapping(receipts),
            asks_of(calls),
            outside_of(calls),
        )

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["RUNG", "ALREADY", "FULL"]:
        """Ring for a judge of the turn: `RUNG`, or `ALREADY` when that was a moment ago."""
        reply = self._run.judge_ring(
            session_id,
            turn_id,
            rung=f"{self._keys.turn(session_id, turn_id)}:rung:{judge}",
            judge=judge,
            hold_ms=JUDGE_RUNG_MS,
        )
        self._outbox.flush(session_id)
        return reply

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        """The result as it went out."""
        body = self._run.client.get(self._keys.turn(session_id, turn_id) + ":result")
        return TurnResult.model_validate_json(cast(str, body)) if body else None

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        """Replace the text that goes out (citations appended). Only the holder of a step calls this."""
        key = self._keys.turn(session_id, turn_id)
        pipe = self._run.client.pipeline(transaction=True)
        pipe.hset(key, "text", text)
        pipe.hincrby(key, "revision", 1)
        pipe.execute()

    def publish(self, result: TurnResult) -> Literal["PUBLISHED", "ALREADY", "OPEN"]:
        """Send the result out, once: `PUBLISHED`, `ALREADY`, or `OPEN` when the turn has not ended."""
        data = {
            "ending": result.ending.value,
            "stop_reason": result.stop_reason.value,
            "elapsed_ms": result.elapsed_ms,
        }
        return self._run.result_publish(
            result.session_id, result.turn_id, body=result.model_dump_json(), data=json.dumps(data)
        )


def _ended_reads(turn_key: str) -> list[Command]:
    """The commands whose replies an ended turn is made of."""
    return [
        ("HGETALL", turn_key),
        ("HGETALL", turn_key + ":budget"),
        ("GET", turn_key + ":spec"),
        ("LRANGE", turn_key + ":sources", 0, -1),
        ("HGETALL", turn_key + ":trace"),
        ("LRANGE", turn_key + ":spends", 0, -1),
        *opening_reads(turn_key),
    ]

"""The finalizer's chain in Redis: claim a step, go on, try later; and the result going out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from redis.exceptions import ResponseError

from brainq.contracts.build import WorkerBuild
from brainq.contracts.claim import FinalStepClaim, NoClaim, NoFinalStepClaim
from brainq.contracts.message import Message
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.state.connection import as_mapping
from brainq.state.conversations import MAX_READ_MESSAGES
from brainq.state.people import read_approvals
from brainq.state.transcripts import outside_results, read_trace
from brainq.state.turn_view import ENDED_TRACE, ended_reads, read_ended_turn
from brainq.state.typed_scripts import (
    FinalizeAheadGo,
    FinalizeClaimDrop,
    FinalizeSendGo,
    FinalizeSettleGo,
    Scripts,
    TurnMessagesSaid,
    TurnTranscriptSaid,
)

JUDGE_RUNG_MS = 5_000  # a judge is not rung more often than this
MAX_AMEND_TRIES = 8  # other steps of the same turn may be given up at the same moment
MISSING_BRAIN_WAIT_S = 300.0  # a deployment that brings a brain is rolled out in less


class RedisFinalChain:
    """The finalizer operations over one Redis, each one script. Fits `ports.redis_turns.FinalChain`."""

    def __init__(
        self,
        scripts: Scripts,
        *,
        lease_s: float,
        keep_turn_s: float,
        complete: Callable[[TurnRequest], TurnRequest] = lambda request: request,
        build: WorkerBuild | None = None,
    ) -> None:
        """
        complete   adds to a request what its brain says where it says nothing
        build      what this process is when it claims
        """
        self._scripts = scripts
        self._owned = scripts.patient(lease_s)
        self._keys = scripts.keys
        self._complete = complete
        self._build = build or WorkerBuild.of_names()
        self._lease_ms = int(lease_s * 1000)
        self._keep_ms = int(keep_turn_s * 1000)

    def claim(
        self,
        session_id: str,
        turn_id: str,
        step: str,
        owner: str,
        *,
        and_look: bool = False,
        and_messages: bool = False,
    ) -> FinalStepClaim | NoFinalStepClaim:
        """The right to run a step. What `look` needs is read in the same round trip (`and_look`), and what `details_of`
        needs (`and_messages`)."""
        claim = self._owned.finalize_claim(
            session_id,
            turn_id,
            owner=owner,
            step=step,
            lease_ms=self._lease_ms,
            brains=self._build.words,
            left_ms=int(MISSING_BRAIN_WAIT_S * 1000),
        )
        key = self._keys.turn(session_id, turn_id)
        said = [self._owned.turn_messages(session_id, turn_id, most=MAX_READ_MESSAGES)] if and_messages else []
        reads = ended_reads(key) if and_look or and_messages else []
        if and_messages:
            reads.append(("HGETALL", f"{key}:receipts"))
        (reply, *messages), replies = self._owned.pipeline([claim, *said], reads)
        if isinstance(reply, ResponseError):
            raise reply
        assert not isinstance(reply, TurnMessagesSaid)
        details = _said(messages, replies) if and_messages else []
        if isinstance(reply, FinalizeClaimDrop):
            return NoClaim(reply.why)
        return FinalStepClaim(
            session_id=session_id,
            turn_id=turn_id,
            step=reply.ahead or step,
            owner=owner,
            fence=reply.fence,
            tries=reply.tries,
            revision=reply.revision,
            sent=reply.sent,
            lost=reply.lost,
            replies=replies,
            details=details,
            brain=reply.brain,
            waited_ms=reply.waited_ms,
            base=step if reply.ahead else "",
            past=reply.past,
            failing=reply.failing,
        )

    def look(self, claim: FinalStepClaim) -> EndedTurn | None:
        """The ended turn as it is at this claim; None when Redis no longer knows it."""
        if not claim.replies:
            return self.ended(claim.session_id, claim.turn_id)
        # Taken out: they may be long.
        found = list(claim.replies)
        claim.replies.clear()
        for reply in found:
            if isinstance(reply, ResponseError):
                raise reply
        return read_ended_turn(found, self._complete)

    def beat(self, claim: FinalStepClaim) -> Literal["OK", "LOST"]:
        return self._scripts.finalize_beat(
            claim.session_id, claim.turn_id, fence=claim.fence, lease_ms=self._lease_ms
        ).run()

    def go_on(self, claim: FinalStepClaim, next_step: str, *, stay: bool) -> FinalStepClaim | Literal["NEXT", "LOST"]:
        """This step is over: the claim of `next_step` where its owner may take it at once (`stay`: it wants to),
        else `NEXT`: it was rung for. `LOST` when the claim is."""
        reply = self._owned.finalize_settle(
            claim.session_id,
            claim.turn_id,
            fence=claim.fence,
            step=claim.step,
            next_step=next_step,
            owner=claim.owner if stay else "",
            lease_ms=self._lease_ms,
        ).run()
        return _following(claim, next_step, reply)

    def send(
        self, claim: FinalStepClaim, next_step: str, result: TurnResult, *, stay: bool
    ) -> FinalStepClaim | Literal["NEXT", "LOST"]:
        """As `go_on`; the result goes out with it, if it has not yet. Of a claim that is lost nothing goes out."""
        reply = self._owned.finalize_send(
            claim.session_id,
            claim.turn_id,
            fence=claim.fence,
            step=claim.step,
            next_step=next_step,
            owner=claim.owner if stay else "",
            lease_ms=self._lease_ms,
            body=result.model_dump_json(),
            data=_result_event(result),
        ).run()
        return _following(claim, next_step, reply)

    def go_ahead(
        self,
        claim: FinalStepClaim,
        ahead: str,
        past: str,
        *,
        stay: bool,
        after_s: float | None = None,
        error: str = "",
        uncounted: bool = False,
    ) -> FinalStepClaim | Literal["NEXT", "WAIT", "LOST"]:
        """The chain's own step is to be tried again, and `ahead` goes before that: the claim of it, or `NEXT`, as by
        `go_on`. `WAIT`: `ahead` is "", so nothing goes any more, and the sweeper rings when the chain's own is due.

        past        what went ahead so far
        after_s     when the chain's own is due again; None: as it was set before
        error       why it failed; "": it was not tried
        uncounted   its claim was no try of it
        """
        reply = self._owned.finalize_ahead(
            claim.session_id,
            claim.turn_id,
            fence=claim.fence,
            step=claim.chain_step,
            ahead=ahead,
            past=past,
            retry_ms=-1 if after_s is None else int(after_s * 1000),
            failure=error,
            uncounted=int(uncounted),
            owner=claim.owner if stay else "",
            lease_ms=self._lease_ms,
        ).run()
        if not isinstance(reply, FinalizeAheadGo):
            return reply
        following = claim.followed_by(
            ahead, fence=reply.fence, tries=claim.tries, revision=reply.revision, sent=reply.sent
        )
        return replace(following, base=claim.chain_step, past=past, failing=reply.failing, details=[])

    def finish(self, claim: FinalStepClaim) -> Literal["FINISHED", "LOST"]:
        """The last step is over: `FINISHED`, or `LOST`. The turn's keys get their lifetime."""
        return self._owned.finalize_finish(
            claim.session_id, claim.turn_id, fence=claim.fence, step=claim.step, keep_ms=self._keep_ms
        ).run()

    def retry(self, claim: FinalStepClaim, after_s: float, error: str) -> Literal["WAIT", "LOST"]:
        """Try this step again after `after_s`; the sweeper rings then."""
        after_ms = int(after_s * 1000)
        return self._owned.finalize_retry(
            claim.session_id, claim.turn_id, fence=claim.fence, retry_ms=after_ms, failure=error
        ).run()

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """The ended turn as the steps see it; None when Redis no longer knows it."""
        found = self._scripts.client.many(ended_reads(self._keys.turn(session_id, turn_id)))
        return read_ended_turn(found, self._complete)

    def details(self, session_id: str, turn_id: str) -> TurnDetails:
        """The turn's conversation as far as the session's history still holds it, and its calls."""
        return _read_details(turn_id, self._scripts.turn_transcript(session_id, turn_id, most=MAX_READ_MESSAGES).run())

    def details_of(self, claim: FinalStepClaim) -> TurnDetails:
        """The same as `details`, as it was when the step was claimed where it was read then."""
        if not claim.details:
            return self.details(claim.session_id, claim.turn_id)
        # Taken out: it may be long.
        return _read_details(claim.turn_id, claim.details.pop())

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["RUNG", "ALREADY", "FULL"]:
        """Ring for a judge of the turn: `RUNG`, or `ALREADY` when that was a moment ago."""
        return self._scripts.judge_ring(
            session_id,
            turn_id,
            rung=f"{self._keys.turn(session_id, turn_id)}:rung:{judge}",
            judge=judge,
            hold_ms=JUDGE_RUNG_MS,
        ).run()

    def is_released_here(self, pin: str) -> bool:
        """Whether what is pinned to this digest goes on with a brain that this process has."""
        released = cast("str | None", self._scripts.client.hget(self._keys.released, pin))
        return released is not None and f"#{released}" in self._build.words

    def pass_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["PASSED", "ALREADY", "UNSERVED", "MINE"]:
        """Ring for a judge of a turn that this process may not judge where one may. `UNSERVED`: none is there."""
        return self._scripts.judge_pass(
            session_id,
            turn_id,
            rung=f"{self._keys.turn(session_id, turn_id)}:rung:{judge}",
            judge=judge,
            brains=self._build.words,
            hold_ms=JUDGE_RUNG_MS,
        ).run()

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        """The result as it went out."""
        body = self._scripts.client.get(self._keys.turn(session_id, turn_id) + ":result")
        return TurnResult.model_validate_json(cast(str, body)) if body else None

    def warn_later(self, session_id: str, turn_id: str, warning: str, *, applies: bool) -> None:
        """The result that is out has this warning among its others from now on, or (`applies` False) no longer."""
        key = self._keys.turn(session_id, turn_id) + ":result"
        for _ in range(MAX_AMEND_TRIES):
            body = cast("str | None", self._scripts.client.get(key))
            if body is None:
                return
            result = TurnResult.model_validate_json(body)
            others = tuple(one for one in result.warnings if one != warning)
            wanted = (*others, warning) if applies else others
            if set(wanted) == set(result.warnings):
                return
            amended = result.model_copy(update={"warnings": wanted}).model_dump_json()
            if self._scripts.result_amend(session_id, turn_id, known=body, body=amended).run() == "AMENDED":
                return

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        """Replace the text that goes out (citations appended). Only the holder of a step calls this."""
        key = self._keys.turn(session_id, turn_id)
        pipe = self._scripts.client.pipeline(transaction=True)
        pipe.hset(key, "text", text)
        pipe.hincrby(key, "revision", 1)
        pipe.execute()

    def publish(self, result: TurnResult) -> Literal["PUBLISHED", "ALREADY", "OPEN"]:
        """Send the result out, once: `PUBLISHED`, `ALREADY`, or `OPEN` when the turn has not ended."""
        return self._scripts.result_publish(
            result.session_id, result.turn_id, body=result.model_dump_json(), data=_result_event(result)
        ).run()


def _result_event(result: TurnResult) -> str:
    """What the final event tells, as JSON."""
    return json.dumps(
        {"ending": result.ending.value, "stop_reason": result.stop_reason.value, "elapsed_ms": result.elapsed_ms}
    )


def _following(
    claim: FinalStepClaim, next_step: str, reply: FinalizeSettleGo | FinalizeSendGo | Literal["NEXT", "LOST"]
) -> FinalStepClaim | Literal["NEXT", "LOST"]:
    if not isinstance(reply, FinalizeSettleGo | FinalizeSendGo):
        return reply
    return claim.followed_by(next_step, fence=reply.fence, tries=reply.tries, revision=reply.revision, sent=reply.sent)


def _said(messages: Sequence[object], replies: list[Any]) -> list[TurnTranscriptSaid]:
    """What `details_of` needs. The last of `replies` is that of the receipts, which is taken out. Nothing where Redis
    refused one."""
    receipts, trace = replies.pop(), replies[ENDED_TRACE]
    if isinstance(receipts, ResponseError) or isinstance(trace, ResponseError):
        return []
    return [
        TurnTranscriptSaid(as_mapping(trace), as_mapping(receipts), said.messages)
        for said in messages
        if isinstance(said, TurnMessagesSaid)
    ]


def _read_details(turn_id: str, reply: TurnTranscriptSaid) -> TurnDetails:
    messages = (Message.model_validate_json(item) for item in reply.messages)
    return TurnDetails(
        tuple(message for message in messages if message.turn == turn_id),
        read_trace(reply.trace),
        reply.receipts,
        read_approvals(reply.trace),
        outside_results(reply.trace),
    )

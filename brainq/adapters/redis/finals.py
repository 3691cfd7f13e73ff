"""The finalizer's chain in Redis: claim a step, go on, try later; and the result going out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

from redis.exceptions import ResponseError

from brainq.adapters.redis.connection import as_mapping
from brainq.adapters.redis.conversations import MAX_READ_MESSAGES
from brainq.adapters.redis.people import read_approvals
from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.adapters.redis.transcripts import Transcript, outside_results, read_trace
from brainq.adapters.redis.turn_view import ENDED_TRACE, ended_reads, read_ended_turn
from brainq.contracts.build import FORMATS_READ, WorkerBuild
from brainq.contracts.claim import FinalStepClaim, NoClaim, NoFinalStepClaim
from brainq.contracts.memory import RecordedTurn
from brainq.contracts.message import Message
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails

JOB_RUNG_MS = 5_000  # a job is not rung for more often than this
MAX_AMEND_TRIES = 8  # other steps of the same turn may be given up at the same moment
MISSING_BRAIN_WAIT_S = 300.0  # a deployment that brings a brain is rolled out in less


class _Go(NamedTuple):
    """The reply GO of finalize_claim."""

    fence: int
    tries: int
    revision: int
    sent: bool
    lost: int
    brain: str
    waited_ms: int
    past: str


class _Following(NamedTuple):
    """The reply GO of finalize_settle and finalize_send: the claim of the next step."""

    fence: int
    tries: int
    revision: int
    sent: bool


class RedisFinalChain:
    """The operations on the finalizer's chain in one Redis, each one script."""

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
        """Claim a step. The same round trip reads what `look` needs (`and_look`) and what `details_of` needs
        (`and_messages`)."""
        claim = self._claim(session_id, turn_id, step, owner)
        key = self._keys.turn(session_id, turn_id)
        calls: list[ScriptCall[Any]] = [claim, *([self._messages(session_id, turn_id)] if and_messages else [])]
        reads = ended_reads(key) if and_look or and_messages else []
        if and_messages:
            reads.append(("HGETALL", f"{key}:receipts"))
        (reply, *messages), replies = self._owned.pipeline(calls, reads)
        if isinstance(reply, ResponseError):
            raise reply
        details = _read_with_claim(messages, replies) if and_messages else []
        if isinstance(reply, NoClaim):
            return reply
        return FinalStepClaim(
            session_id=session_id,
            turn_id=turn_id,
            step=step,
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
            done_before=_done_steps(reply.past),
        )

    @script_call("finalize_claim", patient=True, left_ms=int(MISSING_BRAIN_WAIT_S * 1000), GO=_Go, DROP=NoClaim)
    def _claim(self, session_id: str, turn_id: str, step: str, owner: str) -> ScriptCall[_Go | NoFinalStepClaim]: ...

    @script_call("turn_messages", patient=True, most=MAX_READ_MESSAGES, SAID=tuple)
    def _messages(self, session_id: str, turn_id: str) -> ScriptCall[tuple[str, ...]]: ...

    def look(self, claim: FinalStepClaim) -> EndedTurn | None:
        """Return the ended turn as it was at this claim, or None if it is no longer in Redis."""
        if not claim.replies:
            return self.ended(claim.session_id, claim.turn_id)
        # Taken out: they may be long.
        found = list(claim.replies)
        claim.replies.clear()
        for reply in found:
            if isinstance(reply, ResponseError):
                raise reply
        return read_ended_turn(found, self._complete)

    @script("finalize_beat")
    def beat(self, claim: FinalStepClaim) -> Literal["OK", "LOST"]:
        """Renew the lease of a step."""
        ...

    def go_on(self, claim: FinalStepClaim, next_step: str, *, stay: bool) -> FinalStepClaim | Literal["NEXT", "LOST"]:
        """End this step. With `stay`, returns the claim of `next_step` if its owner may take it at once. `NEXT`: the
        next step was rung for."""
        return _following(claim, next_step, self._settle(claim, next_step, stay))

    @script("finalize_settle", patient=True, GO=_Following)
    def _settle(self, claim: FinalStepClaim, next_step: str, stay: bool) -> _Following | Literal["NEXT", "LOST"]: ...

    def send(
        self, claim: FinalStepClaim, next_step: str, result: TurnResult, *, stay: bool
    ) -> FinalStepClaim | Literal["NEXT", "LOST"]:
        """End this step as `go_on` does, and send the result out if it has not gone out. A lost claim sends nothing."""
        return _following(claim, next_step, self._send(claim, next_step, result, stay))

    @script("finalize_send", patient=True, GO=_Following)
    def _send(
        self, claim: FinalStepClaim, next_step: str, result: TurnResult, stay: bool
    ) -> _Following | Literal["NEXT", "LOST"]: ...

    @script("finalize_finish", patient=True)
    def finish(self, claim: FinalStepClaim) -> Literal["FINISHED", "LOST"]:
        """End the last step, and give the turn's keys their lifetime."""
        ...

    @script("finalize_retry", patient=True, retry_ms=Parameter("after_s"), failure=Parameter("error"))
    def retry(self, claim: FinalStepClaim, after_s: float, error: str) -> Literal["WAIT", "LOST"]:
        """Schedule a retry of this step in `after_s` seconds. The sweeper publishes it when it is due."""
        ...

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """Return the ended turn as the steps see it, or None if it is no longer in Redis."""
        found = self._scripts.client.many(ended_reads(self._keys.turn(session_id, turn_id)))
        return read_ended_turn(found, self._complete)

    def details(self, session_id: str, turn_id: str) -> TurnDetails:
        """Return the part of the turn's conversation that is still in the session's history, and its calls."""
        return _read_details(turn_id, self._transcript(session_id, turn_id))

    @script("turn_transcript", most=MAX_READ_MESSAGES, SAID=Transcript)
    def _transcript(self, session_id: str, turn_id: str) -> Transcript: ...

    def details_of(self, claim: FinalStepClaim) -> TurnDetails:
        """Return the details that were read at the claim, or read them now."""
        if not claim.details:
            return self.details(claim.session_id, claim.turn_id)
        # Taken out: it may be long.
        return _read_details(claim.turn_id, claim.details.pop())

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["RUNG", "ALREADY", "FULL"]:
        """Ring for a judge of the turn. `ALREADY`: it was rung for a moment ago."""
        return self._ring_job(session_id, turn_id, "judges", f"judge.{judge}", judge)

    def ring_step(self, session_id: str, turn_id: str, step: str) -> Literal["RUNG", "ALREADY", "FULL"]:
        """Ring for a step of the turn that is a job. `ALREADY`: it was rung for a moment ago."""
        return self._ring_job(session_id, turn_id, "finalize_later", f"final.{step}.job", step)

    @script("job_ring", hold_ms=JOB_RUNG_MS)
    def _ring_job(
        self, session_id: str, turn_id: str, queue: str, bell: str, job: str
    ) -> Literal["RUNG", "ALREADY", "FULL"]: ...

    def may_finish(self, turn: EndedTurn | RecordedTurn) -> bool:
        """Return whether this process can read the turn and, if it is pinned, has its brain or the one that it is
        released to."""
        if turn.format not in FORMATS_READ:
            return False
        if not turn.pin or f"#{turn.pin}" in self._build.words:
            return True
        released = cast("str | None", self._scripts.client.hget(self._keys.released, turn.pin))
        return released is not None and f"#{released}" in self._build.words

    def pass_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["PASSED", "ALREADY", "UNSERVED", "MINE"]:
        """Ring for a judge of a turn where a worker may run it, because this process may not. `UNSERVED`: there is no
        such worker."""
        return self._pass_judge(session_id, turn_id, f"judge.{judge}", judge)

    @script("judge_pass", hold_ms=JOB_RUNG_MS)
    def _pass_judge(
        self, session_id: str, turn_id: str, bell: str, judge: str
    ) -> Literal["PASSED", "ALREADY", "UNSERVED", "MINE"]: ...

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        """Return the published result."""
        body = self._scripts.client.get(self._keys.turn(session_id, turn_id) + ":result")
        return TurnResult.from_stored(cast(str, body)) if body else None

    def warn_later(self, session_id: str, turn_id: str, warning: str, *, applies: bool) -> None:
        """Add a warning to the published result, or remove it if `applies` is False."""
        key = self._keys.turn(session_id, turn_id) + ":result"
        for _ in range(MAX_AMEND_TRIES):
            body = cast("str | None", self._scripts.client.get(key))
            if body is None:
                return
            result = TurnResult.from_stored(body)
            others = tuple(one for one in result.warnings if one != warning)
            wanted = (*others, warning) if applies else others
            if set(wanted) == set(result.warnings):
                return
            amended = result.model_copy(update={"warnings": wanted}).model_dump_json()
            if self._amend(session_id, turn_id, body, amended) == "AMENDED":
                return

    @script("result_amend")
    def _amend(self, session_id: str, turn_id: str, known: str, body: str) -> Literal["AMENDED", "OTHER"]: ...

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        """Replace the text that goes out (citations appended). Only the holder of a step calls this."""
        key = self._keys.turn(session_id, turn_id)
        pipe = self._scripts.client.pipeline(transaction=True)
        pipe.hset(key, "text", text)
        pipe.hincrby(key, "revision", 1)
        pipe.execute()

    def note_failing(self, claim: FinalStepClaim, warning: str) -> None:
        """Add a warning about a step that the chain continues without to the result, which has not gone out."""
        key = self._keys.turn(claim.session_id, claim.turn_id)
        pipe = self._scripts.client.pipeline(transaction=True)
        pipe.hset(key, "fin_note", warning)
        pipe.hincrby(key, "revision", 1)
        pipe.execute()

    @script("result_publish")
    def publish(self, result: TurnResult) -> Literal["PUBLISHED", "ALREADY", "OPEN"]:
        """Send the result out, once. `OPEN`: the turn has not ended."""
        ...


def _done_steps(past: str) -> frozenset[str]:
    """Return the steps that a build before 28 November 2026 did ahead of a failing one. `past` maps each of them to
    null."""
    found = cast("dict[str, object]", json.loads(past)) if past else {}
    return frozenset(step for step, failures in found.items() if failures is None)


def _following(
    claim: FinalStepClaim, next_step: str, reply: _Following | Literal["NEXT", "LOST"]
) -> FinalStepClaim | Literal["NEXT", "LOST"]:
    return reply if isinstance(reply, str) else claim.followed_by(next_step, **reply._asdict())


def _read_with_claim(messages: Sequence[Any], replies: list[Any]) -> list[Transcript]:
    """Return what `details_of` needs, or an empty list if Redis refused a read. The last of `replies` is for the
    receipts and is removed."""
    receipts, trace = replies.pop(), replies[ENDED_TRACE]
    if isinstance(receipts, ResponseError) or isinstance(trace, ResponseError):
        return []
    return [Transcript(as_mapping(trace), as_mapping(receipts), said) for said in messages if isinstance(said, tuple)]


def _read_details(turn_id: str, reply: Transcript) -> TurnDetails:
    messages = (Message.from_stored(item) for item in reply.messages)
    return TurnDetails(
        tuple(message for message in messages if message.turn == turn_id),
        read_trace(reply.trace),
        reply.receipts,
        read_approvals(reply.trace),
        outside_results(reply.trace),
    )

"""What scripts open and claim for the thread that runs them: the offer to a script, and the claims that it returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from brainq.adapters.redis.connection import Command, as_mapping
from brainq.adapters.redis.conversations import EMPTY_HISTORY, MAX_READ_MESSAGES, CachedHistory, Conversations
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.transcripts import Transcript
from brainq.adapters.redis.turn_view import ENDED_TRACE, ViewReplies, ended_reads, view_reads
from brainq.contracts.build import WorkerBuild
from brainq.contracts.claim import CallClaim, CallRef, FinalStepClaim, StayOffer, TurnClaim
from brainq.contracts.status import Effect
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS

Reply = TypeVar("Reply")


class GrantedCall(NamedTuple):
    """The reply GO of call_claim."""

    spec: str
    cap_ms: int
    remaining_ms: int
    effect: Effect
    tool: str
    step: int
    edited: bool
    brain: str
    waited_ms: int
    lane_waited_ms: int

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim:
        """Return the claim of an attempt."""
        spec: dict[str, Any] = json.loads(self.spec)
        return CallClaim(
            session_id=ref.session_id,
            turn_id=ref.turn_id,
            call_id=ref.call_id,
            attempt=attempt,
            owner=owner,
            tool=self.tool,
            effect=self.effect,
            step=self.step,
            arguments=spec["arguments"],
            args_hash=spec["hash"],
            cap_ms=self.cap_ms,
            remaining_ms=self.remaining_ms,
            lanes=tuple(spec["lanes"]),
            cwd=spec.get("cwd"),
            metadata=spec.get("metadata"),
            edited=self.edited,
            brain=self.brain,
            waited_ms=self.waited_ms,
            lane_waited_ms=self.lane_waited_ms,
            traceparent=spec.get("traceparent"),
        )


@dataclass(frozen=True, slots=True)
class OpenedCall:
    """The reply CALL of a script."""

    call_id: str
    attempt: int
    granted: GrantedCall


class OpenedTurn(NamedTuple):
    """The reply TURN of a script. `found` is what was read of the turn."""

    fence: int
    now_ms: int
    found: tuple[Any, ...]


def opened_call(call_id: str, attempt: int, *granted: Any) -> OpenedCall:
    """Return the reply CALL of these fields."""
    return OpenedCall(call_id, attempt, GrantedCall(*granted))


def unless_claimed(reply: Reply) -> Callable[[Sequence[str]], Reply]:
    """Return a function that reads a reply to an offer that the script did not use, if there was one. It returns
    `reply`, and counts the reason if the script opened something."""

    def read(declined: Sequence[str]) -> Reply:
        for reason in declined:
            COUNTERS.add(m.DECLINED, reason)
        return reply

    return read


@dataclass(frozen=True, slots=True)
class StayRequest:
    """The offer of a thread, as a script takes it.

    known   what this process knew of the session's history
    """

    queues: tuple[str, ...] = ()
    text: str = ""
    owner: str = ""
    known: CachedHistory = EMPTY_HISTORY


NO_STAY = StayRequest()


@dataclass(frozen=True, slots=True)
class OpenedWork:
    """Makes offers to scripts, and claims from their replies."""

    keys: Keys
    conversations: Conversations
    build: WorkerBuild
    lease_ms: int

    def after_calls(self, offer: StayOffer | None, session_id: str, turn_id: str) -> StayRequest:
        """Return the request to a script that may open a call or the next step of this turn."""
        if offer is None:
            return NO_STAY
        known = self.conversations.known(self.keys.of_session(session_id, "history"))
        text = self._text(offer, view_reads(self.keys, session_id, turn_id, known))
        return StayRequest(offer.queues, text, offer.owner, known)

    def after_end(self, offer: StayOffer | None, session_id: str, turn_id: str) -> StayRequest:
        """Return the request to the script that ends this turn."""
        if offer is None:
            return NO_STAY
        key = self.keys.turn(session_id, turn_id)
        reads = [*ended_reads(key), ("HGETALL", f"{key}:receipts")]
        return StayRequest(offer.queues, self._text(offer, reads, most=MAX_READ_MESSAGES), offer.owner)

    def _text(self, offer: StayOffer, reads: Sequence[Command], **more: int) -> str:
        fields = {
            "owner": offer.owner,
            "lease_ms": self.lease_ms,
            "brains": " ".join(self.build.words),
            "declared": self.build.declared,
            "reads": reads,
        }
        return json.dumps(fields | more, separators=(",", ":"))

    def claim(
        self, request: StayRequest, session_id: str, turn_id: str, opened: OpenedCall | OpenedTurn
    ) -> CallClaim | TurnClaim:
        """Return the claim of what the script opened."""
        if isinstance(opened, OpenedCall):
            return opened.granted.claim(CallRef(session_id, turn_id, opened.call_id), opened.attempt, request.owner)
        seen = ViewReplies(request.known, list(opened.found))
        return TurnClaim(session_id, turn_id, request.owner, opened.fence, opened.now_ms, seen)

    @staticmethod
    def first_step(
        request: StayRequest, session_id: str, turn_id: str, step: str, brain: str, found: Sequence[Any]
    ) -> FinalStepClaim:
        """Return the claim of the first finalizer step. `found` is what was read of the turn, then its messages."""
        reads = len(ended_reads(""))
        replies, receipts = list(found[:reads]), found[reads]
        read = Transcript(as_mapping(replies[ENDED_TRACE]), as_mapping(receipts), tuple(found[reads + 1 :]))
        return FinalStepClaim(
            *(session_id, turn_id, step, request.owner), fence=1, tries=1, replies=replies, details=[read], brain=brain
        )

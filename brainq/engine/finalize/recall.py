"""Reads ended turns: from Redis while it has them, then from SQL. A process reads each turn of Redis once."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.claim import FinalStepClaim, NoFinalStepClaim
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.memory import RecordedTurn
from brainq.contracts.message import Message, with_attachment_labels
from brainq.contracts.model import TokenUsage
from brainq.contracts.turn import CONTENT_NOT_STORED, TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.engine.finalize.result import citations, with_citations
from brainq.errors import TurnNotFound

if TYPE_CHECKING:
    from brainq.adapters.redis.finals import RedisFinalChain
    from brainq.adapters.sql.repositories.turns import Turns

OPENING_STEP = 0  # calls made before the first step are brainq's, no tool use of the model's
MAX_CACHED_BYTES = 16_000_000  # about; a chain's steps come far apart when many turns end at once
BYTES_A_TURN = 5_000  # beside its texts
BYTES_A_MESSAGE = 1_500  # of a history that its request brought, beside its text
HISTORY_TURNS = 10
NO_CONTENT = (
    "the turn's content is gone: Redis has let it go and SQL keeps none of it (redact_logs); keep turns longer in "
    "Redis (BRAINQ_KEEP_TURN_S)"
)
TOKEN_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def recorded_turn(
    turn: EndedTurn, messages: Sequence[Message], context_pack_json: str | None, step_key: str
) -> RecordedTurn:
    """Return what extractors, learners and judges read of the turn, whose own `messages` these are. The list of sources
    that brainq put under the answer is taken off."""
    local, web = citations(turn, "local"), citations(turn, "web")
    text = turn.text
    if local or web:
        text = text.removesuffix(with_citations("", local, web))
    return RecordedTurn(
        turn_id=turn.request.turn_id,
        session_id=turn.request.session_id,
        user_message=turn.request.user_message,
        text=text,
        ending=turn.ending,
        stop_reason=turn.stop_reason,
        messages=tuple(messages),
        context_pack_json=context_pack_json,
        tools=turn.tools,
        citations=(*local, *web),
        turn_number=turn.turn_number,
        step_key=step_key,
        traceparent=turn.request.traceparent,
        pin=turn.pin,
        format=turn.format,
    )


_SHARED = {field.name for field in fields(EndedTurn)} & TurnResult.model_fields.keys()
"""What the finalizer's steps and the caller see under one name."""


def rebuilt_turn(
    request: TurnRequest,
    result: TurnResult,
    *,
    turn_number: int,
    trace: Iterable[ToolTraceEntry] = (),
    decision: RuntimeDecisionRecord | None = None,
) -> EndedTurn:
    """Return the turn as the finalizer's steps see it, from what SQL keeps.

    What only Redis knew is gone. `context_hash` and `prompt_hash` are known if the decision was recorded. The tools of
    calls that ran come from the decision or the trace, and the sources from the result: at most eight of each kind.
    """
    ran = (entry.tool for entry in trace if entry.started_at_ms and entry.step != OPENING_STEP)
    values: dict[str, Any] = {name: getattr(result, name) for name in _SHARED} | {
        "request": request,
        "error": result.error or "",
        "tools": tuple(dict.fromkeys(ran)) if decision is None else decision.tools,
        "usage": TokenUsage(**{name: getattr(result, name) for name in TOKEN_COUNTS}),
        "cost_usd": result.cost_usd or 0.0,
        "cost_known": result.cost_usd is not None,
        "sources": tuple(_source_rows(result)),
        "context_hash": "" if decision is None else decision.context_hash,
        "prompt_hash": "" if decision is None else decision.prompt_hash,
        "turn_number": turn_number,
        "failing_error": "",
        "notes": result.warnings,
    }
    return EndedTurn(**values)


def _source_rows(result: TurnResult) -> Iterator[Mapping[str, str]]:
    for kind, cited in (("local", result.local_citations), ("web", result.web_citations)):
        for citation in cited:
            yield {"kind": kind, "source": citation.source, "title": citation.title, "quote": citation.quote}
    for path in result.rendered_content_paths:
        yield {"kind": "rendered", "source": path}


class EndedTurnCache:
    """A cache of turns whose chains are under way. Those read first leave first.

    Nothing of an ended turn changes but its text, and each change counts up its revision.
    """

    def __init__(self, chain: RedisFinalChain, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._chain = chain
        self._max_bytes = max_bytes
        self._turns: OrderedDict[tuple[str, str], tuple[int, EndedTurn, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def claim(
        self, session_id: str, turn_id: str, step: str, owner: str, *, and_messages: bool
    ) -> FinalStepClaim | NoFinalStepClaim:
        """Claim a step. A turn that is not in the cache is read with it, and so are its messages if `and_messages`."""
        with self._lock:
            is_known = (session_id, turn_id) in self._turns
        return self._chain.claim(
            session_id, turn_id, step, owner, and_look=not is_known, and_messages=and_messages and not is_known
        )

    def turn(self, claim: FinalStepClaim) -> EndedTurn:
        """Return the turn as it was at this claim. Raises TurnNotFound if Redis no longer has it."""
        key = (claim.session_id, claim.turn_id)
        with self._lock:
            kept = self._turns.get(key)
        if kept is not None and kept[0] == claim.revision:
            return kept[1]
        turn = self._chain.look(claim)
        if turn is None:
            raise TurnNotFound(f"turn {claim.turn_id!r} is no longer in Redis")
        size = _taken_bytes(turn)
        with self._lock:
            self._drop(key)
            self._turns[key] = (claim.revision, turn, size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._turns)))
        return turn

    def finish(self, claim: FinalStepClaim) -> str:
        """Finish the turn's chain, and forget the turn."""
        word = self._chain.finish(claim)
        with self._lock:
            self._drop((claim.session_id, claim.turn_id))
        return word

    def _drop(self, key: tuple[str, str]) -> None:
        kept = self._turns.pop(key, None)
        self._bytes -= 0 if kept is None else kept[2]


def _taken_bytes(turn: EndedTurn) -> int:
    """Return about how many bytes of memory the turn takes."""
    request = turn.request
    texts = [turn.text, turn.error, turn.context_pack_json, turn.last_agent_message, turn.diff, request.user_message]
    texts += [message.content for message in request.history]
    texts += [text for source in turn.sources for text in source.values()]
    return BYTES_A_TURN + BYTES_A_MESSAGE * len(request.history) + sum(map(sys.getsizeof, texts))


@dataclass(eq=False)
class Recall:
    """Reads ended turns from Redis while it has them, then from SQL.

    The conversation is read from SQL first, which has it whole once the turn is logged, unless it is redacted: a long
    session's history in Redis may have lost its beginning.

    system_prompt   returns the one that an ended turn had; "" if it cannot be made again
    """

    live: RedisFinalChain
    turns: Turns
    transcript: Callable[[str], tuple[Message, ...]]
    trace: Callable[[str], Sequence[ToolTraceEntry]]
    decision: Callable[[str], RuntimeDecisionRecord | None]
    system_prompt: Callable[[EndedTurn], str]

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """Return the turn; None if neither Redis nor SQL knows how it ended."""
        return self.live.ended(session_id, turn_id) or self._rebuilt(turn_id)

    def messages(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """Return the turn's own messages; none if they are gone, or SQL keeps them redacted."""
        return self.transcript(turn_id) or self.live.details(session_id, turn_id).messages

    def result(self, turn_id: str) -> TurnResult | None:
        """Return the result; None if SQL does not have it yet."""
        return self.turns.result(turn_id)

    def is_redacted(self, turn_id: str) -> bool:
        """Return whether SQL has the ended turn without its content (`redact_logs`)."""
        request = self.turns.request(turn_id)
        return request is not None and request.user_message == CONTENT_NOT_STORED

    def is_gone(self, session_id: str, turn_id: str) -> bool:
        """Return whether the turn's content is gone: Redis has let it go, and SQL keeps none of it."""
        return self.is_redacted(turn_id) and self.live.ended(session_id, turn_id) is None

    def recorded(self, session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        """Return the turn with its conversation; None if either is gone."""
        turn, messages = self.ended(session_id, turn_id), self.messages(session_id, turn_id)
        if turn is None or not messages:
            return None
        recorded = recorded_turn(turn, messages, turn.context_pack_json, step_key)
        return recorded.model_copy(
            update={"system_prompt": self.system_prompt(turn), "history": self._history(turn.request)}
        )

    def _history(self, request: TurnRequest) -> tuple[Message, ...]:
        """Return the messages of the session's last turns before this one, oldest first, as far as SQL keeps them."""
        if request.kind == "review" and request.seed == "empty":
            return ()
        messages: list[Message] = []
        for earlier in self.turns.history(request.session_id, request.turn_id, HISTORY_TURNS):
            if question := with_attachment_labels(earlier.user, earlier.attachments):
                messages.append(Message(role="user", content=question))
            if earlier.assistant:
                messages.append(Message(role="assistant", content=earlier.assistant))
        return tuple(messages)

    def _rebuilt(self, turn_id: str) -> EndedTurn | None:
        request, result = self.turns.request(turn_id), self.turns.result(turn_id)
        if request is None or result is None:
            return None
        return rebuilt_turn(
            request,
            result,
            turn_number=self.turns.number(turn_id),
            trace=self.trace(turn_id),
            decision=self.decision(turn_id),
        )


@dataclass(eq=False)
class LateChain:
    """The chain as a step sees it that runs outside of it, whether Redis still has the turn or not.

    What SQL or a caller has stays as it is: a text is no longer changed, a result not sent again.
    """

    recall: Recall

    def details_of(self, claim: FinalStepClaim) -> TurnDetails:
        """Return the turn's conversation and calls, as far as Redis has them."""
        return self.recall.live.details(claim.session_id, claim.turn_id)

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> str:
        """Ring for a judge of the turn."""
        return self.recall.live.ring_judge(session_id, turn_id, judge)

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        """Return the result that went out; None if it has not yet."""
        return self.recall.live.published(session_id, turn_id) or self.recall.result(turn_id)

    def publish(self, result: TurnResult) -> None:
        """Send the result out if Redis has the turn and has not sent it. SQL's copy goes, unless it is redacted."""
        kept = None if self.recall.is_redacted(result.turn_id) else self.recall.result(result.turn_id)
        self.recall.live.publish(kept or result)

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        """Replace the turn's text if its result has not gone out."""
        # Writing to a turn that Redis has let go would leave a key without a lifetime behind.
        if self.published(session_id, turn_id) is None:
            self.recall.live.set_text(session_id, turn_id, text)

"""The reader of ended turns. It reads each turn once: from Redis if it still has the turn, otherwise from SQL."""

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

OPENING_STEP = 0  # brainq itself makes the calls before the first step; they are not the model's
MAX_CACHED_BYTES = 16_000_000  # approximate; the steps of a chain are far apart when many turns end at once
BYTES_A_TURN = 5_000  # without its texts
BYTES_A_MESSAGE = 1_500  # of the history in its request, without the text
HISTORY_TURNS = 10
NO_CONTENT = (
    "the turn's content is no longer available: it has expired in Redis, and SQL keeps no content (redact_logs); "
    "raise BRAINQ_KEEP_TURN_S to keep turns longer in Redis"
)
TOKEN_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def recorded_turn(
    turn: EndedTurn, messages: Sequence[Message], context_pack_json: str | None, step_key: str
) -> RecordedTurn:
    """Return the turn as extractors, learners and judges read it: without the sources that brainq appended to the
    answer."""
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
"""The fields that `EndedTurn` and `TurnResult` have under the same name."""


def rebuilt_turn(
    request: TurnRequest,
    result: TurnResult,
    *,
    turn_number: int,
    trace: Iterable[ToolTraceEntry] = (),
    decision: RuntimeDecisionRecord | None = None,
) -> EndedTurn:
    """Rebuild the turn for finalizer steps from the rows in SQL.

    What was only in Redis is missing. `context_hash` and `prompt_hash` are "" if no decision was recorded. The tools
    come from the decision or the trace, and at most eight sources of each kind come from the result.
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
    """A cache of turns whose chains are in progress. The turn that was cached first is evicted first.

    Only the text of an ended turn can change, and each change increments the turn's revision.
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
        """Claim a step. A turn that is not cached is read with it, and so are its messages if `and_messages`."""
        with self._lock:
            is_known = (session_id, turn_id) in self._turns
        return self._chain.claim(
            session_id, turn_id, step, owner, and_look=not is_known, and_messages=and_messages and not is_known
        )

    def turn(self, claim: FinalStepClaim) -> EndedTurn:
        """Return the turn at the revision of this claim. Raises TurnNotFound if Redis no longer has it."""
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
        """Finish the turn's chain and remove the turn from the cache. Returns the script's outcome."""
        word = self._chain.finish(claim)
        with self._lock:
            self._drop((claim.session_id, claim.turn_id))
        return word

    def _drop(self, key: tuple[str, str]) -> None:
        kept = self._turns.pop(key, None)
        self._bytes -= 0 if kept is None else kept[2]


def _taken_bytes(turn: EndedTurn) -> int:
    """Return the approximate memory that the turn takes, in bytes."""
    request = turn.request
    texts = [turn.text, turn.error, turn.context_pack_json, turn.last_agent_message, turn.diff, request.user_message]
    texts += [message.content for message in request.history]
    texts += [text for source in turn.sources for text in source.values()]
    return BYTES_A_TURN + BYTES_A_MESSAGE * len(request.history) + sum(map(sys.getsizeof, texts))


@dataclass(eq=False)
class Recall:
    """A reader of ended turns: from Redis if it still has them, otherwise from SQL.

    The conversation is read from SQL first: it is complete there once logged, unless it is redacted. Redis may have
    dropped the beginning of a long session.

    system_prompt   returns the system prompt of an ended turn, or "" if it cannot be rebuilt
    """

    live: RedisFinalChain
    turns: Turns
    transcript: Callable[[str], tuple[Message, ...]]
    trace: Callable[[str], Sequence[ToolTraceEntry]]
    decision: Callable[[str], RuntimeDecisionRecord | None]
    system_prompt: Callable[[EndedTurn], str]

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """Return the turn, or None if neither Redis nor SQL knows how it ended."""
        return self.live.ended(session_id, turn_id) or self._rebuilt(turn_id)

    def messages(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """Return the turn's own messages, or none if they are deleted or redacted."""
        return self.transcript(turn_id) or self.live.details(session_id, turn_id).messages

    def result(self, turn_id: str) -> TurnResult | None:
        """Return the result, or None if SQL does not have it yet."""
        return self.turns.result(turn_id)

    def is_redacted(self, turn_id: str) -> bool:
        """Return whether SQL keeps the ended turn without its content (`redact_logs`)."""
        request = self.turns.request(turn_id)
        return request is not None and request.user_message == CONTENT_NOT_STORED

    def is_gone(self, session_id: str, turn_id: str) -> bool:
        """Return whether the turn's content is lost: Redis no longer has the turn, and SQL keeps it without content."""
        return self.is_redacted(turn_id) and self.live.ended(session_id, turn_id) is None

    def recorded(self, session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        """Return the turn with its conversation, or None if either is missing."""
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
    """The chain as seen by a step that runs outside it, even if Redis no longer has the turn.

    Once the result is in SQL or has been published, it stays as it is: the text is not changed and the result is not
    sent again.
    """

    recall: Recall

    def details_of(self, claim: FinalStepClaim) -> TurnDetails:
        """Return the turn's conversation and calls, as far as Redis has them."""
        return self.recall.live.details(claim.session_id, claim.turn_id)

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> str:
        """Ring a doorbell for a judgement of the turn. Returns the script's outcome."""
        return self.recall.live.ring_judge(session_id, turn_id, judge)

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        """Return the published result, or None if there is none yet."""
        return self.recall.live.published(session_id, turn_id) or self.recall.result(turn_id)

    def publish(self, result: TurnResult) -> None:
        """Publish the result if Redis has the turn and has not published it. SQL's copy is preferred unless it is
        redacted."""
        kept = None if self.recall.is_redacted(result.turn_id) else self.recall.result(result.turn_id)
        self.recall.live.publish(kept or result)

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        """Replace the turn's text unless its result has been published."""
        # A write to a turn that has expired would create a key without a lifetime.
        if self.published(session_id, turn_id) is None:
            self.recall.live.set_text(session_id, turn_id, text)

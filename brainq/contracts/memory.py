"""Memory: an ended turn for extractors, learners and judges; facts about the user, and what a turn taught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from brainq.contracts.base import OfTurn, Wire
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import Citation

MemoryKind = Literal["fact", "preference", "habit"]
ObservationKind = Literal["topic", "source", "open_question"]


class RecordedTurn(OfTurn):
    """A turn with its whole conversation.

    messages: the turn's own messages in order, the user's first, including tool calls and results.
    context_pack_json: the pack that the turn began with, merged with the preferences found in memory.
    tools: the names of the tools that the model used, in the order of their first use.
    system_prompt: the turn's system prompt, or "" if it is no longer known.
    history: the session's previous turns, oldest first.
    step_key: an idempotency key: the same for every try of the finalizer step.
    traceparent: from the turn's request.
    pin: the digest of the brain that it is pinned to, or "" if it is not pinned or the digest is no longer known.
    format: the format of its state in Redis, while that exists.
    """

    user_message: str
    text: str
    ending: Ending
    stop_reason: StopReason
    messages: tuple[Message, ...] = ()
    context_pack_json: str | None = None
    tools: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    turn_number: int = 1
    system_prompt: str = ""
    history: tuple[Message, ...] = ()
    step_key: str = ""
    traceparent: str | None = None
    pin: str = ""
    format: int = 1


class MemoryItem(Wire):
    """One thing worth remembering, as one sentence that needs no context."""

    kind: MemoryKind
    text: str = Field(min_length=1, max_length=1000)


class RetrievedMemory(Wire):
    """The result of a retriever for a query. `text` is for the model; the other two join the context pack."""

    text: str = ""
    preferences: tuple[str, ...] = ()
    habits: tuple[str, ...] = ()


class Observation(Wire):
    """A lesson of a turn about the session's subject: a topic, a useful source, or an open question."""

    kind: ObservationKind
    text: str = Field(min_length=1, max_length=1000)


@runtime_checkable
class MemoryRetriever(Protocol):
    """A source of known facts. It runs as a call on the read-only pool at the start of a turn."""

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory: ...


@runtime_checkable
class MemoryExtractor(Protocol):
    """A selector of what is worth remembering from an ended turn. brainq stores the result and merges repeated items.

    It may run again after a crash: its own effects need `turn.step_key` as idempotency key.
    """

    def extract_turn(self, turn: RecordedTurn) -> Sequence[MemoryItem]: ...


@runtime_checkable
class AutonomousResearchLearner(Protocol):
    """A learner from ended turns. It returns what a turn taught.

    `source_event_id` is `chat_message:<id>`, the user's message in SQL.
    """

    def observe_turn(self, turn: RecordedTurn, source_event_id: str) -> Sequence[Observation]: ...

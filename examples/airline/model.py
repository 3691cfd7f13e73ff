"""The recorded replies as a model: it answers what it answered then, and holds brainq to the conversation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.engine.models.scripted import ScriptedProvider
from brainq.errors import ProviderError
from examples.airline.recorded import RecordedSession, RecordedStep, RecordedTurn, load_sessions, place_of

LAST_WORDS = "Is there anything else I can help you with?"
"""Ends a turn whose recording stops at calls."""


class RecordedModel:
    """Answers by the ids of a request alone, so that a step that is run again gets the same reply.

    A request whose messages are not the recorded conversation so far is refused with ProviderError (kind
    `recording`): every turn must have its user's message, and every call exactly one tool message, in order.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._sessions: dict[str, RecordedSession] = {}

    def provider(self) -> ScriptedProvider:
        return ScriptedProvider(rules=self.answer, name="recorded")

    def answer(self, request: ModelRequest) -> ModelReply:
        _, number = place_of(request.turn_id)
        session = self._session(self.check(request))
        return _reply(steps_of(session.turns[number - 1])[request.step - 1])

    def check(self, request: ModelRequest) -> str:
        """The id of the request's session. Raises ProviderError if its messages are not as recorded."""
        session_id, number = place_of(request.turn_id)
        session = self._session(session_id)
        if difference := conversation_difference(session, number, request.step, request.messages):
            raise ProviderError(
                f"{request.turn_id} step {request.step}: {difference}", kind="recording", retryable=False
            )
        return session_id

    def _session(self, session_id: str) -> RecordedSession:
        with self._lock:
            if not self._sessions:
                self._sessions = {session.session_id: session for session in load_sessions(self._path)}
            return self._sessions[session_id]


def steps_of(turn: RecordedTurn) -> tuple[RecordedStep, ...]:
    """The turn's steps, ended by a reply of text."""
    ends = bool(turn.steps) and not turn.steps[-1].calls
    return turn.steps if ends else (*turn.steps, RecordedStep(LAST_WORDS, ()))


def conversation_difference(
    session: RecordedSession, number: int, step: int, messages: Sequence[Message]
) -> str | None:
    """What is wrong with the messages of a request for `step` of turn `number`; None if they are as recorded.

    Only what was said in a turn counts, not what a preparer adds.
    """
    expected: list[str] = []
    for turn in session.turns[: number - 1]:
        expected += _shape(turn, len(steps_of(turn)))
    expected += _shape(session.turns[number - 1], step - 1)
    seen = [_word(message) for message in messages if message.turn and message.role != "system"]
    if seen == expected:
        return None
    at = next((i for i, pair in enumerate(zip(seen, expected, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return f"the conversation has {len(seen)} messages, recorded were {len(expected)}"
    return f"message {at + 1} is {seen[at][:80]!r}, recorded was {expected[at][:80]!r}"


def _shape(turn: RecordedTurn, steps: int) -> list[str]:
    words = [f"user {turn.user}"]
    for number, step in enumerate(steps_of(turn)[:steps], 1):
        words.append(" ".join(["assistant", *(call.tool for call in step.calls)]))
        words += [f"tool {call.tool} c{number}-{index}" for index, call in enumerate(step.calls)]
    return words


def _word(message: Message) -> str:
    if message.role == "user":
        return f"user {message.content}"
    if message.role == "tool":
        return f"tool {message.name} {message.call_id}"
    return " ".join([message.role, *(call.name for call in message.calls)])


def _reply(step: RecordedStep) -> ModelReply:
    calls = tuple(
        ToolCall(id=f"call_{index}", name=call.tool, arguments=call.arguments, provider_id=f"call_{index}")
        for index, call in enumerate(step.calls)
    )
    return ModelReply(
        text=step.text,
        calls=calls,
        usage=TokenUsage(input_tokens=step.input_tokens, output_tokens=step.output_tokens),
        finish_reason="tool_calls" if calls else "stop",
    )

"""What was said and done in a turn, as far as Redis still has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from brainq.contracts.message import Message
from brainq.contracts.trace import ToolTraceEntry
from brainq.state.conversations import MOST_READ
from brainq.state.keys import Keys
from brainq.state.trace_rows import read_results, read_trace
from brainq.state.typed_scripts import Scripts


@dataclass(frozen=True, slots=True)
class RedisTranscripts:
    """Reads of one turn, each at most `MOST_READ` messages; empty for a turn that Redis does not know."""

    scripts: Scripts
    keys: Keys

    def said(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """The turn's messages, as its history has them."""
        reply = self.scripts.turn_said(session_id, turn_id, most=MOST_READ)
        messages = (Message.model_validate_json(item) for item in reply.messages)
        return tuple(message for message in messages if message.turn == turn_id)

    def calls(self, session_id: str, turn_id: str) -> tuple[tuple[ToolTraceEntry, ...], tuple[Message, ...]]:
        """The trace of each call, and the messages with their arguments and results."""
        # First the trace: a result that moves into the history meanwhile is met twice, and not missed.
        fields = cast(
            "dict[str, str]", self.scripts.client.hgetall(self.keys.named("trace", session_id, turn_id))
        )
        if not fields:
            return (), ()
        return read_trace(fields), (*read_results(fields), *self.said(session_id, turn_id))

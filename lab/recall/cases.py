"""The recorded turns in the form in which the engine sees them: the message, the conversation before it, the called
tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from brainq.contracts.message import Message
from brainq.engine.turn.prompt.tool_selection import SelectionContext, selection_context
from brainq.runtime.text.estimate import with_sizes
from examples.airline.recorded import RecordedSession, RecordedTurn


@dataclass(frozen=True, slots=True)
class Case:
    """A turn with calls. `called` has a tool's name once for each of its calls, over all steps of the turn."""

    query: str
    context: SelectionContext
    called: tuple[str, ...]


def cases(sessions: Iterable[RecordedSession]) -> Iterator[Case]:
    """Yield every turn in which the model called a tool. The others have no tool to find."""
    for session in sessions:
        history: list[Message] = []
        for number, turn in enumerate(session.turns, 1):
            turn_id = session.turn_id(number)
            called = tuple(call.tool for step in turn.steps for call in step.calls)
            if called:
                yield Case(turn.user, selection_context(with_sizes(history), turn_id), called)
            history += _messages(turn, turn_id)


def _messages(turn: RecordedTurn, turn_id: str) -> Iterator[Message]:
    """Return the turn's messages as in a session's history, as far as selection reads them."""
    yield Message(role="user", content=turn.user, turn=turn_id)
    for number, step in enumerate(turn.steps, 1):
        yield Message(role="assistant", content=step.text, turn=turn_id, step=number)

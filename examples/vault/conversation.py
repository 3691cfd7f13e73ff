"""What a rule sees of a turn: the user's words, and the results of the calls it asked for, in order.

A rule is written straight down, as if calls returned at once:

    loops, hits = turn.need(("list_open_loops", {}), ("local_search", {"query": topic}))

Each model step runs the rule from its start. Results that are there are returned; at the first that is not, `need`
raises `CallsNeeded`, and the reply asks for those calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brainq import Message

Wanted = tuple[str, dict[str, Any]]


class CallsNeeded(Exception):
    """These calls have to be made before the rule can go on."""

    def __init__(self, wanted: tuple[Wanted, ...]) -> None:
        super().__init__(", ".join(name for name, _ in wanted))
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class Result:
    """What one call brought. `value` is None where the call failed or was denied; `text` says why."""

    text: str
    value: Any = None
    is_error: bool = False


class Conversation:
    """One turn so far. A rule takes results from it in the order it asked for them."""

    def __init__(self, messages: Sequence[Message], turn_id: str) -> None:
        own = [message for message in messages if message.turn == turn_id]
        # What the runtime notes between two steps (a reflection) is not a question of the user's.
        self.said = tuple(m.content for m in own if m.role == "user" and m.extra is None)
        self._results = [_result(message) for message in own if message.role == "tool"]
        self._taken = 0

    def need(self, *wanted: Wanted) -> list[Result]:
        """The results of these calls, which are asked for together. Raises CallsNeeded while they are not there."""
        begin, end = self._taken, self._taken + len(wanted)
        if end > len(self._results):
            raise CallsNeeded(wanted)
        self._taken = end
        return self._results[begin:end]


def _result(message: Message) -> Result:
    if message.is_error:
        return Result(message.content, None, True)
    try:
        return Result(message.content, json.loads(message.content))
    except ValueError:
        return Result(message.content, message.content)

"""Conversation: the messages of a session, or of a turn with a history of its own, each with its estimated size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brainq.contracts.message import Message


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, oldest first. Nothing here looks at all of them again when some are added: made by `EMPTY.plus`.

    sizes    tokens of each message, estimated
    tokens   their sum
    begins   turn id -> the place of its first message
    older    messages that stand before these, and were not read
    """

    messages: tuple[Message, ...] = ()
    sizes: tuple[int, ...] = ()
    tokens: int = 0
    begins: Mapping[str, int] = field(default_factory=dict[str, int])
    older: int = 0

    @property
    def length(self) -> int:
        """Messages in all, those not read included."""
        return self.older + len(self.messages)

    def begin_of(self, turn_id: str) -> int:
        """The place of this turn's first message; the end where it has none."""
        return self.begins.get(turn_id, len(self.messages))

    def of_turn(self, turn_id: str) -> tuple[Message, ...]:
        """The messages of one turn."""
        return tuple(said for said in self.messages[self.begin_of(turn_id) :] if said.turn == turn_id)

    def plus(self, messages: Sequence[Message], sizes: Sequence[int]) -> Conversation:
        """With these behind."""
        if not messages:
            return self
        return Conversation(
            (*self.messages, *messages),
            (*self.sizes, *sizes),
            self.tokens + sum(sizes),
            _first_places(messages, len(self.messages), self.begins),
            self.older,
        )

    def without_oldest(self, count: int, *, older: int) -> Conversation:
        """Without so many of its oldest messages; `older` is how many stand before the rest now."""
        kept, sizes = self.messages[count:], self.sizes[count:]
        return Conversation(kept, sizes, sum(sizes), _first_places(kept, 0, {}), older)

    def of_newest(self, most: int) -> Conversation:
        """At most so many of the newest; the others count as older."""
        over = len(self.messages) - most
        return self if over <= 0 else self.without_oldest(over, older=self.older + over)


EMPTY = Conversation()


def _first_places(messages: Iterable[Message], offset: int, known: Mapping[str, int]) -> Mapping[str, int]:
    places = dict(known)
    for place, message in enumerate(messages, offset):
        places.setdefault(message.turn, place)
    return places

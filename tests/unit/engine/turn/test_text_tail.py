"""TextTail: text, and what was thought before it, reach readers in their order, each once."""

from __future__ import annotations

import itertools
import time

from brainq.contracts.event import EventKind
from brainq.engine.turn.text_stream import TextTail
from brainq.runtime.outage import OutageRetry

THOUGHT, TEXT = EventKind.REASONING_DELTA, EventKind.TEXT_DELTA
LONG_AGO = -1e9


def is_away(failure: Exception) -> bool:
    return isinstance(failure, ConnectionError)


class Readers:
    """What readers were told, by pieces whose mark is new. `answers` says for each write whether its answer arrives."""

    def __init__(self, *answers: bool) -> None:
        self.told: list[tuple[str, EventKind]] = []
        self._answers = list(answers)
        self._last = ""

    def tell(self, mark: str, text: str, kind: EventKind) -> bool:
        if mark != self._last:
            self.told.append((text, kind))
        self._last = mark
        if self._answers and not self._answers.pop(0):
            raise ConnectionError
        return True


def tail_of(readers: Readers) -> TextTail:
    numbers = itertools.count(1)
    return TextTail(readers.tell, lambda: str(next(numbers)), is_away, started=LONG_AGO)


def rest_of(tail: TextTail) -> str:
    return tail.rest(OutageRetry({}, is_away, time.monotonic() + 5, lambda _: None))


def test_text_and_thought_keep_their_order() -> None:
    readers = Readers()
    tail = tail_of(readers)
    for text, kind in (("a", THOUGHT), ("b", THOUGHT), ("c", TEXT), ("d", THOUGHT), ("e", TEXT)):
        assert tail.add(text, kind)
    assert rest_of(tail) == "e"
    assert readers.told == [("a", THOUGHT), ("b", THOUGHT), ("c", TEXT), ("d", THOUGHT)]


def test_a_thought_at_the_end_is_told_before_the_commit() -> None:
    readers = Readers()
    tail = tail_of(readers)
    for text, kind in (("a", TEXT), ("b", TEXT), ("c", THOUGHT)):
        assert tail.add(text, kind)
    assert rest_of(tail) == ""
    assert readers.told == [("a", TEXT), ("b", TEXT), ("c", THOUGHT)]


def test_a_piece_in_doubt_is_told_once_and_before_the_next_kind() -> None:
    readers = Readers(False, False, True)
    tail = tail_of(readers)
    assert tail.add("a", THOUGHT)  # written, and its answer lost
    tail.started = LONG_AGO
    assert tail.add("b", TEXT)
    assert rest_of(tail) == ""
    assert readers.told == [("a", THOUGHT), ("b", TEXT)]

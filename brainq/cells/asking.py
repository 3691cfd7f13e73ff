"""Asks all cells one question side by side, and says which of them did not answer in time."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from brainq.errors import Unreachable
from brainq.wiring import Wiring
from brainq.wiring.services import is_unavailable

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
ANSWER_S = 1.0
"""How long a question to all cells waits for each of them; what one says later is dropped."""


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """What cells answered, by name and in their order; and the names of those that are away."""

    answers: tuple[tuple[str, T], ...]
    away: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[T, ...]:
        return tuple(answer for _, answer in self.answers)


class FromCells(tuple[R_co, ...]):
    """A list of what all cells have, in order. It is a tuple, which says what may be missing.

    away   the names of cells that did not answer; empty where all did
    """

    away: tuple[str, ...] = ()

    @classmethod
    def of(cls, items: Iterable[R_co], away: Sequence[str] = ()) -> FromCells[R_co]:
        made = cls(items)
        made.away = tuple(away)
        return made


def cells_away(listed: object) -> tuple[str, ...]:
    """The cells that a list lacks; none where it is of one cell."""
    return listed.away if isinstance(listed, FromCells) else ()


def ask_each(
    cells: Iterable[tuple[str, Wiring]], question: Callable[[Wiring], T], bound_s: float | None = ANSWER_S
) -> Answers[T]:
    """Ask these cells. Raises what a cell raises that is up, such as InvalidInput.

    bound_s   seconds that each has; None: as long as it takes, in this thread
    """
    asked = list(cells)
    replies: dict[str, T | Exception] = {}
    if bound_s is None:
        for name, wiring in asked:
            replies[name] = _reply(question, wiring)
    else:
        end = time.monotonic() + bound_s
        threads = [_begin(replies, name, question, wiring) for name, wiring in asked]
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
    answers: list[tuple[str, T]] = []
    away: list[str] = []
    for name, _ in asked:
        reply = replies.get(name, _LATE)
        if not isinstance(reply, Exception):
            answers.append((name, reply))
        elif reply is _LATE or isinstance(reply, Unreachable) or is_unavailable(reply):
            away.append(name)
        else:
            raise reply
    return Answers(tuple(answers), tuple(away))


def _begin(
    replies: dict[str, T | Exception], name: str, question: Callable[[Wiring], T], wiring: Wiring
) -> threading.Thread:
    context = contextvars.copy_context()  # traces go on

    def ask() -> None:
        replies[name] = context.run(_reply, question, wiring)

    thread = threading.Thread(target=ask, name=f"brainq-cell-{name}", daemon=True)
    thread.start()
    return thread


def _reply(question: Callable[[Wiring], T], wiring: Wiring) -> T | Exception:
    try:
        return question(wiring)
    except Exception as failure:
        return failure


_LATE = TimeoutError("no answer in time")

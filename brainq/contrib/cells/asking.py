"""Run a read in several cells at once, with a time limit for each cell."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from brainq.app.wiring import Wiring
from brainq.app.wiring.services import is_unavailable
from brainq.contracts.answers import Answers
from brainq.errors import BrainqError, CellUnreachable, Unreachable
from brainq.runtime.observe.threads import StartedThread, start_thread

T = TypeVar("T")
ANSWER_S = 1.0
"""The seconds that a read in all cells waits for each of them. A later answer is dropped."""
OPENED_S = 2.5  # The time limit of the first read in a cell, which opens its database.


def ask_each(cells: Iterable[tuple[str, Wiring]], question: Callable[[Wiring], T]) -> Answers[T]:
    """Run a read in these cells at once, and wait ANSWER_S for each.

    Raises the error of a cell that answers, such as InvalidInput.
    """
    asked = list(cells)
    replies: dict[str, T | Exception] = {}
    began = time.monotonic()
    threads = [(_begin(replies, name, question, wiring), wiring.is_open) for name, wiring in asked]
    for thread, was_open in threads:
        end = began + (ANSWER_S if was_open else max(ANSWER_S, OPENED_S))
        thread.join(max(0.0, end - time.monotonic()))
    answers: list[tuple[str, T]] = []
    away: list[str] = []
    for name, _ in asked:
        reply = replies.get(name, _LATE)
        if not isinstance(reply, Exception):
            answers.append((name, reply))
        elif reply is _LATE or _is_away(reply):
            away.append(name)
        else:
            raise reply
    return Answers(tuple(answers), tuple(away))


def named_away(name: str, failure: Exception) -> Exception:
    """Return the failure of a read in one cell. It names the cell if the cell does not answer."""
    if isinstance(failure, CellUnreachable) or not _is_away(failure):
        return failure
    return CellUnreachable(name, str(failure) if isinstance(failure, Unreachable) else type(failure).__name__)


def _is_away(failure: Exception) -> bool:
    """Return whether a failure means that the cell does not answer.

    brainq's own errors are answers, among them the TimeoutError of a turn that has not ended.
    """
    return isinstance(failure, Unreachable) or (not isinstance(failure, BrainqError) and is_unavailable(failure))


def _begin(
    replies: dict[str, T | Exception], name: str, question: Callable[[Wiring], T], wiring: Wiring
) -> StartedThread:
    context = contextvars.copy_context()  # The context is copied so that traces continue in the thread.

    def ask() -> None:
        replies[name] = context.run(_reply, question, wiring)

    return start_thread(f"brainq-cell-{name}", ask)


def _reply(question: Callable[[Wiring], T], wiring: Wiring) -> T | Exception:
    try:
        return question(wiring)
    except Exception as failure:
        return failure


_LATE = TimeoutError("no answer in time")

"""Answers queue messages by the machines of this process."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from brainq.adapters.celery import names
from brainq.app.wiring import Wiring
from brainq.engine.calls.function_run import Abandon
from brainq.runtime.observe.logs import logger, turn_log_ids
from brainq.runtime.observe.work_events import UNWATCHED

log = logger("brainq.local")
UNREADABLE = "dropped: unreadable"


class Doorbell(NamedTuple):
    """The task of a queue message, and its arguments: a session's id, a turn's id, and more."""

    task: str
    arguments: tuple[Any, ...]

    @property
    def turn_id(self) -> str:
        return str(self.arguments[1])


def read_doorbell(text: str) -> Doorbell | None:
    """Return what a message asks for. Returns None if it is not one of brainq's."""
    try:
        message = json.loads(text)
        arguments = json.loads(message["body"])[0]
        task = message["headers"]["task"]
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return Doorbell(task, tuple(arguments)) if isinstance(arguments, list) and len(arguments) > 2 else None


class Answers:
    """The machines of all pools, each built with the first message for it."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring

    def prepare(self) -> None:
        """Build the machines that every turn needs, so that the first message does not wait for them."""
        _ = self.wiring.coordinator, self.wiring.runner, self.wiring.finalizer

    def answer(self, text: str, abandon: Abandon | None) -> str:
        """Answer one message. Returns the outcome in a word.

        abandon: as for `CallRunner.run`.
        """
        bell = read_doorbell(text)
        if bell is None:
            log.error("a queue message was dropped, because brainq did not write it")
            return UNREADABLE
        with turn_log_ids(*bell.arguments[:2]):
            return self._answer(bell, abandon)

    def _answer(self, bell: Doorbell, abandon: Abandon | None) -> str:
        wiring = self.wiring
        match bell.task:
            case names.TURN_ADVANCE:
                return wiring.visits.advance(*bell.arguments, events=UNWATCHED, abandon=abandon)
            case names.CALL_RUN:
                return wiring.visits.run_call(*bell.arguments, events=UNWATCHED, abandon=abandon)
            case names.FINALIZE_STEP:
                return wiring.finalizer.run(*bell.arguments)
            case names.JUDGE_RUN:
                return wiring.judge_runner.run(*bell.arguments)
            case _:
                log.error("a queue message was dropped, because this program does not serve its task", task=bell.task)
                return UNREADABLE

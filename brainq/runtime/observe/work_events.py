"""Events of work that no queue message shows."""

from __future__ import annotations

from brainq.contracts.claim import CallRef, Opened


class WorkEvents:
    """A publisher of work that has no queue message of its own. This class publishes nothing;
    `workers.tasks.task_events.TaskEvents` publishes task events of Celery.

    turn         the sweeper ended a turn
    call         the sweeper gave up an attempt of a call, or found it lost; `rung_again_ms` as `RedisCalls` returns it
    began, ended   a thread continued with this work, which its own work had opened
    """

    def turn(self, session_id: str, turn_id: str, fence: int, did: str) -> None:
        return

    def call(self, ref: CallRef, attempt: int, tool: str, did: str, rung_again_ms: int | None) -> None:
        return

    def began(self, claim: Opened) -> None:
        return

    def ended(self, claim: Opened, did: str, took_s: float) -> None:
        return


UNWATCHED = WorkEvents()

"""Client: submits turns and finds them again."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from brainq.admission import read_request
from brainq.brain import Brain, load_brain
from brainq.client.handle import TurnHandle
from brainq.contracts.limits import Limits
from brainq.contracts.turn import LimitsOverride
from brainq.errors import InvalidInput, TurnNotFound
from brainq.settings import Settings, load_settings
from brainq.turn.runtime_state import TurnRuntimeState
from brainq.wiring import Wiring


class Client:
    """Submits turns of one brain. Thread-safe; one a process is enough.

    client = Client()                    # settings and brain from BRAINQ_...
    handle = client.submit("session-1", "What is on my list?")
    print(handle.result(timeout_s=60).text)
    """

    def __init__(
        self, settings: Settings | None = None, brain: Brain | None = None, *, redis_url: str = ""
    ) -> None:
        settings = settings or load_settings()
        self.wiring = Wiring(settings, brain or load_brain(settings.app), redis_url=redis_url)

    def submit(
        self,
        session_id: str,
        user_message: str,
        *,
        request_key: str | None = None,
        turn_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        system_prompt: str | None = None,
        skill_context: str | None = None,
        output_schema: dict[str, Any] | None = None,
        cwd: str | None = None,
        limits: Limits | LimitsOverride | dict[str, Any] | None = None,
        show_citations: bool | None = None,
        prompt_id: str | None = None,
        prompt_version: str | None = None,
        prompt_tags: tuple[str, ...] | list[str] = (),
        metadata: dict[str, Any] | None = None,
    ) -> TurnHandle:
        """Accept a turn and queue it behind its session's others; returns once SQL has it.

        request_key   the same key again is the same turn: nothing is submitted twice
        limits        overrides of the brain's limits for this turn
        The other arguments override the brain for this turn.

        Raises InvalidInput naming the field, before anything is stored, and SubmitConflict when the
        request_key or turn_id was used with other content.
        """
        request = read_request(
            {
                "turn_id": turn_id,
                "session_id": session_id,
                "user_message": user_message,
                "request_key": request_key,
                "model": model,
                "provider": provider,
                "system_prompt": system_prompt,
                "skill_context": skill_context,
                "output_schema": output_schema,
                "cwd": cwd,
                "limits": _override(limits),
                "show_citations": show_citations,
                "prompt_id": prompt_id,
                "prompt_version": prompt_version,
                "prompt_tags": prompt_tags,
                "metadata": metadata,
            }
        )
        accepted = self.wiring.admission.admit(request)
        return TurnHandle(self, accepted.session_id, accepted.turn_id, created=accepted.created)

    def handle(self, turn_id: str) -> TurnHandle:
        """The handle of a turn submitted earlier, by anybody. Raises TurnNotFound."""
        row = self.wiring.store.turns.get(turn_id)
        if row is None:
            raise TurnNotFound(f"no turn {turn_id!r} in SQL; `brainq list` shows the newest ones")
        return TurnHandle(self, row.session_id, turn_id)

    def cancel(self, session_id: str, turn_id: str, reason: str = "") -> str:
        """See `TurnHandle.cancel`."""
        word = self._cancel(session_id, turn_id, reason)
        if word == "GONE" and self._is_accepted(turn_id):
            # SQL knew it first, and Redis does not know it yet: the mark needs something to stand on.
            request = self.wiring.store.turns.request(turn_id)
            if request is not None:
                self.wiring.admission.queue(request)
                word = self._cancel(session_id, turn_id, reason)
        return "ended" if word == "GONE" else word.lower()

    def _cancel(self, session_id: str, turn_id: str, reason: str) -> str:
        return self.wiring.turns.cancel(session_id, turn_id, reason[:500], self.wiring.order.first)[0]

    def _is_accepted(self, turn_id: str) -> bool:
        row = self.wiring.store.turns.get(turn_id)
        return row is not None and row.ended_at is None

    def state(self, session_id: str, turn_id: str) -> TurnRuntimeState:
        """The turn's shared state, attached to by its ids."""
        return TurnRuntimeState(
            session_id,
            turn_id,
            store=self.wiring.runtime,
            traces=self.wiring.calls,
            budgets=self.wiring.budgets,
        )

    def close(self) -> None:
        """Close the connections to Redis and SQL."""
        self.wiring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _override(limits: Limits | LimitsOverride | dict[str, Any] | None) -> dict[str, Any] | None:
    match limits:
        case None:
            return None
        case Limits() | LimitsOverride():
            return limits.model_dump(exclude_unset=True)
        case dict():
            return limits
        case _:
            raise InvalidInput("limits", f"use Limits, or a dict of its fields, not {type(limits).__name__}")

"""Hold and Flag: what keeps calls that change something from starting, and how it is let go."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from brainq.client.internals import raises_unreachable, wiring_of

if TYPE_CHECKING:
    from brainq.client.client import Client


@raises_unreachable
class Hold:
    """A hold on a turn. While one is open, no call that changes something starts in it; reads go on.

        with handle.hold("looking at the plan"):
            look_at(handle)

    It outlives this process, and Redis' data: any caller that has its id can release it, from any process
    (`handle.release(hold.id)`).
    """

    def __init__(self, client: Client, session_id: str, turn_id: str, hold_id: str) -> None:
        self._wiring = wiring_of(client)
        self.session_id = session_id
        self.turn_id = turn_id
        self.id = hold_id

    def __repr__(self) -> str:
        return f"Hold(turn_id={self.turn_id!r}, id={self.id!r})"

    def release(self) -> bool:
        """Let the turn go on, unless another hold is open. False when this one no longer was."""
        return self._wiring.people.brakes.release(self.session_id, self.turn_id, self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


@raises_unreachable
class Flag:
    """A readiness flag: the session's next turn that has none takes it, and is held until it is released.

    Its time runs from when a turn takes it. Any caller that has its id can release it (`session.flag(id).release()`).
    """

    def __init__(self, client: Client, session_id: str, flag_id: str) -> None:
        self._wiring = wiring_of(client)
        self.session_id = session_id
        self.id = flag_id

    def __repr__(self) -> str:
        return f"Flag(session_id={self.session_id!r}, id={self.id!r})"

    def release(self) -> bool:
        """Say that all is ready: a turn that waits for it goes on, and one to come does not wait at all.

        False when there is nothing to release any more.
        """
        return self._wiring.people.brakes.release_flag(self.session_id, self.id)

    ready = release

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

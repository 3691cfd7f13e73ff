"""Session, which steers the turns of one conversation, and Flag, which holds its next turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from brainq.app.wiring import Wiring
from brainq.client import checks
from brainq.client.connection import InSession, connection_of
from brainq.client.handle import TurnHandle
from brainq.client.history import make_history
from brainq.client.options import SubmitOptions, takes_submit_options
from brainq.client.waiting import cancel_turn
from brainq.contracts.act import NewAct
from brainq.contracts.file import File, check_files
from brainq.contracts.history import HistoryTurn, WaitingTurn
from brainq.contracts.ids import check_id, check_turn_id
from brainq.contracts.people import DEFAULT_HOLD_S, HoldPolicy, Receipt, TurnInput
from brainq.engine.people.bounced_inputs import bounced_turn_id
from brainq.errors import InvalidInput, StaleTurn

if TYPE_CHECKING:
    from brainq.client.client import Client

_RECENT_TURNS = 200


class Flag(InSession):
    """A readiness flag. The session's next turn without one takes it, and is held until the flag is released.

    Its time runs from when a turn takes it. Any process that has its id can release it: `session.flag(id).release()`.
    """

    def __init__(self, client: Client, session_id: str, flag_id: str) -> None:
        self._connection = connection_of(client)
        self.session_id = session_id
        self.id = flag_id

    def __repr__(self) -> str:
        return f"Flag(session_id={self.session_id!r}, id={self.id!r})"

    def release(self) -> bool:
        """Release the flag: a turn that waits for it continues, and a later turn is not held by it.

        Returns False if there was nothing to release.
        """
        return self._do(
            lambda wiring: wiring.people.brakes.release_flag(self.session_id, self.id),
            NewAct("ready", self.id, session_id=self.session_id),
        )

    ready = release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Session(InSession):
    """One session, returned by `client.session(session_id)`. It keeps no state of its own.

    session = client.session("session-1")
    print(session.submit("What is on my list?").result(timeout_s=60).text)
    for turn in session.waiting():
        session.drop(turn.turn_id)
    session.interrupt("never mind")
    """

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._connection = connection_of(client)
        self.session_id = session_id

    def __repr__(self) -> str:
        return f"Session({self.session_id!r})"

    @takes_submit_options
    def submit(self, user_message: str, **options: Unpack[SubmitOptions]) -> TurnHandle:
        """See `Client.submit`."""
        return self._client.submit(self.session_id, user_message, **options)

    def live(self) -> str | None:
        """Return the id of the live turn, parked or not. Returns None if there is none."""
        return self._read(lambda wiring: wiring.state.sessions.live(self.session_id)) or None

    def history(self, limit: int = 50, after: str | None = None) -> tuple[HistoryTurn, ...]:
        """Return the session's newest turns, the oldest of them first, including live and waiting ones.

        limit: turns a page, up to 10,000.
        after: the id of the first turn of the previous page; the next page has older turns.

        The handle's `transcript()` and `calls()` have the details of a turn. Raises InvalidInput.
        """
        earliest = None if after is None else check_turn_id("after", after)
        most = checks.limit(limit)
        return self._read(lambda wiring: make_history(wiring).turns(self.session_id, most, earliest))

    def waiting(self) -> tuple[WaitingTurn, ...]:
        """Return the waiting turns, the next one first. Of more than 10,000, the newest are returned."""
        return self._read(lambda wiring: _waiting_turns(wiring, self.session_id))

    def drop(self, turn_id: str) -> bool:
        """Cancel a turn that still waits. Returns False if it does not wait any more; a live turn continues."""
        check_turn_id("turn_id", turn_id)
        return self._do(
            lambda wiring: cancel_turn(wiring, self.session_id, turn_id, "dropped", queued_only=True) == "cancelled",
            NewAct("drop", session_id=self.session_id, turn_id=turn_id),
        )

    def pause(self, reason: str = "") -> bool:
        """Keep further turns from beginning; a live turn continues. Returns False if the session was already paused;
        the earlier reason is then kept.

        reason: for people; `explain` of a waiting turn shows it.
        """
        why = checks.text("reason", reason, checks.MAX_REASON_CHARS)
        return self._connection.do(
            lambda wiring: wiring.state.sessions.pause(self.session_id, why),
            NewAct("pause", reason=why, session_id=self.session_id),
            session=self.session_id,
            settles=True,
        )

    def resume(self) -> str | None:
        """Allow turns to begin again. Returns the id of the turn that became live, or None if there was none."""
        _, live = self._do(
            lambda wiring: wiring.state.sessions.resume(self.session_id),
            NewAct("resume", session_id=self.session_id),
        )
        return live or None

    def is_paused(self) -> bool:
        """Return whether the session is paused, according to Redis."""
        return self._read(lambda wiring: wiring.state.sessions.is_paused(self.session_id))

    def why_paused(self) -> str | None:
        """Return why the session is paused and, if it was paused over HTTP, by whom. Returns "" if no reason was given,
        and None if it is not paused."""
        return self._read(lambda wiring: wiring.state.sessions.why_paused(self.session_id))

    def readiness(
        self, reason: str = "", *, expires_in_s: float = DEFAULT_HOLD_S, on_expiry: HoldPolicy = "deny"
    ) -> Flag:
        """Add a readiness flag: the next chat turn is held until the flag is released.

        reason: for people.
        expires_in_s: seconds from when a turn takes it.
        on_expiry: what happens then: `deny` the waiting calls, `release` them, or `cancel` the turn.
        """
        spec = checks.hold("flag", reason, expires_in_s, on_expiry)

        def add(wiring: Wiring) -> str:
            wiring.tenants.require_here(self.session_id)
            return wiring.people.brakes.add_flag(self.session_id, spec)

        word = self._connection.do(
            add,
            "the turn records its hold",
            session=self.session_id,
            settles=True,
        )
        if word == "FULL":
            raise InvalidInput(
                "session_id",
                f"session {self.session_id!r} has the maximum number of flags that no turn has taken; release some of "
                "them",
            )
        return Flag(self._client, self.session_id, spec.id)

    def flag(self, flag_id: str) -> Flag:
        """Return a flag that another process added."""
        return Flag(self._client, self.session_id, check_id("flag_id", flag_id))

    def unread_flags(self) -> tuple[str, ...]:
        """Return the ids of flags that no turn has taken yet, oldest first."""
        return self._read(lambda wiring: wiring.state.holds.unread_flags(self.session_id))

    def steer(
        self,
        text: str,
        *,
        client_message_id: str | None = None,
        readiness: bool | None = None,
        expected_turn_id: str | None = None,
        attachments: Sequence[File | Mapping[str, Any]] = (),
    ) -> Receipt:
        """Send input into the live turn. See `TurnHandle.steer`.

        If no turn is live, the input becomes a new turn with the settings of the newest ended one. The receipt is then
        `bounced` and names that turn.
        """
        files = check_files("attachments", attachments, self._connection.settings.file_limits)
        item = checks.turn_input(text, client_message_id, readiness, files)
        expected = checks.expected_turn(expected_turn_id)
        return self._connection.do(
            lambda wiring: self._send(wiring, item, files, expected),
            "the input has a row",
            session=self.session_id,
            client_message_id=item.client_message_id,
        )

    def interrupt(self, reason: str = "") -> str | None:
        """Cancel the live turn, so that the next one begins. Returns its id, or None if no turn was live."""

        def cancel_live(wiring: Wiring) -> str | None:
            live = wiring.state.sessions.live(self.session_id)
            return live if live and cancel_turn(wiring, self.session_id, live, reason) != "ended" else None

        return self._do(cancel_live, NewAct("interrupt", reason=reason, session_id=self.session_id))

    def compact(self, request_key: str | None = None) -> TurnHandle:
        """Submit a turn that only replaces the session's older messages by a summary.

        request_key: a key that was used before returns the turn of the first submit.
        """
        return self._client.submit(self.session_id, "compact", kind="compact", request_key=request_key)

    def _send(self, wiring: Wiring, item: TurnInput, files: Sequence[File], expected: str | None) -> Receipt:
        desk, live = wiring.people.inputs, wiring.state.sessions.live(self.session_id) or None
        known = desk.find(self.session_id, item.client_message_id)
        if known is not None:
            return desk.send(self.session_id, known.turn_id, item, files, expected_turn_id=expected)
        if expected is not None and live != expected:
            raise StaleTurn(expected, live or "")
        # `live` was read before, so a turn that this input has become is found here if it is the live one.
        first = wiring.store.turns.get(bounced_turn_id(self.session_id, item.client_message_id))
        target = None if first is not None else live or _newest_begun(wiring, self.session_id)
        if target is not None:
            return desk.send(self.session_id, target, item, files, expected_turn_id=expected)
        return self._submit_as_turn(item, files)

    def _submit_as_turn(self, item: TurnInput, files: Sequence[File]) -> Receipt:
        if not item.text and not files:
            raise InvalidInput(
                "text", "it is empty, and the session has no turn whose readiness could change; submit a turn"
            )
        turn_id = bounced_turn_id(self.session_id, item.client_message_id)
        self._client.submit(self.session_id, item.text, turn_id=turn_id, readiness=item.readiness, attachments=files)
        return Receipt(
            client_message_id=item.client_message_id,
            session_id=self.session_id,
            turn_id=turn_id,
            state="bounced",
            bounced_turn_id=turn_id,
        )


def _waiting_turns(wiring: Wiring, session_id: str) -> tuple[WaitingTurn, ...]:
    ids = wiring.state.sessions.waiting(session_id)
    rows = wiring.store.turns.list(session_id, "accepted", checks.MAX_LISTED) if ids else []
    accepted_at = {row.turn_id: row.accepted_at for row in rows}
    return tuple(
        WaitingTurn(turn_id, place, accepted_at[turn_id])
        for place, turn_id in enumerate(ids, start=1)
        if turn_id in accepted_at
    )


def _newest_begun(wiring: Wiring, session_id: str) -> str | None:
    """Return the turn whose settings are used for input that becomes a turn."""
    waiting = set(wiring.state.sessions.waiting(session_id))
    rows = [row for row in wiring.store.turns.list(session_id, None, _RECENT_TURNS) if row.state != "rejected"]
    begun = [row.turn_id for row in rows if row.turn_id not in waiting]
    return next(iter([*begun, *(row.turn_id for row in rows)]), None)

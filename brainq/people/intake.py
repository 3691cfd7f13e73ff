"""Intake: where every submit enters, and finds out whether it is a turn of its own or input of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brainq.admission import Admission
from brainq.contracts.file import File
from brainq.contracts.mailbox import Receipt, TurnInput
from brainq.contracts.turn import TurnRequest
from brainq.errors import QueueFull
from brainq.people.inputs import InputDesk
from brainq.people.queue_limits import QueueLimits
from brainq.ports.blobs import Blobs
from brainq.ports.sessions import Sessions
from brainq.ports.turn_rows import TurnRows


@dataclass(frozen=True, slots=True)
class Submitted:
    """The turn that a submit is, or went into. `receipt` is there when it is input of that turn, or was meant to be."""

    turn_id: str
    session_id: str
    created: bool
    receipt: Receipt | None = None


@dataclass(eq=False, kw_only=True)
class Intake:
    """Admits requests. The same request again enters where it entered first.

    named   makes the request name its brain, and raises InvalidInput for one that this brain cannot do
    """

    named: Callable[[TurnRequest], TurnRequest]
    admission: Admission
    keys: TurnRows
    desk: InputDesk
    sessions: Sessions
    blobs: Blobs
    limits: QueueLimits

    def submit(self, said: TurnRequest, files: Sequence[File] = ()) -> Submitted:
        """For a caller that can come again: raises QueueFull where too many turns wait. Else like `take`."""
        request = self.named(said)
        joined = self._joined(request, files)
        if joined is not None:
            return joined
        try:
            self.limits.check(request)
        except QueueFull:
            if self.keys.by_key(request.key) is None:  # what was accepted before is told again
                raise
        return self._admit(request, said, files)

    def take(self, said: TurnRequest, files: Sequence[File] = ()) -> Submitted:
        """However many wait: a message from the broker has nobody who would come again.

        Raises InvalidInput, SubmitConflict, SessionBusy; see `admission.Admission.admit`.

        files   those that the request refers to: kept before it is accepted
        """
        request = self.named(said)
        return self._joined(request, files) or self._admit(request, said, files)

    def _admit(self, request: TurnRequest, said: TurnRequest, files: Sequence[File]) -> Submitted:
        # Sent again, it is the turn of its first time, which has them.
        if files and self.keys.by_key(request.key) is None:
            self.blobs.keep(request.session_id, request.turn_id, files)
        accepted = self.admission.admit(request, said)
        return Submitted(accepted.turn_id, accepted.session_id, accepted.created)

    def _joined(self, request: TurnRequest, files: Sequence[File]) -> Submitted | None:
        receipt = self._as_input(request, files) if request.on_busy in ("steer", "merge") else None
        if receipt is None:
            return None
        turn_id = receipt.bounced_turn_id or receipt.turn_id
        return Submitted(turn_id, request.session_id, created=False, receipt=receipt)

    def _as_input(self, request: TurnRequest, files: Sequence[File]) -> Receipt | None:
        """Put it into the live turn, or the newest that waits; None when it is to be a turn of its own."""
        known = self.desk.find(request.session_id, request.key)
        if known is None and self.keys.by_key(request.key) is not None:
            return None
        target = known.turn_id if known is not None else self._target(request)
        if not target:
            return None
        merged = request.on_busy == "merge"
        item = TurnInput(
            client_message_id=request.key,
            text=request.user_message,
            readiness=request.readiness,
            merged=merged,
            attachments=request.attachments,
        )
        return self.desk.send(request.session_id, target, item, files)

    def _target(self, request: TurnRequest) -> str:
        if request.on_busy == "steer":
            return self.sessions.live(request.session_id)
        waiting = self.sessions.waiting(request.session_id)
        return waiting[-1] if waiting else ""

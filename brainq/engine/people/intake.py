"""Every submit enters here. Intake decides whether it becomes a turn or input of another turn, and how many turns may
wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.file import File
from brainq.contracts.ids import PREFIX_BOUNDARY, tenant_of
from brainq.contracts.people import Receipt, TurnInput
from brainq.contracts.rows import AcceptedTurn
from brainq.contracts.turn import TurnRequest
from brainq.engine.people.admission import Admission
from brainq.engine.people.budgets import BudgetDesk
from brainq.engine.people.inputs import InputDesk
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.errors import BudgetSpent, QueueFull

if TYPE_CHECKING:
    from brainq.adapters.redis.people import RedisSessions
    from brainq.adapters.sql.repositories.blobs import Blobs
    from brainq.adapters.sql.repositories.turns import Turns

SESSION_SETTING = "BRAINQ_MAX_WAITING_TURNS_A_SESSION"
TENANT_SETTING = "BRAINQ_MAX_WAITING_TURNS_A_TENANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """The limits of waiting turns. A submit beyond is rejected before anything of it is stored. None sets no limit.

    a_session   turns that wait in one session
    a_tenant    sessions of one tenant whose next turn waits for capacity

    The check comes before the turn is queued, so concurrent submits may exceed a limit by their number.
    """

    sessions: RedisSessions
    a_session: int | None
    a_tenant: int | None
    budgets: BudgetDesk

    def check(self, request: TurnRequest) -> None:
        """Raise QueueFull if no further turn of this session may wait."""
        if self.a_session is None and self.a_tenant is None:
            return
        sid = request.session_id
        of_session, of_tenant = self.sessions.waiting_counts(sid)
        # One with on_busy=replace makes the queue shorter.
        if self.a_session is not None and of_session >= self.a_session and request.on_busy != "replace":
            raise QueueFull(f"{of_session} turns of session {sid!r} wait", SESSION_SETTING, self.a_session)
        if self.a_tenant is not None and of_tenant >= self.a_tenant:
            tenant = tenant_of(sid).removesuffix(PREFIX_BOUNDARY)
            waiting = f"{of_tenant} sessions of tenant {tenant!r} wait for room"
            raise QueueFull(waiting, TENANT_SETTING, self.a_tenant)


@dataclass(eq=False, kw_only=True)
class Intake:
    """The entrance of all requests. Sending the same request again has the same result as the first time.

    check_request   returns the request with the name of its brain. Raises InvalidInput if that brain cannot do it
    """

    check_request: Callable[[TurnRequest], TurnRequest]
    admission: Admission
    keys: Turns
    desk: InputDesk
    sessions: RedisSessions
    blobs: Blobs
    limits: QueueLimits
    tenants: TenantPlaces = ONE_CELL

    def submit(self, original: TurnRequest, files: Sequence[File] = ()) -> AcceptedTurn:
        """Admit the request of a caller that can try again. Raises QueueFull if too many turns wait, BudgetSpent,
        TenantMoved if the request belongs to another cell, and whatever `take` raises."""
        request = self.check_request(self._for_its_session(original))
        self.tenants.require_here(request.session_id)
        joined = self._join_live_turn(request, files)
        if joined is not None:
            return joined
        try:
            self.limits.check(request)
            self.limits.budgets.require(request.session_id, request.brain or "")
        except (QueueFull, BudgetSpent):
            if self.keys.by_key(request.key) is None:  # a request that was accepted before gets the same answer
                raise
        return self._admit(request, original, files)

    def take(self, original: TurnRequest, files: Sequence[File] = ()) -> AcceptedTurn:
        """Admit a request whatever the queue and the tenant's cell: a broker message cannot be returned to its
        producer.

        files   the files that the request refers to, stored before it is accepted

        Raises InvalidInput, SubmitConflict, SessionBusy; see `admission.Admission.admit`.
        """
        request = self.check_request(self._for_its_session(original))
        away = self.tenants.away(request.session_id)
        joined = self._join_live_turn(request, files) if away is None or not away.cell else None
        return joined or self._admit(request, original, files)

    def _for_its_session(self, request: TurnRequest) -> TurnRequest:
        """Return the request with the brain and the model of its session, if it only reads the conversation and names
        neither. No other service is to read the conversation."""
        if request.kind == "chat" or request.brain or request.model or request.provider:
            return request
        newest = self.keys.newest(request.session_id)
        if newest is None:
            return request
        return request.model_copy(update={"brain": newest.brain, "model": newest.model, "provider": newest.provider})

    def _admit(self, request: TurnRequest, original: TurnRequest, files: Sequence[File]) -> AcceptedTurn:
        # If it was sent before, its first turn has the files.
        if files and self.keys.by_key(request.key) is None:
            self.blobs.keep(request.session_id, request.turn_id, files)
        return self.admission.admit(request, original)

    def _join_live_turn(self, request: TurnRequest, files: Sequence[File]) -> AcceptedTurn | None:
        receipt = self._as_input(request, files) if request.on_busy in ("steer", "merge") else None
        if receipt is None:
            return None
        turn_id = receipt.bounced_turn_id or receipt.turn_id
        return AcceptedTurn(turn_id, request.session_id, created=False, receipt=receipt)

    def _as_input(self, request: TurnRequest, files: Sequence[File]) -> Receipt | None:
        """Put the request into the live turn, or the newest waiting one. Returns None if it is to be a turn of its
        own."""
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

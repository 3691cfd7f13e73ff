"""How many turns may wait: a submit beyond is refused while nothing is stored of it."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.session_prefix import BOUNDARY, tenant_of
from brainq.contracts.turn import TurnRequest
from brainq.errors import QueueFull
from brainq.ports.sessions import Sessions

A_SESSION = "BRAINQ_MAX_WAITING_TURNS_A_SESSION"
A_TENANT = "BRAINQ_MAX_WAITING_TURNS_A_TENANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """What the deployment says; None: as many as come, and then nothing is looked at.

    a_session   turns that wait in one session
    a_tenant    sessions of one tenant whose next turn waits for room

    It is looked before the turn is queued, so submits at the same moment may pass a limit by as many as they are.
    """

    sessions: Sessions
    a_session: int | None
    a_tenant: int | None

    def check(self, request: TurnRequest) -> None:
        """Raises QueueFull where no further turn of this session may wait."""
        if self.a_session is None and self.a_tenant is None:
            return
        sid = request.session_id
        of_session, of_tenant = self.sessions.waiting_counts(sid)
        # One that replaces those that wait makes them fewer.
        if self.a_session is not None and of_session >= self.a_session and request.on_busy != "replace":
            raise QueueFull(f"{of_session} turns of session {sid!r} wait", A_SESSION, self.a_session)
        if self.a_tenant is not None and of_tenant >= self.a_tenant:
            tenant = tenant_of(sid).removesuffix(BOUNDARY)
            waiting = f"{of_tenant} sessions of tenant {tenant!r} wait for room"
            raise QueueFull(waiting, A_TENANT, self.a_tenant)

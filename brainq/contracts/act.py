"""Acts: what a person or a token did to turns, sessions and the deployment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brainq.contracts.actor import ActSource
from brainq.contracts.base import Wire


@dataclass(frozen=True, slots=True)
class NewAct:
    """An act that a client's method is about to carry out.

    It becomes a row of the audit log once it has been carried out.

    subject: the names and ids of what was acted on. They hold no content and no secret.
    by: the person who acted, or "" to record the caller that the front has identified.
    """

    act: str
    subject: str = ""
    by: str = ""
    reason: str = ""
    session_id: str = ""
    turn_id: str = ""


class Act(Wire):
    """A row of the audit log.

    id: grows with each act.
    who: the name of the token or person, the shell's user, or `by`; "" if nobody was named.
    act: what was done, such as `approve`, `cancel` or `stop`.
    subject: what it was done to, such as the id of an approval or the name of a schedule or tool.
    reason: the reason that was given.
    """

    id: int
    at: datetime
    who: str = ""
    source: ActSource = "client"
    act: str
    session_id: str = ""
    turn_id: str = ""
    subject: str = ""
    reason: str = ""

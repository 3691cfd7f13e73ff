"""Acts: what a person or a token did to turns, sessions and the deployment."""

from __future__ import annotations

from datetime import datetime

from brainq.contracts.actor import ActSource
from brainq.contracts.base import Wire

ACTS: dict[str, dict[str, str]] = {
    "ApprovalVerbs": {"approve": "approve", "deny": "deny", "edit": "edit", "complete_call": "result"}
    | {"fail_call": "result"},
    "Client": {"cancel": "cancel", "send_again": "send again"},
    "TurnHandle": {"cancel": "cancel", "hold": "hold", "release": "release", "give_result": "result"}
    | {"give_error": "result", "delete_response": "delete response"},
    "Hold": {"release": "release"},
    "Flag": {"release": "ready"},
    "Session": {"pause": "pause", "resume": "resume", "drop": "drop", "interrupt": "interrupt"},
    "ScheduleVerbs": {"schedule": "schedule", "pause_schedule": "pause schedule"}
    | {"resume_schedule": "resume schedule", "remove_schedule": "remove schedule"},
    "StopVerbs": {"stop": "stop", "lift": "lift"},
    "VersionVerbs": {"ramp_build": "ramp", "release_build": "release build"},
    "ContentKeys": {"rotate": "rotate keys", "rewrap": "rewrap keys", "shred": "shred keys"},
    "Memories": {"forget": "forget", "forget_all": "forget"},
    "Operator": {"retry": "retry step", "send_again": "send again", "erase": "erase"},
    "StepRetrier": {"retry": "retry step"},
    "BulkLog": {"begin": "bulk"},
    "Tokens": {"create": "make token", "revoke": "revoke token"},
}
"""The verbs that are acts, by the class that has them: what the audit log calls them."""


class Act(Wire):
    """One of them.

    id        grows with each act
    who       the token's name and the person it names, the shell's user, or `by`; "" where nobody was named
    act       what was done: `approve`, `cancel`, `stop`, ...
    subject   to what: an approval's id, a schedule's or tool's name
    reason    as it was given
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

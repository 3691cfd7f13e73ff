"""Input that a turn ended without reading becomes a turn of its own, at the end of its session's queue."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brainq.contracts.ids import BOUNCED_TURN_PREFIX
from brainq.contracts.people import TurnInput
from brainq.contracts.rows import InputRow
from brainq.contracts.turn import TurnRequest
from brainq.engine.people.admission import Admission
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.blobs import Blobs
    from brainq.adapters.sql.repositories.inputs import Inputs
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.people")


def bounced_turn_id(session_id: str, client_message_id: str) -> str:
    """Return the id of the turn that an input becomes. It is the same however often the input is bounced."""
    digest = hashlib.sha256(f"{session_id}\n{client_message_id}".encode()).hexdigest()
    return f"{BOUNCED_TURN_PREFIX}{digest[:24]}"


def bounced_request(sent_to: TurnRequest, item: TurnInput) -> TurnRequest:
    """Return the request of the turn that an input becomes: the settings of the turn it was sent to, and its own
    readiness."""
    kept = sent_to.model_dump(
        exclude={
            "turn_id",
            "request_key",
            "user_message",
            "attachments",
            "parent",
            "on_busy",
            "kind",
            "seed",
            "output_schema",
            "readiness",
            "greeting",
            "history",
        }
    )
    turn_id = bounced_turn_id(sent_to.session_id, item.client_message_id)
    own: dict[str, Any] = {
        "turn_id": turn_id,
        "user_message": item.text,
        "attachments": item.attachments,
        "readiness": item.readiness,
    }
    return TurnRequest.model_validate({**kept, **own})


@dataclass(eq=False, kw_only=True)
class BouncedInputs:
    """The inputs that become turns. An input that is bounced again becomes the same turn.

    redact   returns whether SQL keeps no texts of the turn with this id
    """

    inputs: Inputs
    requests: Turns
    admission: Admission
    redact: Callable[[str], bool]
    blobs: Blobs

    def bounce(self, session_id: str, turn_id: str, inputs: Sequence[str]) -> None:
        """Make turns of the inputs that a turn ended without reading, in the order of their arrival."""
        for client_message_id in inputs:
            row = self.inputs.get(session_id, client_message_id)
            if row is not None and row.state == "accepted":
                self.make_turn(row)

    def make_turn(self, row: InputRow) -> None:
        """Make a turn of one input, or refuse the input if that is impossible."""
        request = self.requests.request(row.turn_id)
        if request is None or not (row.text.strip() or row.attachments):
            # No turn can be made of a readiness flag alone, or of input for a turn that was pruned meanwhile.
            self.inputs.refused(row.session_id, row.client_message_id, redact=self.redact(row.turn_id))
            return
        bounced = bounced_request(request, row.item)
        self.blobs.lend(row.session_id, bounced.turn_id, row.attachments)
        self.admission.admit(bounced)
        redact = self.redact(row.turn_id)
        if redact and row.attachments:  # the turn may have been recorded, and its files dropped, before they came
            self.blobs.drop(row.turn_id)
        self.inputs.bounced(row.session_id, row.client_message_id, bounced.turn_id, redact=redact)
        log.info("input became a turn", turn_id=bounced.turn_id, sent_to=row.turn_id)

"""Mid-turn input: what goes into a turn's mailbox, and what its sender learns of it."""

from __future__ import annotations

from typing import Literal

from brainq.contracts.attachment import Attachment
from brainq.contracts.base import Wire

PutWord = Literal["ACCEPTED", "ALREADY", "SEALED", "FULL", "GONE"]
"""What putting an input into a mailbox did."""

ReceiptState = Literal["accepted", "consumed", "bounced", "refused"]


class TurnInput(Wire):
    """One follow-up input.

    client_message_id   unique in its session: the same one twice is one message
    readiness           True lifts the turn's readiness hold, False sets one, None leaves it as it is
    attachments         images and files; their bytes are in SQL
    merged              it belongs to the question itself, because it came before the turn began
    """

    client_message_id: str
    text: str
    readiness: bool | None = None
    merged: bool = False
    attachments: tuple[Attachment, ...] = ()


class Receipt(Wire):
    """What became of an input.

    turn_id            the turn it was sent to
    step               the model call that read it, once `consumed`
    bounced_turn_id    the turn it became, once `bounced`
    """

    client_message_id: str
    session_id: str
    turn_id: str
    state: ReceiptState
    step: int | None = None
    bounced_turn_id: str | None = None

"""Mailboxes in Redis: input for a turn that runs."""

from __future__ import annotations

from typing import cast

from brainq.contracts.mailbox import PutWord, TurnInput
from brainq.state.keys import Keys
from brainq.state.script_values import as_json
from brainq.state.typed_scripts import MailboxPutAlready, MailboxPutFull, MailboxPutSealed, Scripts

MOST_UNREAD = 200
MOST_UNREAD_BYTES = (
    1_000_000  # what is unread goes to the model as a whole; a mailbox that is empty takes any one
)


class RedisMailbox:
    """Puts input into mailboxes, and reads what became of it. A step's begin consumes it, a turn's end bounces it."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._run = scripts
        self._keys = keys

    def put(self, session_id: str, turn_id: str, item: TurnInput) -> tuple[PutWord, str, str]:
        """(`ACCEPTED`, "", ""), (`ALREADY`, its receipt, the turn's state), (`SEALED`, the turn's state, ""),
        (`FULL`, inputs, bytes that no step has read) or (`GONE`, "", "")."""
        reply = self._run.mailbox_put(
            session_id,
            turn_id,
            message_id=item.client_message_id,
            item=as_json(item),
            most=MOST_UNREAD,
            most_bytes=MOST_UNREAD_BYTES,
        )
        match reply:
            case MailboxPutFull():
                return "FULL", str(reply.inputs), str(reply.bytes)
            case MailboxPutAlready():
                return "ALREADY", reply.receipt, reply.state
            case MailboxPutSealed():
                return "SEALED", reply.state, ""
            case _:
                return reply, "", ""

    def receipt(self, session_id: str, turn_id: str, client_message_id: str) -> str | None:
        """`accepted`, `consumed STEP` or `bounced`; None when Redis does not know the input."""
        key = self._keys.named("receipts", session_id, turn_id)
        return cast("str | None", self._run.client.hget(key, client_message_id))

    def receipts(self, session_id: str, turn_id: str) -> dict[str, str]:
        """All receipts of a turn, by client_message_id."""
        return cast(
            dict[str, str], self._run.client.hgetall(self._keys.named("receipts", session_id, turn_id))
        )

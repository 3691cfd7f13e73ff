"""Mailboxes of turns in Redis."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.mailbox import PutWord, TurnInput


class Mailbox(Protocol):
    """Fitted by `state.mailbox.RedisMailbox`, which says what each word means."""

    def put(self, session_id: str, turn_id: str, item: TurnInput) -> tuple[PutWord, str, str]: ...
    def receipt(self, session_id: str, turn_id: str, client_message_id: str) -> str | None: ...

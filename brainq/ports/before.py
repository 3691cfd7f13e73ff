"""What an ended turn's answer was given on."""

from __future__ import annotations

from typing import Protocol

from brainq.contracts.message import Message
from brainq.contracts.view import EndedTurn


class Before(Protocol):
    """What the turn itself does not hold: its system prompt, the conversation before it. See `wiring.before.Before`."""

    def system_prompt(self, turn: EndedTurn) -> str: ...
    def history(self, turn: EndedTurn) -> tuple[Message, ...]: ...

"""What an ended turn's answer was given on: its system prompt, and the conversation before it."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.brains import Brains
from brainq.contracts.attachment import in_text
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.message import Message
from brainq.contracts.view import EndedTurn
from brainq.errors import InvalidInput
from brainq.store.repositories.turns import Turns
from brainq.turn.begin import system_prompt_of
from brainq.turn.context.preparer import render_hash
from brainq.turn.thinking import PREFIXES

TURNS_BEFORE = 10


@dataclass(eq=False)
class Before:
    """Fits `ports.before.Before`."""

    brains: Brains
    turns: Turns

    def system_prompt(self, turn: EndedTurn) -> str:
        """As the turn had it; "" where it cannot be made again: the brain, or what its function says, has changed."""
        request = turn.request
        brain = self.brains.of(request.brain)
        info = TurnInfo.of(request, turn.turn_number)
        if brain is None:
            return ""
        try:
            text = request.system_prompt or system_prompt_of(brain, info)
        except InvalidInput:
            return ""
        return text if render_hash(text, PREFIXES[brain.thinking]) == turn.prompt_hash else ""

    def history(self, turn: EndedTurn) -> tuple[Message, ...]:
        """What was said in the session's last turns before this one, oldest first, as far as SQL keeps it."""
        request = turn.request
        if request.kind == "review" and request.seed == "empty":
            return ()
        said: list[Message] = []
        for earlier in self.turns.history(request.session_id, request.turn_id, TURNS_BEFORE):
            if asked := in_text(earlier.user, earlier.attachments):
                said.append(Message(role="user", content=asked))
            if earlier.assistant:
                said.append(Message(role="assistant", content=earlier.assistant))
        return tuple(said)

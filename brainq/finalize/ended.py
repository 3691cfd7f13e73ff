"""Ended turns, read once a process instead of once a step."""

from __future__ import annotations

import threading
from collections import OrderedDict

from brainq.contracts.claim import StepClaim, StepDropped
from brainq.contracts.view import EndedTurn
from brainq.errors import TurnNotFound
from brainq.ports.finals import Finals

KEPT = 2048  # a few kB each; a chain's steps come far apart when many turns end at once


class EndedTurns:
    """A small cache. Nothing of an ended turn changes but its text, and each change counts up its revision."""

    def __init__(self, chain: Finals) -> None:
        self._chain = chain
        self._turns: OrderedDict[tuple[str, str], tuple[int, EndedTurn]] = OrderedDict()
        self._lock = threading.Lock()

    def claim(self, session_id: str, turn_id: str, step: str, owner: str) -> StepClaim | StepDropped:
        """Claim a step; a turn that is not known here is read with it."""
        with self._lock:
            is_known = (session_id, turn_id) in self._turns
        claim = self._chain.claim if is_known else self._chain.claim_and_look
        return claim(session_id, turn_id, step, owner)

    def turn(self, claim: StepClaim) -> EndedTurn:
        """The turn as it stood at this claim. Raises TurnNotFound when Redis no longer has it."""
        key = (claim.session_id, claim.turn_id)
        with self._lock:
            kept = self._turns.get(key)
        if kept is not None and kept[0] == claim.revision:
            return kept[1]
        turn = self._chain.look(claim)
        if turn is None:
            raise TurnNotFound(f"turn {claim.turn_id!r} is no longer in Redis")
        with self._lock:
            self._turns[key] = (claim.revision, turn)
            self._turns.move_to_end(key)
            while len(self._turns) > KEPT:
                self._turns.popitem(last=False)
        return turn

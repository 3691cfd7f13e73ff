"""What a turn leaves behind when it ends, seen to by those whose it is. Fits `turn.ports.Leftovers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.people.children import ChildDesk
from brainq.people.inputs import InputDesk


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Input that no step has read, and children that nobody waits for."""

    inputs: InputDesk
    children: ChildDesk

    def bounce(self, session_id: str, turn_id: str, inputs: Sequence[str]) -> None:
        self.inputs.bounce(session_id, turn_id, inputs)

    def cancel_children(self, turn_ids: Sequence[str]) -> None:
        self.children.cancel_children(turn_ids)

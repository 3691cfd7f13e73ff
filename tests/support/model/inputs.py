"""The `inputs` table, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from brainq.contracts.people import ReceiptState, TurnInput
from brainq.contracts.rows import InputRow

_AT = datetime(2026, 1, 1, tzinfo=UTC)  # nobody looks at it


class Inputs:
    """A stand-in for the repository of inputs. Texts are kept."""

    def __init__(self, give_way: Callable[[], None]) -> None:
        self.rows: dict[tuple[str, str], InputRow] = {}
        self._give_way = give_way

    def accept(self, session_id: str, turn_id: str, item: TurnInput) -> InputRow:
        self._give_way()
        found = self.rows.get((session_id, item.client_message_id))
        if found is None:
            found = InputRow(
                row=len(self.rows) + 1,
                session_id=session_id,
                turn_id=turn_id,
                **item.model_dump(exclude={"attachments"}),
                content_hash="",
                state="accepted",
                step=None,
                bounced_turn_id=None,
                accepted_at=_AT,
                settled_at=None,
            )
            self.rows[session_id, item.client_message_id] = found
        return found

    def get(self, session_id: str, client_message_id: str) -> InputRow | None:
        return self.rows.get((session_id, client_message_id))

    def of_turn(self, turn_id: str) -> list[InputRow]:
        return [row for row in self.rows.values() if row.turn_id == turn_id]

    def open(self, after_row: int, limit: int, older_than_s: float) -> list[InputRow]:
        return [row for row in self.rows.values() if row.row > after_row and row.state == "accepted"]

    def consumed(self, session_id: str, ids_to_steps: Mapping[str, int]) -> int:
        changed = 0
        for client_message_id, step in ids_to_steps.items():
            row = self.rows[session_id, client_message_id]
            if row.state == "accepted" or (row.state == "consumed" and row.step != step):
                self.rows[session_id, client_message_id] = replace(row, state="consumed", step=step)
                changed += 1
        return changed

    def bounced(self, session_id: str, client_message_id: str, turn_id: str, *, redact: bool = False) -> bool:
        self._give_way()
        return self._move(session_id, client_message_id, "bounced", turn_id)

    def refused(self, session_id: str, client_message_id: str, *, redact: bool = False) -> bool:
        self._give_way()
        return self._move(session_id, client_message_id, "refused", None)

    def settle(self, session_id: str, receipts: Mapping[str, str]) -> None:
        """Record the receipts, as the end of a turn does."""
        words = {key: value.split() for key, value in receipts.items()}
        self.consumed(session_id, {key: int(word[1]) for key, word in words.items() if word[0] == "consumed"})

    def _move(self, session_id: str, client_message_id: str, state: ReceiptState, turn_id: str | None) -> bool:
        row = self.rows[session_id, client_message_id]
        if row.state != "accepted":
            return False
        self.rows[session_id, client_message_id] = replace(row, state=state, bounced_turn_id=turn_id)
        return True

"""Mid-turn input, from its row in SQL to the mailbox of the turn. If the mailbox is sealed, the input becomes a
turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.cell import tenant_key
from brainq.contracts.file import File
from brainq.contracts.fleet import ComparedPage
from brainq.contracts.people import Receipt, TurnInput
from brainq.contracts.rows import InputRow
from brainq.engine.people.bounced_inputs import BouncedInputs
from brainq.engine.people.brakes import BrakeDesk
from brainq.engine.people.tenant_places import ONE_CELL, TenantPlaces
from brainq.engine.people.turn_queue import TurnQueue
from brainq.errors import InputNotFound, MailboxFull, StaleTurn
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.people import RedisHolds, RedisSessions
    from brainq.adapters.sql.repositories.blobs import Blobs
    from brainq.adapters.sql.repositories.inputs import Inputs
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.people")
LIVE_STATES = ("queued", "active", "parked")
PAGE = 500
SETTLING_S = 5.0  # how long a sender has for both steps before the sweeper finishes them


@dataclass(eq=False, kw_only=True)
class InputDesk:
    """The desk that sends input, shows what became of it, and finishes what a sender or a coordinator left half done.

    redact    returns whether SQL keeps no texts of the turn with this id
    tenants   where the input is accepted if the tenant has left this cell
    """

    inputs: Inputs
    sessions: RedisSessions
    requests: Turns
    bounced: BouncedInputs
    turn_queue: TurnQueue
    holds: RedisHolds
    brakes: BrakeDesk
    redact: Callable[[str], bool]
    blobs: Blobs
    tenants: TenantPlaces = ONE_CELL

    def send(
        self,
        session_id: str,
        turn_id: str,
        item: TurnInput,
        files: Sequence[File] = (),
        *,
        expected_turn_id: str | None = None,
    ) -> Receipt:
        """Put input into a turn's mailbox, or make a turn of it if the mailbox is sealed.

        Sending the same client_message_id again returns the first receipt. Raises StaleTurn if `expected_turn_id` is
        not the live turn, MailboxFull, SubmitConflict if the id was used for other input, and TenantMoved.
        """
        has_come = self.tenants.require_here(session_id)
        known = self.inputs.get(session_id, item.client_message_id)
        if expected_turn_id is not None and known is None:
            self._expect(session_id, expected_turn_id)
        new = self.blobs.keep(session_id, turn_id, files) if known is None else ()
        row = self.inputs.accept(session_id, turn_id, item)
        if has_come and known is None:
            self._deliver_before(row)
        try:
            return self._deliver(row, expected_turn_id)
        except (MailboxFull, StaleTurn) as refused:
            if isinstance(refused, MailboxFull):
                self.inputs.refused(session_id, item.client_message_id, redact=self.redact(turn_id))
            self._take_back(row, new)
            raise

    def receipt(self, session_id: str, client_message_id: str) -> Receipt:
        """Return what became of an input. Raises InputNotFound if it was never sent."""
        row = self.inputs.get(session_id, client_message_id)
        if row is None:
            raise InputNotFound(f"no input {client_message_id!r} was sent to session {session_id!r}")
        if row.state == "accepted":
            receipt = self.sessions.input_receipt(session_id, row.turn_id, client_message_id)
            if receipt is not None and receipt.startswith("consumed"):
                return _consumed_receipt(row, int(receipt.split()[1]))
        return row.receipt

    def find(self, session_id: str, client_message_id: str) -> Receipt | None:
        """Return what became of an input, or None if it was never sent."""
        row = self.inputs.get(session_id, client_message_id)
        return None if row is None else self.receipt(session_id, client_message_id)

    def heal(self, after_row: int) -> ComparedPage:
        """Finish the inputs that are in SQL and not in Redis, for a page of open inputs after this row."""
        rows, healed = self.inputs.open(after_row, PAGE, SETTLING_S), 0
        for row in rows:
            receipt = self._put_waiting(row)
            healed += receipt is not None and receipt.state != "accepted"
        return ComparedPage(rows[-1].row if rows else after_row, len(rows) == PAGE, healed)

    def bring_in(self, tenant: str) -> bool:
        """Put the waiting input of a tenant that has come to this cell into the mailboxes of its turns. Returns False
        if some of it cannot be put there yet."""
        after_row, is_all = 0, True
        while rows := self.inputs.open(after_row, PAGE, 0.0):
            for row in rows:
                if tenant_key(row.session_id) == tenant:
                    is_all = self._put_waiting(row) is not None and is_all
            after_row = rows[-1].row
        return is_all

    def _deliver_before(self, row: InputRow) -> None:
        """Put input that arrived while the tenant moved into the mailbox before the new input."""
        for earlier in self.inputs.of_turn(row.turn_id):
            if earlier.client_message_id == row.client_message_id:
                return
            self._put_waiting(earlier)

    def _put_waiting(self, row: InputRow) -> Receipt | None:
        """Put an input into its turn's mailbox. Returns its receipt, or None if it cannot be put there yet."""
        if row.is_unreadable:
            return None
        try:
            return self._deliver(row, None)
        except MailboxFull:
            return None  # it is put there once a step has read some of the inputs
        except Exception as failure:
            log.error("input not healed", failure=failure, turn_id=row.turn_id)
            return None

    def _deliver(self, row: InputRow, expected_turn_id: str | None) -> Receipt:
        if row.state != "accepted":
            return row.receipt
        word, receipt, state = self._put(row)
        match word:
            case "ACCEPTED":
                self._lift_readiness(row)
                return row.receipt
            case "FULL":
                raise MailboxFull(row.turn_id, int(receipt), int(state))
            case "MOVED":
                self.tenants.send_input(row.session_id, row.client_message_id, receipt)
                return row.receipt
            case "MOVING":
                return row.receipt  # it is put there once the tenant has moved, or stays
            case "ALREADY" if receipt.startswith("consumed"):
                step = int(receipt.split()[1])
                self.inputs.consumed(row.session_id, {row.client_message_id: step})
                return _consumed_receipt(row, step)
            case "ALREADY" if receipt == "accepted" and state in LIVE_STATES:
                self._lift_readiness(row)
                return row.receipt
            case "GONE" if self.requests.is_open(row.turn_id):
                return row.receipt  # Redis does not know the turn yet, or has lost it: the sweeper queues it first
            case _:
                pass
        if expected_turn_id is not None and word != "ALREADY":
            if self.inputs.refused(row.session_id, row.client_message_id, redact=self.redact(row.turn_id)):
                raise StaleTurn(expected_turn_id, self.sessions.live(row.session_id))
            return self.receipt(row.session_id, row.client_message_id)
        self.bounced.make_turn(row)
        return self.receipt(row.session_id, row.client_message_id)

    def _take_back(self, row: InputRow, new: Sequence[str]) -> None:
        """Remove the files of a refused input, except those that another input has sent meanwhile."""
        if new:
            others = (one for one in self.inputs.of_turn(row.turn_id) if one.client_message_id != row.client_message_id)
            had = {attachment.sha256 for one in others for attachment in one.attachments}
            self.blobs.take_back(row.turn_id, [sha256 for sha256 in new if sha256 not in had])

    def _put(self, row: InputRow) -> tuple[str, str, str]:
        put = self.sessions.put_input(row.session_id, row.turn_id, row.item)
        if put[0] == "GONE":
            request = self.requests.request(row.turn_id)
            if request is not None and self.requests.is_open(row.turn_id):
                self.turn_queue.queue_again(request)
                put = self.sessions.put_input(row.session_id, row.turn_id, row.item)
        return put

    def _lift_readiness(self, row: InputRow) -> None:
        """Lift the readiness hold in SQL. A turn parked by it takes no step that could read the input that lifts it."""
        if row.readiness is not True:
            return
        for hold in self.holds.of_turn(row.session_id, row.turn_id):
            if hold.kind == "readiness":
                self.brakes.release(row.session_id, row.turn_id, hold.id)

    def _expect(self, session_id: str, expected_turn_id: str) -> None:
        live = self.sessions.live(session_id)
        if live != expected_turn_id:
            raise StaleTurn(expected_turn_id, live)


def _consumed_receipt(row: InputRow, step: int) -> Receipt:
    return row.receipt.model_copy(update={"state": "consumed", "step": step})

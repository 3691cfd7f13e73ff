"""One of the two cells of a move, with the parts of its Redis and SQL that a move needs."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from brainq.adapters.redis.people import RedisSessions
from brainq.adapters.redis.tenant_keys import RedisMovedWords, RedisTenantKeys
from brainq.adapters.sql.database import Database
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.adapters.sql.tenant_budgets import TenantBudgetRows
from brainq.app.wiring import Wiring
from brainq.contracts.cell import Placement
from brainq.contrib.cells.late_rows import LateRows
from brainq.contrib.cells.placements import Tombstones
from brainq.contrib.cells.tenant_rows import TenantRows

T = TypeVar("T")
Acts = Generator[None, None, T]
"""Several writes. There is a pause before each but the first, in which the mover checks that it still has the move.

A process that was frozen must not continue work that another process has finished meanwhile.
"""
PAUSED_WHY = "the tenant is moving to another cell"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSide:
    """One of the two cells of a move: the one that the tenant leaves, or the one to which it moves."""

    name: str
    database: Database
    rows: TenantRows
    keys: RedisTenantKeys
    words: RedisMovedWords
    tombstones: Tombstones
    sessions: RedisSessions
    budgets: TenantBudgetRows

    def say_moving(self, tenant: str, epoch: int) -> Acts[None]:
        """Make everything that is accepted here for the tenant wait.

        SQL is written first, because Redis may lose its record.
        """
        self.tombstones.put(tenant, "", epoch)
        yield
        self.words.put(tenant, Placement("", epoch))

    def say_moved(self, tenant: str, placement: Placement) -> Acts[None]:
        """Redirect all requests for the tenant to its new cell."""
        self.tombstones.put(tenant, placement.cell, placement.epoch)
        yield
        self.words.put(tenant, placement)

    def say_not_here(self, tenant: str, placement: Placement) -> Acts[None]:
        """Restore the tombstone that was there before a move to this cell, which was undone."""
        self.tombstones.restore(tenant, placement.cell, placement.epoch)
        yield
        self.words.put_back(tenant, placement)

    def open_for(self, tenant: str) -> Acts[None]:
        """Show the tenant's sessions here: their turns continue, and waiting turns begin. Idempotent.

        Turns that wait in SQL are queued before later turns of their sessions.
        """
        self.keys.show(tenant)
        yield
        self.tombstones.arrive(tenant, self.name)
        yield
        self.words.put(tenant, None)
        yield
        for session_id in self.keys.sessions(tenant):
            if self.sessions.why_paused(session_id) == PAUSED_WHY:
                self.sessions.resume(session_id)
        self.keys.ask_for_money_again(tenant)
        self.keys.have_rows_compared()

    def is_open_for(self, tenant: str) -> bool:
        """Return whether turns of the tenant begin here."""
        place = self.tombstones.of(tenant)
        return (place is None or place.has_come) and self.words.of(tenant) is None

    def pause_lines(self, tenant: str) -> None:
        """Keep the next turn from beginning when a live one of the tenant ends."""
        for session_id in self.keys.sessions_with_a_line(tenant):
            self.sessions.pause(session_id, PAUSED_WHY)

    def send_new(self, other: MoveSide, tenant: str) -> int:
        """Send the turns that only this cell has to the other cell, in order. Returns their number."""
        late, sent = LateRows(self.database, lambda _: other.database), 0
        for turn_ids in self.rows.turn_pages(tenant):
            there = other.rows.known_turns(turn_ids)
            for turn_id in turn_ids:
                if turn_id not in there:
                    late.send_turn(turn_id, other.name)
                    sent += 1
        return sent

    def send_late(self, other: MoveSide, tenant: str) -> Acts[int]:
        """Send what only this cell accepted to the other cell, and delete what both have.

        Returns the number of turns that were sent.
        """
        late, sent = LateRows(self.database, lambda _: other.database), 0
        while turn_ids := self.rows.first_turns(tenant):
            yield
            there = other.rows.known_turns(turn_ids)
            for turn_id in turn_ids:
                if turn_id not in there:
                    late.send_turn(turn_id, other.name)
                    sent += 1
            moved = [turn_id for turn_id in turn_ids if turn_id in there]
            inputs = self.rows.inputs_of(moved)
            known = other.rows.inputs_of(moved)
            for session_id, client_message_id in inputs.keys() - known.keys():
                late.send_input(session_id, client_message_id, other.name)
            yield
            self.rows.remove_turns(moved, [row for key, row in inputs.items() if key in known])
        return sent

    def send_budgets(self, other: MoveSide, tenant: str) -> int:
        """Copy the tenant's budget windows, with their granted and raised amounts. Returns their number."""
        windows = self.budgets.windows(tenant)
        other.budgets.put(windows)
        return len(windows)

    def forget_counters(self, tenant: str) -> None:
        """Delete Redis' counters of the tenant's windows, which start again from SQL. No call is in flight here."""
        for row in self.budgets.windows(tenant):
            self.keys.forget_counter(f"{row['scope']}/{row['per']}", row["start_ms"])

    def clear(self, other: MoveSide, tenant: str) -> Acts[int]:
        """Delete all of the tenant's data here, after sending what only this cell has.

        Returns the number of turns that were sent.
        """
        sent = yield from self.send_late(other, tenant)
        yield
        self.rows.remove_rest(tenant)
        yield
        self.keys.remove_outside(tenant)
        yield
        self.keys.remove(tenant)
        self.keys.have_rows_compared()
        return sent

    def close(self) -> None:
        self.keys.close()


def open_side(name: str, wiring: Wiring) -> MoveSide:
    """Open a cell for a move. Raises the error of a cell that does not answer."""
    database, scripts = wiring.store.database, wiring.state.scripts
    CELL_TABLES.make(wiring.store.engine)
    return MoveSide(
        name=name,
        database=database,
        rows=TenantRows(database),
        keys=RedisTenantKeys(scripts, wiring.redis_url),
        words=RedisMovedWords(scripts),
        tombstones=Tombstones(database),
        sessions=wiring.state.sessions,
        budgets=TenantBudgetRows(database),
    )

"""Several cells: requests about a tenant go to the cell that the directory names for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar, cast

from brainq.adapters.sql.tables.cell_tables import CELL_TABLES, tenant_cells
from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells, turn_not_found
from brainq.contracts.answers import Answers
from brainq.contracts.call import parse_outside_token
from brainq.contracts.cell import Move, Placement, birth_cell, ranked_cells, tenant_key, with_birth_cell
from brainq.contracts.ids import ALL_SESSIONS, PREFIX_BOUNDARY
from brainq.contracts.rows import TurnRow
from brainq.contracts.turn import TurnRequest
from brainq.contrib.cells.asking import ask_each, named_away
from brainq.contrib.cells.directory import KnownTenants
from brainq.contrib.cells.placements import Directory, Moves
from brainq.engine.brain.brains import Brains
from brainq.errors import CellUnreachable, InvalidInput, NotFound, TenantMoved
from brainq.runtime.settings.deployment import Settings

T = TypeVar("T")
DIRECTORY_ANSWER_S = 1.0  # A home cell that hangs must not delay the tenants of other cells.
DIRECTORY_CONNECTIONS = 4
MOST_MOVES = 3
"""The number of times in a row that a verb follows a moved tenant before its caller gets the error."""


class RoutedCells(Cells):
    """The cells of a deployment, with one wiring per cell, which is made when it is first used. Thread-safe."""

    def __init__(self, settings: Settings, brains: Brains) -> None:
        self._settings = settings
        self._brains = brains
        self._cells = {cell.name: cell for cell in settings.all_cells()}
        self._wirings: dict[str, Wiring] = {}
        self._lock = threading.Lock()
        self._tenants = KnownTenants(lambda: self.directory, tuple(self._cells))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._cells)

    @property
    def own(self) -> str:
        return self._settings.cell

    @property
    def home(self) -> Wiring:
        return self.of_name(self.names[0])

    @cached_property
    def directory(self) -> Directory:
        """The home cell's directory, on its own connections, which wait at most a second."""
        _ = self.home.store  # Opening the store creates the schema, which the directory reads as well.
        url = self._cells[self.names[0]].sql_url.get_secret_value()
        return Directory(CELL_TABLES.open(url, pool_size=DIRECTORY_CONNECTIONS, answer_s=DIRECTORY_ANSWER_S))

    def of_session(self, session_id: str) -> Wiring:
        wiring = self.of_name(self._tenants.cell_of(tenant_key(session_id)))
        if self._tenants.is_hearsay(tenant_key(session_id)):
            wiring.tenants.require_shown(session_id)
            self._tenants.confirm(tenant_key(session_id))
        return wiring

    def settle(self, session_id: str) -> Wiring:
        return self.of_name(self._tenants.settle(tenant_key(session_id)))

    def settle_schedule(self, name: str, session_id: str) -> Wiring:
        tenant = tenant_key(session_id)
        if tenant_key(name) != tenant:
            wanted = f"begins with {tenant!r}" if tenant.endswith(PREFIX_BOUNDARY) else f"is its session's, {tenant!r}"
            raise InvalidInput("name", f"with several cells, a schedule's name {wanted}")
        if "{" in tenant:
            raise InvalidInput("session_id", "with several cells, a template needs a tenant: acme:{date}")
        return self.settle(name)

    def of_turn(self, turn_id: str) -> Wiring:
        found = self._found(turn_id)
        if found is None:
            return self.home
        cell, row = found
        key = tenant_key(row.session_id)
        if cell != self._tenants.cell_of(key):
            self._tenants.look_again(
                key
            )  # A turn is in both cells while its tenant moves, and then only in the new one.
        return self.of_session(row.session_id)

    def turn_row(self, turn_id: str) -> TurnRow:
        found = self._found(turn_id)
        if found is None:
            raise turn_not_found(turn_id)
        return found[1]

    def find_rows(self, sought: str) -> Sequence[TurnRow]:
        if not sought:
            return ()
        asked = self.ask(lambda wiring: wiring.store.turns.find(sought))
        # A turn whose tenant moves is in two cells for a while.
        found = {row.turn_id: row for rows in asked.values for row in rows}
        if asked.away and not any(sought in (row.turn_id, row.request_key) for row in found.values()):
            raise CellUnreachable(asked.away[0], f"the object that {sought!r} names may be in that cell")
        return list(found.values())

    def of_token(self, token: str) -> Wiring:
        ref = parse_outside_token(token) if isinstance(cast("object", token), str) else None
        if ref is not None:
            return self.of_session(ref.session_id)
        asked = self.ask(lambda wiring: wiring.state.outside.find(token))
        found = next((ref for ref in asked.values if ref is not None), None)
        if found is None and asked.away:
            raise CellUnreachable(asked.away[0], "the call that waits for this token may be in that cell")
        return self.home if found is None else self.of_session(found.session_id)

    def named(self, request: TurnRequest) -> TurnRequest:
        cell = self._tenants.settle(tenant_key(request.session_id))
        return request.model_copy(update={"turn_id": with_birth_cell(cell, request.turn_id)})

    def ask(
        self, question: Callable[[Wiring], T], session: str | None = None, prefixes: Sequence[str] | None = None
    ) -> Answers[T]:
        names = self._concerned(session, prefixes)
        if len(names) == 1:
            try:
                return Answers(((names[0], question(self.of_name(names[0]))),))
            except Exception as failure:
                raise named_away(names[0], failure) from failure
        return ask_each([(name, self.of_name(name)) for name in names], question)

    def _concerned(self, session: str | None, prefixes: Sequence[str] | None) -> Sequence[str]:
        """Return the names of the cells that have these sessions, in the order of all cells."""
        if session is not None:
            return (self.of_session(session).settings.cell,)
        if not prefixes or ALL_SESSIONS in prefixes:
            return self.names
        concerned = {self.of_session(prefix).settings.cell for prefix in prefixes}
        return [name for name in self.names if name in concerned]

    def _found(self, turn_id: str) -> tuple[str, TurnRow] | None:
        """Return the turn's row and its cell's name.

        A second search finds a row that was moved from one cell to another during the first.
        """
        return self._look_for(turn_id) or self._look_for(turn_id)

    def _look_for(self, turn_id: str) -> tuple[str, TurnRow] | None:
        """Search in the cell that the turn's id names, and then in the others."""
        others, born = self.names, birth_cell(turn_id, self.names)
        if born is not None:
            asked = ask_each([(born, self.of_name(born))], lambda wiring: wiring.store.turns.get(turn_id))
            if asked.values and asked.values[0] is not None:
                return born, asked.values[0]
            others = tuple(name for name in self.names if name != born or asked.away)
        asked = ask_each(
            [(name, self.of_name(name)) for name in others], lambda wiring: wiring.store.turns.get(turn_id)
        )
        found = next(((name, row) for name, row in asked.answers if row is not None), None)
        if found is None and asked.away:
            raise CellUnreachable(asked.away[0], f"turn {turn_id!r} may be in that cell; it is in no other")
        return found

    def of_name(self, name: str) -> Wiring:
        wiring = self._wirings.get(name)
        if wiring is not None:
            return wiring
        if name not in self._cells:
            raise InvalidInput("cell", f"{name!r} is not one of {', '.join(self._cells)}")
        with self._lock:
            if name not in self._wirings:
                self._wirings[name] = Wiring(self._settings.of_cell(self._cells[name]), self._brains)
            return self._wirings[name]

    def each(self) -> Sequence[tuple[str, Wiring]]:
        return [(name, self.of_name(name)) for name in self._cells]

    def do_in_each(self, act: Callable[[Wiring], T]) -> Sequence[T]:
        done, away = list[T](), list[CellUnreachable]()
        for name, wiring in self.each():
            try:
                done.append(act(wiring))
            except Exception as failure:
                shown = named_away(name, failure)
                if not isinstance(shown, CellUnreachable):
                    raise
                away.append(shown)
        if away:
            others = "the other cells have it" if done else "nor does any other cell"
            raise CellUnreachable(away[0].cell, f"{away[0].why}; {others}: do it again once all do")
        return done

    def first_to_answer(self, key: str, question: Callable[[Wiring], T]) -> T:
        *others, last = ranked_cells(key, self.names)
        for name in others:
            asked = ask_each([(name, self.of_name(name))], question)
            if asked.answers:
                return asked.values[0]
        return question(self.of_name(last))

    def follow(self, session_id: str, attempt: Callable[[], T]) -> T:
        for number in range(MOST_MOVES + 1):
            try:
                return attempt()
            except TenantMoved as moved:
                if number == MOST_MOVES:
                    raise
                self.learn(moved)
            except NotFound:
                if number == MOST_MOVES or not session_id or not self.look_again(session_id):
                    raise
            except Exception as failure:
                shown = self.failed(session_id, failure)
                if shown is failure:
                    raise
                raise shown from failure
        raise AssertionError("unreachable: the last attempt returns or raises")

    def learn(self, moved: TenantMoved) -> None:
        """Record a tenant's new cell, as reported by the cell that the tenant has left."""
        self._tenants.learn(moved.tenant, Placement(moved.cell, moved.epoch))

    def failed(self, session_id: str, failure: Exception) -> Exception:
        """Return the failure as a public error. It names the session's cell if that cell does not answer."""
        if not session_id or isinstance(failure, CellUnreachable):
            return failure
        return named_away(self._tenants.cell_of(tenant_key(session_id)), failure)

    def look_again(self, session_id: str) -> bool:
        tenant = tenant_key(session_id)
        asked = self.of_name(self._tenants.cell_of(tenant))
        if self._tenants.look_again(tenant):
            return True
        try:
            asked.tenants.require_shown(session_id)
        except TenantMoved as moved:
            self.learn(moved)
            return True
        return False

    def directory_facts(self) -> tuple[dict[str, int], Sequence[Move]] | None:
        found = ask_each([(self.names[0], self.home)], _read_directory)
        return found.values[0] if found.values else None

    def forget_tenant(self, tenant: str) -> int:
        return int(Directory(self.home.store.database).forget(tenant))

    def ping(self) -> None:
        self._require_one(_answers)

    def look(self) -> None:
        self._require_one(lambda wiring: wiring.look(sql=True))

    def _require_one(self, ask: Callable[[Wiring], None]) -> None:
        asked = ask_each(self.each(), ask)
        if not asked.answers:
            raise CellUnreachable(asked.away[0], "nor does any other cell")

    def opened(self) -> Sequence[Wiring]:
        return list(self._wirings.values())

    def close(self) -> None:
        for wiring in self.opened():
            wiring.close()
        if "directory" in self.__dict__:
            self.directory.close()


def _answers(wiring: Wiring) -> None:
    wiring.ping()
    wiring.store.ping()


def _read_directory(home: Wiring) -> tuple[dict[str, int], Sequence[Move]]:
    if not CELL_TABLES.has(home.store.engine, tenant_cells):
        return {}, ()  # no turn was submitted yet
    return Directory(home.store.database).counts(), Moves(home.store.database).all()

"""The move of a tenant to another cell, phase by phase.

A phase may be repeated: another process continues with the phase that is recorded in the home cell's SQL.

    claimed    the move is recorded
    waiting    new turns wait in SQL, live ones end or park; then the sessions are hidden, so that nothing changes them
    copying    rows and keys are copied and counted
    deciding   both cells are compared
    flipping   the move can no longer be undone: the old cell redirects all requests, the new one continues the turns
    cleaning   rows that arrived late are sent to the new cell, and only the tombstone is left in the old one
    undoing    the copy is deleted, and turns continue in the old cell
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from brainq.adapters.sql.tables import approvals, attachments, blobs, brakes, turns
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.adapters.sql.tables.tenant_tables import COPIED, HANDED_OVER
from brainq.app.wiring.cells import Cells
from brainq.app.wiring.services import is_unavailable
from brainq.contracts.cell import Move, MovePhase, MoveStep, Placement, hashed_cell, tenant_key
from brainq.contracts.ids import PREFIX_BOUNDARY
from brainq.contrib.cells.directory import FRESH_S
from brainq.contrib.cells.placements import Directory, Moves
from brainq.contrib.cells.side import Acts, MoveSide, open_side
from brainq.errors import BrainqError, InvalidInput, MoveFailed, SetupError, Unreachable
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.threads import KeptThread

log = logger("brainq.cells")
T = TypeVar("T")
LEASE_S = 30.0
BEAT_S = 8.0
LOOK_S = 0.2
MOST_COPIES = 5  # The maximum number of copies. Rows that people change meanwhile are copied again.
SHOWN_TURNS = 5
MAX_ROW = 2**62
_STEPPED = (approvals, brakes)


class Undo(Exception):
    """The reason why a move is abandoned and undone."""


@dataclass(eq=False, kw_only=True)
class TenantMover:
    """A mover of tenants. Any number of movers may run, but only one for each tenant.

    directory, moves: the tables in the home cell.
    open_side: opens a cell by its name.
    names: the names of all cells, the home cell first.
    owner: this process's name.
    wait_s: the seconds that live turns have to end or park before the move is undone.
    linger_s: the seconds for which fronts may read from the old cell after the directory names the new one.
    watch: a function that is called with each step.
    """

    directory: Directory
    moves: Moves
    open_side: Callable[[str], MoveSide]
    names: tuple[str, ...]
    owner: str
    wait_s: float = 60.0
    linger_s: float = FRESH_S
    watch: Callable[[MoveStep], None] = lambda _: None

    def move(self, tenant: str, to_cell: str) -> MoveStep:
        """Move the tenant, or continue its move if one was begun. Raises InvalidInput, and MoveFailed if the move was
        undone and everything is as before."""
        if to_cell not in self.names:
            raise InvalidInput("to", f"{to_cell!r} is not one of {', '.join(self.names)}")
        if tenant != tenant_key(tenant):
            raise InvalidInput(
                "tenant", f"{tenant!r} is part of a tenant, which moves as a whole; name {tenant_key(tenant)}"
            )
        placement = self.directory.placement(tenant)
        if placement is None:
            if not tenant.endswith(PREFIX_BOUNDARY) and self.directory.placement(tenant + PREFIX_BOUNDARY) is not None:
                raise InvalidInput("tenant", f"there is no tenant {tenant!r}; name {tenant}: with its colon")
            placement = self.directory.settle(tenant, self._first_cell(tenant))
        if placement.cell != to_cell and self.moves.get(tenant) is None:
            self._require_keys(tenant, placement.cell)
        row = self._claim(tenant, placement, to_cell)
        if row is None:
            return MoveStep(tenant, to_cell, to_cell, "done")
        if row.phase == "undoing":  # Another process died while it undid the move.
            self._run(row)
            return self.move(tenant, to_cell)
        return self._run(row)

    def _require_keys(self, tenant: str, cell: str) -> None:
        """Check that all content can be read with one cell's keys and written with the other's."""
        with closing(self.open_side(cell)) as source:
            if unreadable := source.rows.unreadable(tenant):
                raise MoveFailed(
                    f"{unreadable} turns of tenant {tenant!r} are encrypted under removed keys and cannot be moved; "
                    f"`brainq erase --tenant {tenant}` deletes what remains of them"
                )

    def _first_cell(self, tenant: str) -> str:
        return self.names[0] if self.directory.lived_here(tenant) else hashed_cell(tenant, self.names)

    def _claim(self, tenant: str, placement: Placement, to_cell: str) -> Move | None:
        """Lease the tenant's move to this process. Returns None if the tenant is in that cell already."""
        row = self.moves.get(tenant)
        if row is None:
            if placement.cell == to_cell:
                return None
            self.moves.begin(tenant, placement.cell, to_cell, placement.epoch + 1, "claimed", self.owner, LEASE_S)
            row = self.moves.get(tenant)
        if row is None or not self.moves.take(tenant, self.owner, LEASE_S):
            raise MoveFailed(f"another process is moving tenant {tenant!r}; `brainq move --list` shows its progress")
        row = self.moves.get(tenant) or row  # The former owner may have advanced the move since the row was read.
        if row.to_cell != to_cell and row.phase != "undoing":
            raise InvalidInput(
                "to", f"tenant {tenant!r} is being moved to cell {row.to_cell!r}; finish that move first"
            )
        return row

    def _run(self, row: Move) -> MoveStep:
        try:
            with ExitStack() as stack:
                source, target = (self.open_side(name) for name in (row.from_cell, row.to_cell))
                stack.callback(source.close)
                stack.callback(target.close)
                run = MoveRun(self, row, source, target)
                stack.enter_context(run.beating())
                return run.to_the_end()
        except BaseException as failure:
            with suppress(Exception):  # The home cell may be what does not answer.
                self.moves.take(row.tenant, self.owner, 0.0)  # The next run need not wait for the lease.
            if isinstance(failure, BrainqError) or not is_unavailable(failure):
                raise
            raise _stopped(row, failure) from failure


class MoveRun:
    """A run of one move by one process."""

    def __init__(self, mover: TenantMover, row: Move, source: MoveSide, target: MoveSide) -> None:
        self._mover = mover
        self._row = row
        self._tenant = row.tenant
        self._source = source
        self._target = target
        self._counts: dict[str, Any] = dict(row.counts)
        self._copies = 0
        self._upto: dict[str, int] = {}  # The last row that was copied, by table. Later rows are sent afterwards.
        self._is_lost = threading.Event()
        self._kept_at = float("-inf")  # monotonic time of the last renewal of the lease

    def to_the_end(self) -> MoveStep:
        """Run all remaining phases. Raises MoveFailed after the move was undone."""
        phase: MovePhase = self._row.phase  # pyright: ignore[reportAssignmentType] - home's SQL has no other
        why = self._row.error
        while phase != "done":
            self._tell(phase)
            self._own()
            try:
                following = self._do(phase)
            except Undo as undo:
                following, why = "undoing", str(undo)
            if following != "done":
                self._advance(phase, following, why)
            elif not self._mover.moves.remove(self._tenant, self._mover.owner):
                self._lost()
            if phase == "undoing":
                break
            phase = following
        step = self._tell(phase if phase == "undoing" else "done")
        if phase == "undoing" and self._row.phase != "undoing":
            raise MoveFailed(f"tenant {self._tenant!r} stays in cell {self._row.from_cell!r}: {why}")
        return step

    def _do(self, phase: MovePhase) -> MovePhase:
        """Carry out one phase and return the next one. Raises Undo."""
        match phase:
            case "claimed":
                return "waiting"
            case "waiting":
                return self._wait()
            case "copying":
                return self._copy()
            case "deciding":
                return self._compare()
            case "flipping":
                return self._flip()
            case "cleaning":
                return self._clean()
            case "undoing":
                return self._undo()
            case "done":
                return "done"

    def _wait(self) -> MovePhase:
        for side in (self._target, self._source):
            self._do_owned(side.say_moving(self._tenant, self._row.epoch))
        until = time.monotonic() + self._mover.wait_s
        while True:
            self._own()
            self._source.pause_lines(self._tenant)
            self._own()
            began = time.monotonic()
            busy = self._source.keys.busy_turns(self._tenant) or self._source.keys.hide(self._tenant)
            if not busy:
                return "copying"
            self._tell("waiting", tuple(busy))
            if time.monotonic() > until:
                shown = ", ".join(busy[:SHOWN_TURNS]) + (" ..." if len(busy) > SHOWN_TURNS else "")
                raise Undo(f"{len(busy)} turns did not end or park within {self._mover.wait_s:g} s: {shown}")
            time.sleep(max(LOOK_S, time.monotonic() - began))  # reading many keys takes at most half of the time

    def _copy(self) -> MovePhase:
        self._copies += 1
        if self._copies > MOST_COPIES:
            raise Undo("its rows changed faster than they could be copied")
        self._do_owned(self._target.clear(self._source, self._tenant))
        self._upto = {table.name: 0 for table in COPIED}
        for table in COPIED:
            for page in self._source.rows.pages(table, self._tenant):
                self._own()
                self._target.rows.put(table, page)
                self._upto[table.name] = page[-1].get("row", 0)
        self._own()
        copied = self._source.keys.copy_to(self._target.keys, self._tenant)
        self._counts = {**self._source.rows.counts(self._tenant), "keys": copied}
        return "deciding"

    def _compare(self) -> MovePhase:
        if not self._upto:
            return "copying"  # The copy was made by a process that has ended.
        here = self._source.rows.digests(self._tenant, self._upto)
        there = self._target.rows.digests(self._tenant, dict.fromkeys(self._upto, MAX_ROW))
        differing = [name for name, digest in here.items() if digest != there[name]]
        if not differing:
            keys = [side.keys.count(self._tenant) for side in (self._source, self._target)]
            return "flipping" if keys[0] == keys[1] else "copying"
        if self._copies >= MOST_COPIES:
            rows = ", ".join(f"{name} {here[name].rows} and {there[name].rows}" for name in differing)
            raise Undo(
                f"the two cells do not have the same rows ({rows}): an id or a request key of the tenant may belong "
                "to another tenant there"
            )
        return "copying"

    def _flip(self) -> MovePhase:
        tenant, placement = self._tenant, Placement(self._row.to_cell, self._row.epoch)
        self._do_owned(self._source.say_moved(tenant, placement))
        if not self._target.is_open_for(tenant):
            self._bring_changes()
            self._counts["late"] = self._source.send_new(self._target, tenant)  # in the order in which it was accepted
            self._counts["budgets"] = self._source.send_budgets(self._target, tenant)
            self._own()
            self._target.forget_counters(tenant)
        for table in HANDED_OVER:
            self._own()
            for page in list(self._source.rows.pages(table, tenant)):
                self._target.rows.put(table, page)
            self._own()
            self._source.rows.remove_jobs(table, tenant)
        self._own()
        if self._target.keys.has_hidden(tenant):
            self._counts |= self._source.keys.copy_outside(self._target.keys, tenant)
        self._do_owned(self._target.open_for(tenant))
        self._own()
        if not self._mover.directory.flip(tenant, placement.cell, placement.epoch):
            found = self._mover.directory.placement(tenant)
            if found != placement:
                raise BrainqError(f"the directory has tenant {tenant!r} at {found}, although {placement} was expected")
        return "cleaning"

    def _bring_changes(self) -> None:
        """Copy the decisions that people made between the copy and the tombstone. `clear` sends new turns and input."""
        here, there = (side.rows.digests(self._tenant) for side in (self._source, self._target))
        for table in COPIED:
            if here[table.name] == there[table.name] or table in (turns, blobs, attachments):
                continue
            for page in self._source.rows.pages(table, self._tenant):
                self._own()
                if table in _STEPPED:
                    self._target.rows.replace(table, page)
                else:
                    self._target.rows.put(table, page)

    def _clean(self) -> MovePhase:
        time.sleep(self._mover.linger_s)
        self._own()
        # Send the amounts by which the budgets were raised meanwhile.
        self._source.send_budgets(self._target, self._tenant)
        self._own()
        self._source.forget_counters(self._tenant)
        self._source.budgets.remove(self._tenant)
        late = self._do_owned(self._source.clear(self._target, self._tenant))
        self._counts["late"] = self._counts.get("late", 0) + late
        return "done"

    def _undo(self) -> MovePhase:
        stays = Placement(self._row.from_cell, self._row.epoch - 1)
        self._do_owned(self._target.clear(self._source, self._tenant))
        self._do_owned(self._target.say_not_here(self._tenant, stays))
        self._do_owned(self._source.open_for(self._tenant))
        return "done"

    def _advance(self, phase: MovePhase, following: MovePhase, why: str | None) -> None:
        if not self._mover.moves.advance(self._tenant, self._mover.owner, phase, following, self._counts, why):
            self._lost()
        log.info("tenant moves", tenant=self._tenant, to=self._row.to_cell, phase=following)

    def _tell(self, phase: MovePhase, waits_for: tuple[str, ...] = ()) -> MoveStep:
        row = self._row
        step = MoveStep(row.tenant, row.from_cell, row.to_cell, phase, dict(self._counts), waits_for)
        self._mover.watch(step)
        return step

    def _do_owned(self, acts: Acts[T]) -> T:
        """Do all writes, as long as this process still has the move."""
        while True:
            self._own()
            try:
                next(acts)
            except StopIteration as end:
                return end.value

    def _own(self) -> None:
        """Check that this process still has the move. Raises MoveFailed if it was frozen, or home down, too long."""
        if (
            time.monotonic() - self._kept_at > LEASE_S
        ):  # After a freeze, this thread may run before the one that renews the lease.
            self._beat()
        if self._is_lost.is_set() or time.monotonic() - self._kept_at > LEASE_S:
            self._lost()

    def _lost(self) -> None:
        raise MoveFailed(f"another process took over the move of tenant {self._tenant!r}, or home did not answer")

    def beating(self) -> Beats:
        return Beats(self._beat)

    def _beat(self) -> None:
        asked_at = time.monotonic()
        try:
            kept = self._mover.moves.take(self._tenant, self._mover.owner, LEASE_S)
        except Exception as failure:
            log.warning("the move's lease was not renewed", tenant=self._tenant, failure=failure)
            return
        if kept:
            self._kept_at = asked_at
        else:
            self._is_lost.set()


class Beats:
    """A thread that renews a move's lease while the context lasts."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._thread = KeptThread("brainq-move", self._run)

    def __enter__(self) -> None:
        self._thread.ensure()

    def __exit__(self, *_: object) -> None:
        self._thread.stop(LEASE_S)

    def _run(self, stopping: threading.Event) -> None:
        while not stopping.wait(BEAT_S):
            self._beat()


def _stopped(move: Move, failure: BaseException) -> Unreachable:
    return Unreachable(
        f"cell {move.from_cell!r} or {move.to_cell!r} does not answer ({type(failure).__name__}; see `brainq cells`). "
        f"Repeat the move of tenant {move.tenant!r} once both answer. Its turns may wait until then"
    )


def tenant_mover(
    cells: Cells, owner: str, *, wait_s: float = 60.0, watch: Callable[[MoveStep], None] = lambda _: None
) -> TenantMover:
    """Return the mover of a deployment. Raises SetupError if the deployment has only one cell."""
    if len(cells.names) == 1:
        raise SetupError("there is only one cell; set BRAINQ_CELLS to several")
    home = cells.home.store
    CELL_TABLES.make(home.engine)
    return TenantMover(
        directory=Directory(home.database),
        moves=Moves(home.database),
        open_side=lambda name: open_side(name, cells.of_name(name)),
        names=cells.names,
        owner=owner,
        wait_s=wait_s,
        watch=watch,
    )

"""Two cells in one process: a Redis and a database each, a pump that drives each one's machines, and moves between."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

from sqlalchemy import func, select

from brainq.adapters.sql.tables import metadata
from brainq.adapters.sql.tables.cell_tables import CELL_TABLES
from brainq.contracts.call import ChildTurn
from brainq.contracts.cell import MoveStep, Placement
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.rows import AcceptedTurn
from brainq.contracts.status import Effect
from brainq.contracts.tool import ClientTool
from brainq.contracts.turn import Limits, TurnRequest, TurnResult
from brainq.contrib.cells.move import TenantMover
from brainq.contrib.cells.placements import Directory, Moves
from brainq.contrib.cells.side import MoveSide, open_side
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from brainq.engine.upkeep.budget_leases import BudgetLeaseUpdater
from tests.support.pump import Pump, sqlite_url

TENANT = "acme:"
WEATHER = ClientTool(
    name="weather",
    description="Tell the weather.",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)


def answer(request: ModelRequest) -> ModelReply:
    """What the model says, by the last message of the user: `write a`, `order a`, `weather a`, or anything else."""
    said = [message.content for message in request.messages if message.role == "user"][-1].split()
    wanted = {"write": "name", "order": "what", "weather": "place", "ask": "session"}
    if request.step == 1 and said[0] in wanted:
        return calls((said[0], {wanted[said[0]]: said[1]}))
    return says("done " + " ".join(said))


class TwoCells:
    """Cells `a`, which is home, and `b`; tenant `acme:` is in a. `ran`: writes that ran, with the cell they ran in."""

    more: ClassVar[dict[str, Any]] = {}

    def __init__(self, directory: Path, redis_urls: tuple[str, str], sql_urls: tuple[str, str] | None = None) -> None:
        for name in "ab":
            (directory / name).mkdir()
        urls = sql_urls or (sqlite_url(directory / "a"), sqlite_url(directory / "b"))
        entries = {name: {"redis": redis_urls[at], "sql": urls[at]} for at, name in enumerate("ab")}
        self.cells = json.dumps(entries)
        self.ran: list[str] = []
        self.tokens: dict[str, str] = {}
        self.pumps = {name: self._pump(name, entries[name]) for name in "ab"}
        home = self.pumps["a"].wiring.store
        for pump in self.pumps.values():
            CELL_TABLES.make(pump.wiring.store.engine)
        self.directory, self.moves = Directory(home.database), Moves(home.database)
        self.directory.settle(TENANT, "a")
        self.steps: list[MoveStep] = []

    def _pump(self, name: str, urls: dict[str, str]) -> Pump:
        return Pump(
            self._brain(name),
            urls["redis"],
            urls["sql"],
            owner=f"pump-{name}",
            cells=self.cells,
            cell=name,
            **self.more,
        )

    def _brain(self, cell: str) -> Brain:
        brain = Brain("cells", ScriptedProvider(rules=answer), "Help.")

        @brain.tool(effect=Effect.LOCAL_WRITE, approval=True)
        def write(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Write."""
            self.ran.append(f"{cell} write {name}")
            return f"wrote {name}"

        @brain.tool(effect=Effect.LOCAL_WRITE)
        def order(context: RunContext, what: str) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Order."""
            self.ran.append(f"{cell} order {what}")
            self.tokens[what] = context.outside_token()
            return Pending(self.tokens[what])

        @brain.tool(effect=Effect.READ_ONLY)
        def ask(session: str) -> ChildTurn:  # pyright: ignore[reportUnusedFunction]
            """Ask in another session."""
            return ChildTurn("hi", session_id=session)

        return brain

    @property
    def a(self) -> Pump:
        return self.pumps["a"]

    @property
    def b(self) -> Pump:
        return self.pumps["b"]

    def mover(
        self, *, wait_s: float = 5.0, owner: str = "mover", side: Callable[[MoveSide], MoveSide] | None = None
    ) -> TenantMover:
        def opened(name: str) -> MoveSide:
            made = open_side(name, self.pumps[name].wiring)
            return side(made) if side is not None else made

        return TenantMover(
            directory=self.directory,
            moves=self.moves,
            open_side=opened,
            names=("a", "b"),
            owner=owner,
            wait_s=wait_s,
            linger_s=0.0,
            watch=self.steps.append,
        )

    def submit(self, cell: str, session_id: str, message: str, **fields: Any) -> AcceptedTurn:
        """As a front does that believes the tenant to be in this cell."""
        fields = {"turn_id": f"t-{session_id.replace(':', '-')}-{message.replace(' ', '-')}", **fields}
        request = TurnRequest(session_id=session_id, user_message=message, **fields)
        return self.pumps[cell].wiring.people.intake.submit(request)

    def state(self, cell: str, session_id: str, turn_id: str) -> str | None:
        wiring = self.pumps[cell].wiring
        found: Any = wiring.state.redis.hget(wiring.state.keys.turn(session_id, turn_id), "state")
        return found

    def finish(self, cell: str, *turn_ids: str, timeout_s: float = 30.0) -> list[TurnResult]:
        """Work in this cell until SQL has the results of these turns."""
        pump, end = self.pumps[cell], time.monotonic() + timeout_s
        while True:
            pump.drain()
            found = [pump.wiring.store.turns.result(turn_id) for turn_id in turn_ids]
            if all(found) and not self.busy(cell):
                return [result for result in found if result is not None]
            assert time.monotonic() < end, f"not finished in {cell}: {turn_ids} {found}"
            pump.sweep()
            pump.wiring.state.redis.delete(pump.wiring.state.keys.sweeping)
            pump.wiring.sweeper.compare()
            threading.Event().wait(0.02)

    def drain(self) -> None:
        """Answer what is rung for in both cells."""
        for pump in self.pumps.values():
            pump.drain()

    def busy(self, cell: str) -> list[str]:
        return self.side(cell).keys.busy_turns(TENANT)

    def side(self, cell: str) -> MoveSide:
        return open_side(cell, self.pumps[cell].wiring)

    def rows(self, cell: str, tenant: str = TENANT) -> dict[str, int]:
        return self.side(cell).rows.counts(tenant)

    def all_rows(self, cell: str) -> dict[str, int]:
        """Of every table where there are any, whosever they are."""
        with self.pumps[cell].wiring.store.engine.connect() as connection:
            counts = {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in metadata.sorted_tables
            }
        return {name: count for name, count in counts.items() if count}

    def keys(self, cell: str, tenant: str = TENANT) -> list[str]:
        return sorted(self.side(cell).keys.names(tenant))

    def placed(self) -> Placement | None:
        return self.directory.placement(TENANT)

    def assert_gone_from(self, cell: str, other: str, epoch: int) -> None:
        """Nothing is left of the tenant but the tombstone."""
        assert self.rows(cell) == {}
        assert self.keys(cell) == []
        assert self.side(cell).tombstones.of(TENANT) == Placement(other, epoch)
        assert self.side(cell).words.of(TENANT) == Placement(other, epoch)
        redis: Any = self.pumps[cell].wiring.state.redis
        left = [key for key in redis.keys("*") if "acme" in key]
        assert left == []
        assert [row for row in redis.zrange(self.pumps[cell].wiring.state.keys.index, 0, -1) if "acme" in row] == []

    def assert_here(self, cell: str, epoch: int) -> None:
        assert self.placed() == Placement(cell, epoch)
        assert self.side(cell).is_open_for(TENANT)
        assert not self.side(cell).keys.has_hidden(TENANT)
        assert self.moves.get(TENANT) is None

    def close(self) -> None:
        for pump in self.pumps.values():
            pump.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Spenders(TwoCells):
    """Each turn costs a fifth of a dollar; a tenant may have half a dollar a day."""

    more: ClassVar[dict[str, Any]] = {"budgets": "tenant day=0.5; user day=9"}

    def _brain(self, cell: str) -> Brain:
        def answer(request: ModelRequest) -> ModelReply:
            return says("done", usage=TokenUsage(output_tokens=1000))

        return Brain("cells", ScriptedProvider(rules=answer), limits=Limits(max_output_tokens=1000))


class Sharers(Spenders):
    """Cells that share a budget of two dollars a day."""

    more: ClassVar[dict[str, Any]] = {"budgets": "all day=2 park"}

    def work(self) -> None:
        """Until nothing is left to do in either cell."""
        idle = 0
        while idle < 5:
            idle = 0 if sum(pump.drain() for pump in self.pumps.values()) else idle + 1
            for pump in self.pumps.values():
                pump.sweep()

    def send(self, cell: str, count: int, begin: int = 0) -> None:
        for number in range(begin, begin + count):
            self.submit(cell, f"in-{cell}:{number}", "hello")

    def spent(self) -> float:
        return sum(state.spent_usd for pump in self.pumps.values() for state in pump.wiring.budgets.list())

    def parked(self, cell: str) -> int:
        return sum(state.parked for state in self.pumps[cell].wiring.budgets.list())

    def look(self, cell: str, later_s: float = 0.0) -> None:
        (updater,) = (
            poller.updater
            for poller in self.pumps[cell].wiring.pollers
            if isinstance(poller.updater, BudgetLeaseUpdater)
        )
        before = updater.now
        updater.now = lambda: before() + later_s
        updater.update()


def parked_tenant(two: TwoCells) -> dict[str, str]:
    """A tenant with an ended turn, turns parked for an approval (one more waits behind it), for a token, for its
    client; input that no step has read; a schedule; another tenant beside it. Turn ids by what they wait for."""
    made = {"ended": two.submit("a", "acme:1", "hello", request_key="k-ended").turn_id}
    made["approval"] = two.submit("a", "acme:2", "write x").turn_id
    made["queued"] = two.submit("a", "acme:2", "and then").turn_id
    made["token"] = two.submit("a", "acme:3", "order y").turn_id
    made["client"] = two.submit("a", "acme:4", "weather z", client_tools=[WEATHER]).turn_id
    two.submit("a", "globex:1", "hello")
    two.finish("a", made["ended"], "t-globex-1-hello")
    two.a.drain()
    assert [
        two.state("a", f"acme:{at}", made[what]) for at, what in ((2, "approval"), (3, "token"), (4, "client"))
    ] == ["parked"] * 3
    two.a.client.schedule("acme:daily", "acme:1", "hello", when="0 7 * * *")
    return made

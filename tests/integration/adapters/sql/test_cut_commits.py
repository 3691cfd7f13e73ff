"""Each verb that writes, on a connection that is cut at its commit: before the commit reached Postgres, and after.

Whoever called a verb that raised calls it again: a machine by itself, a producer with its `request_key`. What is in SQL
afterwards must be what one undisturbed call writes. `why` is the reason why the verb may run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.exc import SQLAlchemyError

from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.adapters.sql.migrations.upgrade import VERSION_TABLE
from brainq.adapters.sql.repositories.shared_budgets import HomeBudgets
from brainq.adapters.sql.store import Store
from brainq.contracts.budget_lease import LeaseWish
from brainq.contracts.budgets import Budget, MoneyRefusal
from brainq.contracts.call import ToolSuccess
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.file import File
from brainq.contracts.message import Message
from brainq.contracts.people import ApprovalRequest, ApprovalStatus, HoldSpec, TurnInput
from brainq.contracts.status import Effect
from brainq.contracts.stop import Stop
from brainq.engine.jobs import job_key
from tests.integration.adapters.sql.examples import call, request, result, schedule, start
from tests.support.postgres import EmptiedDatabase, postgres_server, postgres_url
from tests.support.proxy import Proxy

Act = Callable[[Store], object]
HOLD = HoldSpec(id="h1")
INPUT = TurnInput(client_message_id="m1", text="more")
CLAIM = FinalStepClaim("s1", "turn-1", "memory", "me", 1, 1)
JOB = job_key("turn-1", "memory")
FILE = File(b"data", "text/plain", "a.txt")
BUDGET = Budget(scope="all", per="day", usd=10.0)
REFUSAL = MoneyRefusal("short", "all/day", 0, wanted=1.0, expected=2.0, in_flight=0, is_new=False)
ASKED = ApprovalRequest("s1", "turn-1", "c1-0", "write_note", Effect.LOCAL_WRITE, "h", "{}", "why", 60.0)
APPROVED = ApprovalStatus("approved", "ann", "", "h", False, None, 0, 1)
STOP = Stop(kind="tool", name="write_note", mode="pause", by="ann")


OF_A_TURN = ("turns", "inputs", "calls", "brakes", "messages", "steps", "step_jobs")


@dataclass(frozen=True)
class Verb:
    """A verb of the store.

    at       what the request holds at which the connection is cut
    act      the verb
    before   what is in SQL before
    repeats  whether the store itself runs it again; otherwise it raises, and its caller calls it again
    then     its result after the commit was done and the answer lost, if it differs
    is_left  whether its caller does not call it again: the lease of its job ends, and the job is taken again
    """

    name: str
    why: str
    at: bytes
    act: Act
    before: Act = lambda store: None
    repeats: bool = False
    then: object = ...
    is_left: bool = False

    def __str__(self) -> str:
        return self.name


def full(verb: Verb) -> Any:
    return pytest.param(verb, marks=pytest.mark.full)


def commit(name: str, why: str, act: Act, before: Act = lambda store: None) -> Verb:
    return Verb(name, why, b"COMMIT", act, before)


def accept(store: Store) -> object:
    return store.turns.accept(request()).created


def accept_and_start(store: Store) -> object:
    return accept(store), start(store)


def take_job(store: Store) -> object:
    return accept(store), store.step_jobs.open(CLAIM, 0, due_s=0.0), store.step_jobs.take(JOB, 30.0)


LEASE = "its lease ends"
KEY, ONCE, FENCE, SAME = (
    "a unique key",
    "only the first state is left",
    "the number of the try",
    "the same values again",
)
VERBS = (
    Verb("turns.accept", KEY, b"INSERT INTO turns", accept, repeats=True, then=False),
    Verb("turns.reject", KEY, b"INSERT INTO turns", lambda s: s.turns.reject("t", "k", "s1", "no", "{}"), repeats=True),
    Verb("turns.refuse", ONCE, b"UPDATE turns", lambda s: s.turns.refuse("turn-1", "no"), accept, True, then=False),
    Verb(
        "inputs.accept",
        KEY,
        b"INSERT INTO inputs",
        lambda s: s.inputs.accept("s1", "turn-1", INPUT).state,
        repeats=True,
    ),
    Verb(
        "inputs.bounced",
        ONCE,
        b"UPDATE inputs",
        lambda s: s.inputs.bounced("s1", "m1", "turn-2"),
        lambda s: s.inputs.accept("s1", "turn-1", INPUT),
        True,
        False,
    ),
    Verb(
        "inputs.consumed",
        ONCE,
        b"UPDATE inputs",
        lambda s: s.inputs.consumed("s1", {"m1": 2}),
        lambda s: s.inputs.accept("s1", "turn-1", INPUT),
        True,
        0,
    ),
    Verb("calls.start", "its row names the claim that inserted it", b"INSERT INTO calls", start, repeats=True),
    Verb(
        "calls.start, of another claim",
        "its row names the claim that inserted it",
        b"INSERT INTO calls",
        start,
        lambda s: s.calls.start(**call(), args_hash="h", args_json=None, idempotency_key="", owner="worker-2"),
        True,
    ),
    Verb("calls.void", KEY, b"INSERT INTO calls", lambda s: s.calls.void(**call()).state, repeats=True),
    Verb("calls.void, started", KEY, b"INSERT INTO calls", lambda s: s.calls.void(**call()).state, start, True),
    Verb(
        "calls.void_unstarted",
        ONCE,
        b"UPDATE calls",
        lambda s: s.calls.void_unstarted("turn-1", "c1-0", 1),
        start,
        True,
        False,
    ),
    Verb(
        "calls.record_outcome",
        "the first outcome stays",
        b"UPDATE calls",
        lambda s: s.calls.record_outcome("turn-1", "c1-0", 1, ToolSuccess(value=1), late=False),
        start,
        True,
        False,
    ),
    Verb("brakes.hold", KEY, b"INSERT INTO brakes", lambda s: s.brakes.hold("s1", "turn-1", HOLD), repeats=True),
    Verb("brakes.flag", KEY, b"INSERT INTO brakes", lambda s: s.brakes.flag("s1", HOLD), repeats=True),
    Verb("brakes.cancel", KEY, b"INSERT INTO brakes", lambda s: s.brakes.cancel("s1", "turn-1", "no"), repeats=True),
    Verb(
        "brakes.released", KEY, b"INSERT INTO brakes", lambda s: s.brakes.released("s1", "turn-1", "h1"), repeats=True
    ),
    Verb("brakes.delete_response", KEY, b"INSERT INTO brakes", lambda s: s.brakes.delete_response("s1", "turn-1")),
    Verb("brakes.end", ONCE, b"UPDATE brakes", lambda s: s.brakes.end("s1", "h1"), lambda s: s.brakes.flag("s1", HOLD)),
    Verb(
        "brakes.assign_flag",
        ONCE,
        b"UPDATE brakes",
        lambda s: s.brakes.assign_flag("s1", "h1", "turn-1"),
        lambda s: s.brakes.flag("s1", HOLD),
        True,
        False,
    ),
    Verb(
        "brakes.withdraw",
        ONCE,
        b"DELETE FROM brakes",
        lambda s: s.brakes.withdraw("s1", "h1"),
        lambda s: s.brakes.flag("s1", HOLD),
        True,
    ),
    Verb(
        "messages.log_user",
        KEY,
        b"INSERT INTO messages",
        lambda s: s.messages.log_user(request(), False) > 0,
    ),
    commit(
        "transcripts.archive",
        KEY,
        lambda s: s.transcripts.archive("s1", "turn-1", [Message(role="user", content="hi", turn="turn-1")], False),
        accept,
    ),
    commit("steps.run_once", "the row of the step", lambda s: _answered(s), accept),
    commit("steps.note_failure", SAME, lambda s: s.steps.note_failure("turn-1", "memory", "no", 1, dead=False)),
    commit("step_jobs.open", KEY, lambda s: s.step_jobs.open(CLAIM, 1, due_s=0.0, error="no"), accept),
    Verb("step_jobs.take", LEASE, b"UPDATE step_jobs", lambda s: _taken(s), lambda s: _job(s), is_left=True),
    Verb("step_jobs.hold", FENCE, b"UPDATE step_jobs", lambda s: s.step_jobs.hold(JOB, 1, 30.0), take_job, True),
    Verb(
        "step_jobs.fail",
        LEASE,
        b"COMMIT",
        lambda s: s.step_jobs.fail(JOB, 1, "no", 5.0),
        take_job,
        is_left=True,
    ),
    commit("step_jobs.fail, dead", FENCE, lambda s: s.step_jobs.fail(JOB, 1, "no", None), take_job),
    Verb("step_jobs.remove", ONCE, b"DELETE FROM step_jobs", lambda s: s.step_jobs.remove(JOB), take_job, True),
    commit("approvals.request", KEY, lambda s: s.approvals.request([ASKED]), accept),
    Verb(
        "approvals.decided",
        ONCE,
        b"UPDATE approvals",
        lambda s: s.approvals.decided("turn-1", "c1-0", APPROVED),
        lambda s: s.approvals.request([ASKED]),
    ),
    commit("blobs.keep", KEY, lambda s: s.blobs.keep("s1", "turn-1", [FILE]), accept),
    commit(
        "blobs.drop",
        ONCE,
        lambda s: s.blobs.drop("turn-1"),
        lambda s: (accept(s), s.blobs.keep("s1", "turn-1", [FILE])),
    ),
    Verb(
        "blobs.lend",
        KEY,
        b"INSERT INTO attachments",
        lambda s: s.blobs.lend("s1", "turn-2", [FILE.attachment]),
        lambda s: s.blobs.keep("s1", "turn-1", [FILE]),
        True,
    ),
    Verb("schedules.put", KEY, b"INSERT INTO schedules", lambda s: s.schedules.put(schedule("a"), 1), repeats=True),
    commit("schedules.put, limited", KEY, lambda s: s.schedules.put(schedule("a"), 1, max_others=3)),
    Verb(
        "schedules.move",
        "the time that it was due",
        b"UPDATE schedules",
        lambda s: s.schedules.move(schedule("a"), 9_000, turn_id="t"),
        lambda s: s.schedules.put(schedule("a"), 1),
    ),
    Verb(
        "schedules.pause",
        ONCE,
        b"UPDATE schedules",
        lambda s: s.schedules.pause("a", 1),
        lambda s: s.schedules.put(schedule("a"), 1),
    ),
    Verb("stops.put", KEY, b"INSERT INTO stops", lambda s: s.stops.put(STOP), repeats=True),
    Verb("stops.lift", ONCE, b"DELETE FROM stops", lambda s: s.stops.lift(STOP), lambda s: s.stops.put(STOP)),
    Verb(
        "budgets.set",
        KEY,
        b"INSERT INTO budgets",
        lambda s: s.budgets.set("all", "day", 9, "park", "a"),
        repeats=True,
    ),
    commit("budgets.grant", "totals, not additions", lambda s: s.budgets.grant("all", BUDGET, REFUSAL)),
    Verb(
        "budgets.raise_by",
        "its row names the sum and the person",
        b"UPDATE budget_windows",
        lambda s: s.budgets.raise_by("all", BUDGET, 0, 5.0, "ann"),
        lambda s: None,
        True,
    ),
    Verb(
        "home.raise_by",
        "the row of the whole window names the sum and the person",
        b"COMMIT",
        lambda s: HomeBudgets(s.database, ()).raise_by("all", BUDGET, 0, 5.0, "ann"),
        lambda s: HomeBudgets(s.database, ()).raise_by("all", BUDGET, 0, 2.0, "bob"),
        True,
    ),
    commit(
        "home.lease",
        "totals, not additions",
        lambda s: HomeBudgets(s.database, ()).lease("a", "all", BUDGET, 0, LeaseWish(0.0, 1.0, 2.0)),
    ),
    Verb(
        "tokens.revoke",
        ONCE,
        b"UPDATE tokens",
        lambda s: s.tokens.revoke("t1"),
        lambda s: s.tokens.add("t1", "h", "n", ["*"], ["read"], None),
        True,
    ),
    Verb(
        "memories.merge",
        "the row of the step",
        b"COMMIT",
        lambda s: s.steps.run_once("turn-1", "memory", "k", lambda c: _remember(s, c)),
        accept,
    ),
)


def _answered(store: Store) -> object:
    return store.steps.run_once("turn-1", "log", "k", lambda c: store.turns.write_result(c, result()))


def _remember(store: Store, connection: Any) -> object:
    from brainq.contracts.memory import MemoryItem

    item = MemoryItem(kind="fact", text="likes tea")
    return store.memories.merge(connection, scope="s1", session_id="s1", turn_id="turn-1", items=[item])


def _job(store: Store) -> object:
    return accept(store), store.step_jobs.open(CLAIM, 0, due_s=0.0)


def _taken(store: Store) -> object:
    return (store.step_jobs.take(JOB, 0.0) or {}).get("tries") is not None


@dataclass
class Stage:
    """A store whose connections go through `proxy`."""

    store: Store
    proxy: Proxy
    database: EmptiedDatabase
    before: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    known: dict[str, tuple[object, dict[str, list[Any]]]] = field(default_factory=dict[str, Any])

    def undisturbed(self, verb: Verb) -> tuple[object, dict[str, list[Any]]]:
        """Return the result of one call, and the rows afterwards."""
        if verb.name not in self.known:
            result, _, rows = self.run(verb, lambda: None)
            self.known[verb.name] = result, rows
        return self.known[verb.name]

    def run(self, verb: Verb, cut: Callable[[], None]) -> tuple[object, bool, dict[str, list[Any]]]:
        """Return the result of the verb, whether it raised at first, and the rows afterwards."""
        self.database.empty()
        self.store.engine.dispose()
        verb.before(self.store)
        self.store.engine.dispose()  # so that the request has the text of the statement
        self.before = self.rows()
        cut()
        try:
            return verb.act(self.store), False, self.rows()
        except SQLAlchemyError as failure:
            if not is_sql_unavailable(failure):
                raise
        if verb.is_left:
            return None, True, self.rows()
        return verb.act(self.store), True, self.rows()

    def rows(self) -> dict[str, list[Any]]:
        """Return the rows of each table, without their numbers and times."""
        names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> %s"
        times = (
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND data_type LIKE 'timestamp%%'"
        )
        found: dict[str, list[Any]] = {}
        with psycopg.connect(self.database.url, autocommit=True) as beside:
            for (table,) in beside.execute(names, (VERSION_TABLE,)).fetchall():
                hidden = {"row", *(name for (name,) in beside.execute(times, (table,)))}
                query = sql.SQL("SELECT to_jsonb(t) FROM {} AS t").format(sql.Identifier(table))
                whole = [row for (row,) in beside.execute(query)]
                shown = [sorted((key, str(value)) for key, value in row.items() if key not in hidden) for row in whole]
                found[table] = sorted(shown)
        return found


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with postgres_url() as url, Proxy(postgres_server().directory / ".s.PGSQL.5432") as proxy:
        through = f"postgresql://postgres@127.0.0.1:{proxy.port}/{url.partition('?')[0].rpartition('/')[2]}"
        with Store.open(through, pool_size=1) as store:
            store.stops.put(STOP)  # these make their tables
            store.budgets.set("all", "day", 1, "park", "ann")
            store.step_jobs.open(CLAIM, 0, due_s=0.0)
            with closing(EmptiedDatabase(url, kept=VERSION_TABLE)) as database:
                yield Stage(store, proxy, database)


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("verb", [verb if verb.name.startswith(OF_A_TURN) else full(verb) for verb in VERBS], ids=str)
def test_a_verb_whose_connection_is_cut_at_its_commit_writes_what_one_call_writes(
    stage: Stage, verb: Verb, is_done: bool
) -> None:
    expected, rows = stage.undisturbed(verb)
    struck = stage.proxy.struck

    answer, has_raised, after = stage.run(verb, lambda: stage.proxy.strike(verb.at, is_done=is_done))

    assert stage.proxy.struck == struck + 1, "it was cut"
    assert after == (stage.before if verb.is_left and not is_done else rows)
    assert has_raised == (not verb.repeats)
    if verb.repeats:
        assert answer == (verb.then if is_done and verb.then is not ... else expected)

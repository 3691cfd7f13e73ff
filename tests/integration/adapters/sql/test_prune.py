"""Retention: what goes, what stays, and how sessions go on counting."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import Executable, event, func, select, text

from brainq.adapters.sql import prune as prune_module
from brainq.adapters.sql import records
from brainq.adapters.sql.database import Database, Parameters
from brainq.adapters.sql.prune import PrunedRows, prune
from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.repositories.budgets import Budgets
from brainq.adapters.sql.repositories.deliveries import ending_deliveries
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import judgements, metadata
from brainq.adapters.sql.tables.tenant_tables import KNOWLEDGE
from brainq.contracts.budgets import Budget
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.file import File
from brainq.contracts.memory import MemoryItem, Observation
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import ApprovalRequest, HoldSpec, TurnInput
from brainq.contracts.status import Effect, TraceStatus
from brainq.contracts.view import TurnDetails
from brainq.contracts.webhook import Webhook
from brainq.engine.jobs import job_key
from tests.integration.adapters.sql.examples import decision, end_turn, request, result, schedule, start

DAY_S = 86_400.0
LONG_AGO = "2020-01-01 00:00:00.000"
OF_NO_TURN = ("pruned_sessions", "schedules", "tokens")
WEBHOOK = Webhook("https://example.com/", b"s" * 32)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prune_module, "BATCH", 3)
    monkeypatch.setattr(prune_module, "LONGEST_REST_S", 0.0)


def rows(store: Store) -> dict[str, int]:
    with store.engine.connect() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }


def age(store: Store, *turn_ids: str, ended: str | None = LONG_AGO) -> None:
    """These turns are of long ago; `ended=None`: they have not ended."""
    with store.engine.connect() as connection:
        for turn_id in turn_ids:
            values = {"then": LONG_AGO, "ended": ended, "turn": turn_id}
            timestamp = "CAST(:{} AS timestamptz)" if store.engine.dialect.name == "postgresql" else ":{}"
            connection.execute(
                text(
                    f"UPDATE turns SET accepted_at = {timestamp.format('then')}, ended_at = "
                    f"{timestamp.format('ended')} WHERE turn_id = :turn"
                ),
                values,
            )


def age_rows(store: Store, table: str) -> None:
    with store.engine.connect() as connection:
        connection.execute(text(f"UPDATE {table} SET updated_at = '{LONG_AGO}'"))


def whole_turn(store: Store, turn_id: str, session_id: str = "s1") -> None:
    """A turn with a row in every table."""
    sent = request(turn_id, session_id)
    store.blobs.keep(session_id, turn_id, [File(f"notes of {turn_id}".encode())])
    store.turns.accept(sent)
    store.messages.log_user(sent, redact=False)
    start(store, turn_id=turn_id)
    store.brakes.delete_response(session_id, turn_id)
    steer(store, turn_id, session_id)
    store.inputs.consumed(session_id, {f"{turn_id}-m": 1})
    asked = ApprovalRequest(session_id, turn_id, "c1-0", "write", Effect.LOCAL_WRITE, "h", "{}", "why", 60)
    store.approvals.request([asked])
    store.brakes.hold(session_id, turn_id, HoldSpec(id=f"{turn_id}-hold"))
    records = SqlRecords(store, [WEBHOOK])

    def claim(step: str) -> FinalStepClaim:
        return FinalStepClaim(session_id, turn_id, step, "me", 1, 1)

    entry = ToolTraceEntry(
        call_id="c1-0", tool="look", effect=Effect.READ_ONLY, status=TraceStatus.COMPLETED, step=1, wave=1
    )
    details = TurnDetails((Message(role="user", content="hi", turn=turn_id),), (entry,))
    records.record_answer(claim("log"), result(turn_id, session_id, spends=(Spend(step=1),)), False, details)
    tell(store)
    records.record_memories(claim("memory"), session_id, [MemoryItem(kind="fact", text=f"Fact of {turn_id}")])
    records.record_observations(claim("learner"), session_id, "e", [Observation(kind="topic", text=turn_id)])
    records.record_judges(claim("judges"), session_id, turn_id, ["tone"])
    store.judgements.fail(job_key(turn_id, "tone"), 0, "refused", None)
    records.record_decision(claim("decision"), decision(turn_id))


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "ANNOUNCE_AFTER_S", 0.0)


def tell(store: Store) -> None:
    """What webhooks are to be sent is sent."""
    while (claimed := store.deliveries.claim(WEBHOOK.url, 60.0)) is not None:
        store.deliveries.done(claimed.row)


def steer(store: Store, turn_id: str, session_id: str = "s1") -> None:
    store.inputs.accept(session_id, turn_id, TurnInput(client_message_id=f"{turn_id}-m", text="faster"))


def live_turn(store: Store, turn_id: str = "turn-live") -> None:
    """A turn that has just begun: the newest row of every table that has one of it."""
    store.turns.accept(request(turn_id, "s9"))
    store.messages.log_user(request(turn_id, "s9"), redact=False)


def ids(store: Store) -> list[str]:
    return sorted(row.turn_id for row in store.turns.list(limit=100))


def test_every_row_of_an_old_turn_goes_and_nothing_else(store: Store) -> None:
    for number in range(7):
        whole_turn(store, f"old-{number}", f"s{number % 2}")
    whole_turn(store, "new-1", "s1")
    age(store, *(f"old-{number}" for number in range(7)))
    before = rows(store)
    assert all(before[table.name] for table in metadata.sorted_tables if table.name not in OF_NO_TURN)

    planned = prune(store, 30 * DAY_S, dry_run=True)
    assert rows(store) == before
    told: list[PrunedRows] = []
    done = prune(store, 30 * DAY_S, on_progress=told.append)

    assert done == planned
    assert done["turns"] == 7
    assert done["finalizer_steps"] == 7 * 5
    after = rows(store)
    assert {name: before[name] - after[name] for name in done} == done
    assert after["turns"] == after["decisions"] == after["transcripts"] == 1
    assert [after[table.name] for table in KNOWLEDGE] == [8, 8]
    assert [counts["turns"] for counts in told] == [3, 6, 7]
    assert set(prune(store, 30 * DAY_S).values()) == {0}


def test_a_blob_goes_with_the_last_turn_that_has_it(store: Store) -> None:
    shared, own = File(b"of both"), File(b"of the old one")
    store.blobs.keep("s1", "old", [shared, own, shared])
    store.blobs.keep("s2", "new", [shared])
    for turn_id in ("old", "new"):
        store.turns.accept(request(turn_id, "s1" if turn_id == "old" else "s2"))
    end_turn(store, "old")
    live_turn(store)
    age(store, "old")
    assert rows(store)["blobs"] == 2, "the same content twice is one row"

    planned = prune(store, 30 * DAY_S, dry_run=True)
    done = prune(store, 30 * DAY_S)

    assert (done["turns"], done["attachments"], done["blobs"]) == (1, 2, 1)
    assert done == planned
    hashes = [file.attachment.sha256 for file in (shared, own)]
    assert store.blobs.load("s2", hashes) == {hashes[0]: b"of both"}
    assert store.blobs.load("s1", hashes) == {}


def test_files_of_a_submit_that_became_no_turn_go_after_a_week(store: Store) -> None:
    store.blobs.keep("s1", "refused", [File(b"nobody's")])
    store.blobs.keep("s1", "coming", [File(b"just sent")])
    with store.engine.connect() as connection:
        connection.execute(text(f"UPDATE attachments SET created_at = '{LONG_AGO}' WHERE turn_id = 'refused'"))

    prune(store, 365 * DAY_S)

    assert store.blobs.of_turn("refused", File(b"nobody's").attachment.sha256) is None
    assert store.blobs.of_turn("coming", File(b"just sent").attachment.sha256) is not None
    assert rows(store)["blobs"] == 1


def test_flags_that_were_released_before_a_turn_took_them_go_with_their_time(store: Store) -> None:
    for flag in ("old", "new", "stands"):
        store.brakes.flag("s1", HoldSpec(id=flag))
        if flag != "stands":
            assert store.brakes.end("s1", flag)
    with store.engine.connect() as connection:
        connection.execute(text(f"UPDATE brakes SET over_at = '{LONG_AGO}' WHERE brake_id = 'old'"))

    planned = prune(store, 30 * DAY_S, dry_run=True)
    assert rows(store)["brakes"] == 3
    assert prune(store, 30 * DAY_S) == planned
    assert planned["brakes"] == 1
    assert rows(store)["brakes"] == 2
    assert [brake.id for brake in store.brakes.of_turn("s1", "none")] == ["stands"]


def test_a_released_flag_stays_as_long_as_the_turn_that_took_it(store: Store) -> None:
    for name in ("stays", "goes"):
        store.brakes.flag("s1", HoldSpec(id=f"flag-{name}"))
        store.turns.accept(request(f"turn-{name}"))
        assert store.brakes.assign_flag("s1", f"flag-{name}", f"turn-{name}")
        assert store.brakes.end("s1", f"flag-{name}")
    end_turn(store, "turn-goes")
    live_turn(store)
    age(store, "turn-goes")
    with store.engine.connect() as connection:
        connection.execute(text(f"UPDATE brakes SET over_at = '{LONG_AGO}'"))

    planned = prune(store, 30 * DAY_S, dry_run=True)
    assert prune(store, 30 * DAY_S) == planned
    assert planned["brakes"] == 1
    assert store.brakes.those_released("s1", ["flag-stays", "flag-goes"]) == {"flag-stays"}


def test_a_schedule_goes_when_its_last_run_was_long_ago(store: Store) -> None:
    now_ms = int(time.time() * 1000)
    for name, ran_days_ago, is_over in (("old", 31, True), ("new", 29, True), ("goes-on", 31, False)):
        ran_ms = now_ms - int(ran_days_ago * DAY_S * 1000)
        store.schedules.put(ran := schedule(name, ran_ms), 0)
        assert store.schedules.move(ran, None if is_over else now_ms)
    store.schedules.put(schedule("not-yet", now_ms), 0)

    planned = prune(store, 30 * DAY_S, dry_run=True)
    assert rows(store)["schedules"] == 4
    assert prune(store, 30 * DAY_S) == planned
    assert planned["schedules"] == 1
    assert [row.name for row in store.schedules.list(["*"], 9)] == ["goes-on", "new", "not-yet"]


def test_windows_of_budgets_go_once_they_are_over_for_so_long(store: Store) -> None:
    rows, now = Budgets(store.database), int(time.time() * 1000)
    for days in (1, 40, 70):
        rows.raise_by("tenant acme:", Budget(scope="tenant", per="day", usd=1.0), now - days * 86_400_000, 1.0, "ann")
    for dry_run in (True, False):
        assert prune(store, 30 * 86_400, dry_run=dry_run)["budget_windows"] == 1
    assert len(rows.windows(0)) == 2
    assert "budget_windows" not in prune(store, 30 * 86_400)


def test_acts_go_some_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A year of them in one transaction would keep every other writer from a SQLite file for longer than it waits."""
    for number in range(8):
        store.acts.add(who="ann", source="cli", act="stop", session_id="", turn_id="", subject=f"{number}", reason="")
    deleted: list[int] = []
    write = Database.write

    def counting(self: Database, statement: Executable, parameters: Parameters, **more: Any) -> int:
        deleted.append(write(self, statement, parameters, **more))
        return deleted[-1]

    monkeypatch.setattr(Database, "write", counting)
    assert prune(store, -60.0)["acts"] == 8
    assert [count for count in deleted if count] == [3, 3, 2]


def test_only_what_is_over_goes(store: Store) -> None:
    for name in ("recent", "unended", "failed", "judged", "told", "stuck", "dead", "rejected"):
        store.turns.accept(request(f"turn-{name}"))
    store.turns.reject("refused-1", "refused-1", "s1", "bad", "")
    for name in ("recent", "failed", "judged", "told", "stuck", "dead"):
        end_turn(store, f"turn-{name}")
    store.steps.note_failure("turn-failed", "memory", "no model", 1, dead=False)
    store.steps.note_failure("turn-dead", "memory", "no model", 8, dead=True)
    live_turn(store)
    for name in ("judged", "stuck"):
        with store.database.transaction() as connection:
            store.judgements.plan(connection, "s1", f"turn-{name}", ["tone"])
    with store.database.transaction() as connection:
        store.deliveries.plan(connection, ending_deliveries([WEBHOOK], result("turn-told")))
    with store.engine.connect() as connection:
        connection.execute(
            judgements.update().where(judgements.c.turn_id == "turn-stuck").values(updated_at=text(f"'{LONG_AGO}'"))
        )
    age(store, *(f"turn-{name}" for name in ("failed", "judged", "told", "stuck", "dead")), "refused-1")
    age(store, "turn-unended", ended=None)

    done = prune(store, 30 * DAY_S)

    assert done["turns"] == 3
    assert ids(store) == [
        "turn-failed",
        "turn-judged",
        "turn-live",
        "turn-recent",
        "turn-rejected",
        "turn-told",
        "turn-unended",
    ]


def test_a_turn_whose_chain_is_not_finished_stays_for_a_week(store: Store) -> None:
    for name in ("logged", "quiet", "given-up", "decided"):
        store.turns.accept(request(f"turn-{name}"))
        record = FinalStepClaim("s1", f"turn-{name}", "log", "me", 1, 1)
        SqlRecords(store).record_answer(record, result(f"turn-{name}"), False, TurnDetails())
    age(store, *(f"turn-{name}" for name in ("logged", "quiet", "given-up", "decided")))
    store.steps.note_failure("turn-given-up", "decision", "no room", 8, dead=True)
    SqlRecords(store).record_decision(
        FinalStepClaim("s1", "turn-decided", "decision", "me", 1, 1), decision("turn-decided")
    )
    with store.engine.connect() as connection:
        moved = f"UPDATE finalizer_steps SET updated_at = '{LONG_AGO}' WHERE turn_id = 'turn-quiet'"
        connection.execute(text(moved))
    live_turn(store)

    assert prune(store, 30 * DAY_S, dry_run=True)["turns"] == 3
    assert prune(store, 30 * DAY_S)["turns"] == 3
    assert ids(store) == ["turn-live", "turn-logged"]


def test_a_turn_that_ended_this_week_without_a_decision_stays(store: Store) -> None:
    store.turns.accept(request("turn-1"))
    record = FinalStepClaim("s1", "turn-1", "log", "me", 1, 1)
    SqlRecords(store).record_answer(record, result("turn-1"), False, TurnDetails())
    age_rows(store, "finalizer_steps")
    live_turn(store)
    assert prune(store, -60)["turns"] == 0
    SqlRecords(store).record_decision(FinalStepClaim("s1", "turn-1", "decision", "me", 1, 1), decision("turn-1"))
    assert prune(store, -60)["turns"] == 1


def test_a_turn_with_an_input_that_nothing_became_of_stays(store: Store) -> None:
    for name in ("open", "bounced"):
        store.turns.accept(request(f"turn-{name}"))
        steer(store, f"turn-{name}")
        end_turn(store, f"turn-{name}")
    store.inputs.bounced("s1", "turn-bounced-m", "in-1")
    age(store, "turn-open", "turn-bounced")
    with store.engine.connect() as connection:
        connection.execute(text(f"UPDATE inputs SET accepted_at = '{LONG_AGO}'"))
    live_turn(store)

    assert prune(store, 30 * DAY_S)["inputs"] == 1
    assert ids(store) == ["turn-live", "turn-open"]
    assert [row.state for row in store.inputs.of_turn("turn-open")] == ["accepted"]
    store.inputs.bounced("s1", "turn-open-m", "in-2")
    assert prune(store, 30 * DAY_S)["inputs"] == 1
    assert ids(store) == ["turn-live"]


def test_the_age_is_the_one_asked_for(store: Store) -> None:
    store.turns.accept(request("turn-1"))
    end_turn(store, "turn-1")
    live_turn(store)

    assert prune(store, 60)["turns"] == 0
    with store.engine.connect() as connection:
        shift = "'-61 seconds'" if store.engine.dialect.name == "sqlite" else "interval '61 seconds'"
        moved = (
            f"strftime('%Y-%m-%d %H:%M:%f', ended_at, {shift})"
            if store.engine.dialect.name == "sqlite"
            else f"ended_at - {shift}"
        )
        connection.execute(text(f"UPDATE turns SET ended_at = {moved}"))
    assert prune(store, 120)["turns"] == 0
    assert prune(store, 60)["turns"] == 1


def numbers(store: Store, *turn_ids: str) -> list[int]:
    return [store.turns.number(turn_id) for turn_id in turn_ids]


def test_the_turns_that_remain_keep_their_numbers(store: Store) -> None:
    """t2 waits, t5 is live; t1, t3 and t4 go, in whatever order they ended."""
    for number in range(1, 7):
        store.turns.accept(request(f"t{number}-x", "s1"))
        store.turns.accept(request(f"u{number}-x", "s2"))
    for number in (4, 1, 3, 6):
        end_turn(store, f"t{number}-x")
    assert numbers(store, *(f"t{n}-x" for n in range(1, 7))) == [1, 2, 3, 4, 5, 6]
    age(store, "t1-x", "t3-x", "t4-x")

    assert prune(store, 30 * DAY_S)["turns"] == 3

    assert numbers(store, "t1-x", "t2-x", "t5-x", "t6-x") == [0, 2, 5, 6]
    assert numbers(store, *(f"u{n}-x" for n in range(1, 7))) == [1, 2, 3, 4, 5, 6]
    end_turn(store, "t2-x")
    end_turn(store, "t5-x")
    store.turns.accept(request("t7-x", "s1"))
    assert numbers(store, "t2-x", "t5-x", "t6-x", "t7-x") == [2, 5, 6, 7]
    assert (row := store.turns.get("t2-x")) is not None
    assert row.turn_number == 2


def test_a_session_that_is_gone_goes_on_counting(store: Store) -> None:
    for number in range(1, 8):
        store.turns.accept(request(f"t{number}-x", "s1"))
        store.turns.reject(f"r{number}-x", f"r{number}-x", "s1", "bad", "")
        end_turn(store, f"t{number}-x")
    whole_turn(store, "another", "s2")
    for last in (5, 7):
        age(store, *(f"{kind}{number}-x" for number in range(1, last + 1) for kind in "tr"))
        prune(store, 30 * DAY_S)

    assert ids(store) == ["another"]
    store.turns.accept(request("t8-x", "s1"))
    store.turns.accept(request("t9-x", "s1"))
    assert numbers(store, "t8-x", "t9-x") == [8, 9]
    end_turn(store, "t8-x")
    assert numbers(store, "t8-x", "t9-x") == [8, 9]
    assert rows(store)["pruned_sessions"] == 1


def test_where_all_turns_are_old_no_number_is_given_twice(store: Store) -> None:
    for number in range(1, 4):
        whole_turn(store, f"turn-{number}")
    store.turns.reject("refused-1", "refused-1", "s1", "bad", "")
    age(store, *ids(store))
    event_id = SqlRecords(store).source_event_id("turn-3")

    prune(store, 30 * DAY_S)

    sqlite = store.engine.dialect.name == "sqlite"
    assert ids(store) == (["refused-1", "turn-3"] if sqlite else [])
    whole_turn(store, "turn-4")
    assert numbers(store, "turn-4") == [4]
    assert SqlRecords(store).source_event_id("turn-4") not in ("", event_id)


def test_a_number_is_not_found_by_counting_the_session(store: Store) -> None:
    """What it costs is counted in rows that the database looks at, not timed."""
    for number in range(40):
        store.turns.accept(request(f"turn-{number}", "s1"))
        end_turn(store, f"turn-{number}")
    store.turns.accept(request("turn-new", "s1"))
    steps = _steps(store, "turn-new")
    for number in range(40, 400):
        store.turns.accept(request(f"turn-{number}", "s1"))
    with store.engine.connect() as connection:
        connection.execute(
            text("UPDATE turns SET turn_number = row, ended_at = accepted_at WHERE turn_id LIKE 'turn-_%'")
        )
    store.turns.accept(request("turn-newest", "s1"))

    assert store.turns.number("turn-newest") == 402
    if steps is not None:
        assert _steps(store, "turn-newest") == pytest.approx(steps, rel=0.5)


def _steps(store: Store, turn_id: str) -> int | None:
    """How many instructions SQLite took for it; Postgres does not say."""
    if store.engine.dialect.name != "sqlite":
        return None
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 1

    def listen(connection: Any, _record: Any, _proxy: Any) -> None:
        connection.set_progress_handler(count, 1)

    def unlisten(connection: Any, _record: Any) -> None:
        connection.set_progress_handler(None, 1)

    event.listen(store.engine, "checkout", listen)
    event.listen(store.engine, "checkin", unlisten)
    store.turns.number(turn_id)
    event.remove(store.engine, "checkout", listen)
    event.remove(store.engine, "checkin", unlisten)
    return counted


def test_knowledge_goes_only_when_asked_and_not_seen_since(store: Store) -> None:
    for number in range(8):
        whole_turn(store, f"turn-{number}")
    age_rows(store, "memories")
    whole_turn(store, "turn-8")

    assert "memories" not in prune(store, 30 * DAY_S)
    planned = prune(store, 30 * DAY_S, knowledge=True, dry_run=True)
    assert prune(store, 30 * DAY_S, knowledge=True) == planned
    assert (planned["memories"], planned["observations"]) == (8, 0)
    assert [row.text for row in store.memories.list("s1")] == ["Fact of turn-8"]
    assert [row.text for row in store.memories.search("s1", "fact")] == ["Fact of turn-8"]


def test_an_interrupted_prune_is_taken_up_again(store: Store) -> None:
    for number in range(9):
        whole_turn(store, f"turn-{number}")
    live_turn(store)
    age(store, *(f"turn-{number}" for number in range(9)))

    def interrupt(counts: PrunedRows) -> None:
        if counts["turns"] >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(store, 30 * DAY_S, on_progress=interrupt)
    assert rows(store)["turns"] - 1 == rows(store)["decisions"] == 3
    assert prune(store, 30 * DAY_S)["turns"] == 3
    assert rows(store)["calls"] == 0


def test_submits_go_on_while_old_turns_go(store: Store) -> None:
    for number in range(12):
        whole_turn(store, f"turn-{number}")
    whole_turn(store, "turn-last", "s2")
    age(store, *(f"turn-{number}" for number in range(12)))
    accepted: list[bool] = []

    def submit(counts: PrunedRows) -> None:
        accepted.append(store.turns.accept(request(f"new-{len(accepted)}")).created)

    assert prune(store, 30 * DAY_S, on_progress=submit)["turns"] == 12
    assert accepted == [True] * 4
    assert numbers(store, *(f"new-{n}" for n in range(4))) == [13, 14, 15, 16]

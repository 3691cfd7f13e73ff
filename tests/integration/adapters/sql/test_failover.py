"""A primary and a standby: connections lead to the primary of now, and what a failover loses is what is documented."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from brainq.adapters.sql import engine as engine_module
from brainq.adapters.sql.engine import is_sql_unavailable, make_engine
from brainq.adapters.sql.store import Store
from brainq.app.wiring.preflight import check_sql
from brainq.cli.doctor.replication import check_replication
from brainq.errors import Unreachable
from tests.integration.adapters.sql.examples import at_once, request, start
from tests.support.postgres_pair import PostgresPair
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def one_pair() -> Iterator[PostgresPair]:
    with PostgresPair() as made:
        with Store.open(made.url()):
            made.until_followed()
        yield made


@pytest.fixture
def pair(one_pair: PostgresPair) -> PostgresPair:
    """A primary and its standby, which follows it."""
    if one_pair.standby.process is None:
        one_pair.follow()
    one_pair.until_followed()
    return one_pair


@pytest.fixture(scope="module")
def synchronous() -> Iterator[PostgresPair]:
    with PostgresPair(synchronous=True) as made:
        with Store.open(made.url()):
            made.until_followed()
        yield made


def only(pair: PostgresPair, name: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{pair.nodes[name].port}/postgres"


def turns_of(store: Store, prefix: str) -> set[str]:
    return {row.turn_id for row in store.turns.find(prefix, 1000)}


def accept(store: Store, prefix: str, count: int) -> set[str]:
    """Accept turns from many threads, so that the pool has many connections."""
    at_once([lambda n=n: store.turns.accept(request(f"{prefix}-{n}", f"s-{prefix}-{n}")) for n in range(count)])
    return {f"{prefix}-{n}" for n in range(count)}


def test_a_promotion_costs_no_statement_and_the_doctor_names_each_host(
    pair: PostgresPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "PING_AFTER_IDLE_S", 3600.0)
    with Store.open(pair.url()) as store:
        old = pair.primary
        connect = store.engine.raw_connection
        with closing(connect()), closing(connect()), closing(connect()):
            pass  # the pool has three
        accepted = accept(store, "before", 12)
        pair.until_followed()
        standby = check_sql(only(pair, pair.standby.name))
        assert pair.fail_over() > 3

        assert store.turns.accept(request("after")).created
        with closing(connect()):  # the new one: the others of the old primary's age have left the pool
            assert store.brakes.delete_response("s1", "after"), "a statement that is not repeated"
        assert turns_of(store, "before") == accepted
        with store.database.transaction() as connection:
            assert store.messages.write_assistant(connection, session_id="s1", turn_id="after", content="a")
        assert start(store, turn_id="after")
        alone = list(check_replication(pair.url()))
        pair.follow()
        again = list(check_replication(pair.url()))

    assert (standby.level, "is a standby in recovery" in standby.said) == ("FAIL", True), standby
    assert [(check.name, check.level) for check in alone] == [("sql hosts", "warn"), ("replication", "warn")]
    assert f"host 127.0.0.1:{old.port} does not answer" in alone[0].said
    assert f"host 127.0.0.1:{pair.primary.port} is the primary; host" in again[0].said or again[0].level == "ok"
    assert (again[0].level, again[1].level) == ("ok", "warn")
    assert "is asynchronous" in again[1].said


def test_a_server_that_becomes_read_only_leaves_the_pool(pair: PostgresPair) -> None:
    def server(engine_store: Store) -> int:
        with engine_store.engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())

    with Store.open(only(pair, pair.primary.name), pool_size=1) as store:
        read = server(store)
        pair.primary.tell("ALTER SYSTEM SET default_transaction_read_only = on")
        try:
            # A statement reads the server's announcement; the connection leaves the pool when it is returned.
            wait_until(lambda: server(store) != read, "the connection is replaced", 30)
            tried = server(store)
            with pytest.raises(Unreachable, match="read-only"):
                store.require_writes()
            refused = server(store)
            with pytest.raises(DBAPIError, match="read-only"):
                store.turns.accept(request("refused"))
        finally:
            with psycopg.connect(only(pair, pair.primary.name), autocommit=True) as connection:
                connection.execute("SET default_transaction_read_only = off")
                connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
                connection.execute("SELECT pg_reload_conf()")
        wait_until(lambda: pair.primary.ask("SHOW default_transaction_read_only") == "off", "it is writable", 30)
        assert len({tried, refused, server(store)}) == 3, "a refused write lets the connection go"
        assert store.turns.accept(request("not-refused")).created


def test_a_user_without_rights_is_told_which_right_is_missing(pair: PostgresPair) -> None:
    pair.primary.tell(
        *("DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
    )
    pair.until_followed()
    checks = list(check_replication(pair.url().replace("postgres@", "plain@")))

    assert [check.level for check in checks] == ["ok", "warn"]
    assert ("may not read" in checks[1].said, "pg_monitor" in checks[1].remedy) == (True, True)


def test_a_host_that_never_answers_is_waited_for_once(pair: PostgresPair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{pair.primary.port}/postgres"
        engine = make_engine(url)
        with closing(engine.raw_connection()), closing(engine.raw_connection()), closing(engine.raw_connection()):
            pass
        engine.dispose()
        silent.setblocking(False)
        knocks = 0
        while True:
            try:
                silent.accept()[0].close()
            except BlockingIOError:
                break
            knocks += 1
    assert knocks == 1, "the others went to the host that answered"


def test_every_reader_of_the_url_takes_several_hosts_and_shows_no_password(pair: PostgresPair) -> None:
    secret = "p@s/s"
    url = pair.url().replace("postgres@", f"postgres:{quote(secret, safe='')}@")
    check = check_sql(url)

    assert check.level == "ok", check
    assert (secret in check.said, quote(secret, safe="") in check.said) == (False, False)
    assert str(pair.standby.port) in check.said


def test_all_hosts_that_are_read_only_are_named(pair: PostgresPair) -> None:
    port = pair.standby.port
    check = check_sql(f"postgresql://postgres@127.0.0.1:{port},127.0.0.1:1/postgres")

    assert check.level == "FAIL"
    assert f"host 127.0.0.1:{port} is a standby in recovery; host 127.0.0.1:1 does not answer" in check.said


@pytest.mark.full
def test_a_planned_switch_loses_nothing(pair: PostgresPair) -> None:
    with Store.open(pair.url()) as store:
        for number in range(3):
            accepted = accept(store, f"switch-{number}", 12)
            pair.switch()
            assert store.turns.accept(request(f"switched-{number}")).created
            assert turns_of(store, f"switch-{number}-") == accepted


@pytest.mark.full
def test_a_standby_that_replays_late_has_what_it_received(pair: PostgresPair) -> None:
    pair.standby.ask("SELECT pg_wal_replay_pause()")
    with Store.open(pair.url()) as store:
        accepted = accept(store, "late", 12)
        received = "SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= pg_current_wal_lsn()"
        wait_until(lambda: pair.primary.ask(received) == 1, "the standby has received it", 30)
        (shown,) = [check for check in check_replication(pair.url()) if check.name == "replication"]
        pair.fail_over()
        assert turns_of(store, "late-") == accepted
        pair.follow()
    assert " 0 bytes behind" not in shown.said


@pytest.mark.full
def test_an_asynchronous_standby_lacks_what_it_did_not_receive_and_a_repeated_submit_brings_it_back(
    pair: PostgresPair,
) -> None:
    with Store.open(pair.url()) as store:
        kept = accept(store, "kept", 12)
        pair.until_followed()
        pair.primary.wal.freeze()
        lost = accept(store, "lost", 12)
        old = pair.primary
        pair.fail_over()
        old.wal.thaw()
        assert (turns_of(store, "kept-"), turns_of(store, "lost-")) == (kept, set())
        assert accept(store, "lost", 12) == lost, "producers send them again, with their keys"
        assert turns_of(store, "lost-") == lost
        pair.follow()


@pytest.mark.full
def test_a_synchronous_standby_has_whatever_was_accepted(synchronous: PostgresPair) -> None:
    with Store.open(synchronous.url()) as store:
        kept, answers, failures = accept(store, "kept", 12), list[bool](), list[DBAPIError]()
        synchronous.primary.wal.freeze()

        def submit() -> None:
            while not answers:
                try:
                    answers.append(store.turns.accept(request("waits")).created)
                except DBAPIError as cut:  # until the standby is promoted
                    failures.append(cut)

        waiting = threading.Thread(target=submit)
        waiting.start()
        held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        wait_until(lambda: synchronous.primary.ask(held) == 1, "the commit waits for the standby", 30)
        assert answers == [], "it is not accepted"
        old = synchronous.primary
        synchronous.fail_over()
        old.wal.thaw()
        waiting.join(30)
        assert all(map(is_sql_unavailable, failures))
        assert answers == [True], "it was accepted by the new primary"
        assert (turns_of(store, "kept-"), turns_of(store, "waits")) == (kept, {"waits"})
        synchronous.follow()
        checks = list(check_replication(synchronous.url()))
    assert [check.level for check in checks] == ["ok", "ok"]
    assert "is synchronous" in checks[1].said

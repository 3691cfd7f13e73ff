"""Each check of `brainq doctor`, on something it must find."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from brainq.adapters.celery.app import make_app
from brainq.cli.doctor.services import check_envelope
from brainq.runtime.settings.deployment import Settings
from tests.support.commands import Brainq
from tests.support.postgres import postgres_url
from tests.support.server import RedisServer
from tests.support.wait import wait_until


def levels(brainq: Brainq) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and (level, what was said and the remedy) of each check."""
    ran = brainq("doctor", "--json")
    return ran.code, {row["name"]: (row["level"], f"{row['said']} {row['remedy']}") for row in json.loads(ran.out)}


def test_a_setup_without_workers_is_told_how_to_start_them(brainq: Brainq) -> None:
    brainq("db", "upgrade")
    code, found = levels(brainq)
    assert code == 0
    assert {name for name, (level, _) in found.items() if level == "warn"} == {"workers", "redis disk", "redis memory"}
    assert "brainq dev" in found["workers"][1]
    assert "1 tool (1 read_only)" in found["brain"][1]
    assert "turns 0" in found["queues"][1]


def test_each_line_says_ok_or_what_to_do(brainq: Brainq) -> None:
    lines = brainq("doctor").out.splitlines()
    assert lines[0].startswith("ok   python ")
    assert any(line.startswith("warn workers") for line in lines)


def test_an_evicting_redis_fails(brainq: Brainq, redis_server: RedisServer) -> None:
    redis_server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        code, found = levels(brainq)
    finally:
        redis_server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert code == 1
    assert found["redis memory"][0] == "FAIL"
    assert "noeviction" in found["redis memory"][1]


def test_a_redis_whose_disk_takes_nothing_is_told_with_its_cause(
    brainq: Brainq, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a full disk: it answers, and refuses every write and PING with MISCONF."""
    server = RedisServer().start()
    try:
        shutil.rmtree(server.directory)  # nothing can be written there any more
        server.command("CONFIG", "SET", "save", "3600 1")
        server.command("BGSAVE")
        wait_until(lambda: "rdb_last_bgsave_status:err" in server.command("INFO")[0], "saving failed")
        monkeypatch.setenv("BRAINQ_REDIS_URL", server.url)
        code, found = levels(brainq)
        fleet = brainq("fleet")
    finally:
        server.stop()
    assert code == 1
    level, said = found["redis"]
    assert level == "FAIL"
    for told in (said, fleet.err):
        assert "cannot write to its disk" in told
        assert "free space" in told
        assert "start it" not in told


def test_a_redis_that_is_full_is_told_with_its_remedy(brainq: Brainq, redis_server: RedisServer) -> None:
    brainq("db", "upgrade")
    redis_server.command("CONFIG", "SET", "maxmemory", "100")
    try:
        code, found = levels(brainq)
        submit = brainq("submit", "s1", "Hello.")
    finally:
        redis_server.command("CONFIG", "SET", "maxmemory", "0")
    assert (code, found["redis"][0]) == (1, "FAIL")
    for text in (found["redis"][1], submit.err):
        assert "is full, so it accepts no writes" in text
        assert "CONFIG SET maxmemory" in text
        assert "start it" not in text


def test_quarantined_items_and_long_queues_are_seen(brainq: Brainq, redis_server: RedisServer) -> None:
    redis_server.command("LPUSH", "bq:brainq.poison", "{}")
    redis_server.command("LPUSH", "bq:brainq.turns", *(["x"] * 990))
    redis_server.command("LPUSH", "bq:brainq.turns\x06\x169", *(["x"] * 10))
    redis_server.command("LPUSH", "bq:brainq.finalize", "x")
    redis_server.command("ZADD", "bq:{network}:queue", "1", "s1 t1 c1-0")
    _, found = levels(brainq)
    assert found["quarantine"][0] == "warn"
    assert "LRANGE bq:brainq.poison" in found["quarantine"][1]
    assert found["queues"][0] == "warn"
    assert "brainq worker coordinator" in found["queues"][1]
    assert "turns 1000, " in found["queues"][1]
    assert "finalize 1, " in found["queues"][1]
    assert "tools.network 1, " in found["queues"][1]


def test_looks_that_nobody_makes_are_seen(brainq: Brainq, redis_server: RedisServer) -> None:
    seconds = int(redis_server.command("TIME")[0])
    redis_server.command("ZADD", "bq:index", str((seconds + 60) * 1000), "s1 later")
    assert levels(brainq)[1]["sweeper"][0] == "ok"
    redis_server.command("ZADD", "bq:index", str((seconds - 40) * 1000), "s1 now")
    level, said = levels(brainq)[1]["sweeper"]
    assert level == "warn"
    assert "of a turn is 4" in said


def test_a_brain_that_does_not_load_and_a_redis_that_is_away_fail(
    brainq: Brainq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAINQ_APP", "no_such_module:brain")
    monkeypatch.setenv("BRAINQ_REDIS_URL", "redis://127.0.0.1:1/0")
    code, found = levels(brainq)
    assert code == 1
    assert found["brain"][0] == found["redis"][0] == "FAIL"
    assert "no_such_module" in found["brain"][1]
    assert "workers" not in found


def test_a_tool_whose_schema_is_none_is_named(brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_schema.py").write_text(
        "from brainq import Brain\n"
        "brain = Brain('wrong', 'offline:rules')\n"
        "@brain.tool(parameters={'type': 'dict'})\n"
        "def remote(**arguments): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("BRAINQ_APP", "wrong_schema:brain")
    code, found = levels(brainq)
    assert code == 1
    assert found["brain"][0] == "FAIL"
    assert "tool 'remote': its parameters must be the schema of an object" in found["brain"][1]


@pytest.mark.usefixtures("no_database")
def test_a_missing_schema_is_named(brainq: Brainq, settings: Settings) -> None:
    _, found = levels(brainq)
    assert found["sql"][0] == "warn"
    (settings.data_dir / "brainq.db").touch()
    code, found = levels(brainq)
    assert (code, found["schema"][0]) == (1, "FAIL")
    assert "brainq db upgrade" in found["schema"][1]


def test_a_wrong_setting_is_named_and_not_shown(brainq: Brainq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINQ_REDIS_URL", "postgres://me:secret@x")
    code, found = levels(brainq)
    assert code == 1
    assert "BRAINQ_REDIS_URL" in found["settings"][1]
    assert "secret" not in found["settings"][1]


def test_a_celery_that_writes_other_headers_fails(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(settings)
    assert check_envelope(app).level == "ok"
    write = app.amqp.as_task_v2

    def newer(*args: object, **options: object) -> object:
        message = write(*args, **options)
        return message._replace(headers={**message.headers, "novelty": 1})

    monkeypatch.setattr(app.amqp, "as_task_v2", newer)
    assert (check := check_envelope(app)).level == "FAIL"
    assert "novelty" in check.said
    app.close()


def test_a_postgres_that_may_lose_commits_is_named(brainq: Brainq, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres_url() as url:  # the test server's settings spare the disk
        monkeypatch.setenv("BRAINQ_SQL_URL", url)
        brainq("db", "upgrade")
        _, found = levels(brainq)
    assert found["commits"][0] == "warn"
    assert "synchronous_commit=off and fsync=off" in found["commits"][1]


def test_messages_of_a_producer_that_does_not_know_the_prefix_are_seen(
    brainq: Brainq, redis_server: RedisServer
) -> None:
    assert "unprefixed" not in levels(brainq)[1]
    redis_server.command("LPUSH", "brainq.turns", "one")
    redis_server.command("LPUSH", "brainq.turns\x06\x163", "two", "three")
    try:
        said = brainq("doctor").out
        given_up = json.loads(brainq("fleet", "--json").out)["given_up"]
        metrics = brainq("metrics").out
    finally:
        redis_server.command("DEL", "brainq.turns", "brainq.turns\x06\x163")
    assert "1 message in 'brainq.turns', which no worker reads: the prefix 'bq:' is missing" in said
    assert "2 messages in 'brainq.turns" in said
    assert "LMOVE brainq.turns bq:brainq.turns RIGHT LEFT" in said
    assert given_up["unprefixed"] == 3
    assert 'brainq_given_up{what="unprefixed"} 3' in metrics


def test_a_redis_user_of_another_prefix_is_refused_and_not_away(
    brainq: Brainq, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    brainq("db", "upgrade")
    redis_server.command("ACL", "SETUSER", "shop", "on", ">pw", "~shop:*", "&*", "+@all")
    monkeypatch.setenv("BRAINQ_REDIS_URL", redis_server.url.replace("redis://", "redis://shop:pw@"))
    try:
        code, found = levels(brainq)
        submit = brainq("submit", "s1", "Hello.")
    finally:
        redis_server.command("ACL", "DELUSER", "shop")
    assert (code, found["redis"][0], found["redis rights"][0]) == (1, "FAIL", "FAIL")
    assert "bq:brainq.turns" in found["redis rights"][1]
    for text in (found["redis"][1], submit.err):
        assert "does not permit this for the user" in text
        assert "does not answer" not in text


def test_a_check_that_breaks_is_one_line_and_the_others_go_on(brainq: Brainq, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise ConnectionResetError("hung up")

    for name in ("check_sql", "check_webhooks", "check_rights", "check_sweeper", "check_presence"):
        monkeypatch.setattr(f"brainq.cli.doctor.services.{name}", breaks)
    code, found = levels(brainq)
    assert code == 1
    assert [found[name][0] for name in ("sql", "redis rights", "sweeper", "presence")] == ["FAIL"] * 4
    assert "hung up" in found["sweeper"][1]
    assert found["queues"][0] == "ok"

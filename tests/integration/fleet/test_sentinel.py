"""A Redis that Sentinel watches holds state and broker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from brainq.adapters.redis.connection import make_client
from brainq.app.wiring.preflight import check_redis
from brainq.contracts.status import Ending
from brainq.errors import SetupError, Unreachable
from brainq.runtime.settings.deployment import load_settings
from brainq.runtime.settings.redis_url import parse_sentinel_url
from tests.integration.adapters.celery.worker import listening_app, running, settings_for
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.failovers import fleet, follow_through, submit
from tests.support.pump import Pump, sqlite_url
from tests.support.sentinels import SentinelDeployment
from tests.support.streams import KEYS
from tests.support.wait import insist, wait_until

LOAD = 40


@pytest.fixture
def deployment() -> Iterator[SentinelDeployment]:
    made = SentinelDeployment()
    try:
        yield made.start()
    finally:
        made.stop()


def test_an_address_names_sentinels_a_master_and_a_login() -> None:
    found = parse_sentinel_url("sentinel://me:p%40ss@a:1,b,[::1]:3/mymaster/2")
    assert found.hosts == (("a", 1), ("b", 26379), ("::1", 3))
    assert (found.master, found.database, found.username, found.password) == ("mymaster", 2, "me", "p@ss")
    assert parse_sentinel_url("sentinel://a:1,b:2/m").celery_url == "sentinel://a:1/0;sentinel://b:2/0"


@pytest.mark.parametrize("url", ["sentinel://a:1", "sentinel://a:x/m", "sentinel://:secret@a:1/"])
def test_any_other_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(SetupError, match="has the form sentinel://") as refused:
        load_settings(redis_url=url)
    assert "secret" not in str(refused.value)


@pytest.mark.full
def test_turns_and_doorbells_go_on_after_a_failover(
    deployment: SentinelDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    assert check_redis(deployment.url).level == "ok"
    sql_url = sqlite_url(tmp_path)
    app, heard = listening_app(settings_for(deployment.url))
    with Pump(obedient.brain, deployment.url, sql_url) as pump:
        with running(app):
            pump.submit("heard1", script())
            wait_until(lambda: len(heard.bells) == 1, "a worker takes the doorbell")
            deployment.fail_over()

            def submitted() -> bool:
                try:
                    pump.submit("heard2", script())  # a new one each time: no sweeper queues what SQL has
                except Unreachable:
                    return False
                return True

            wait_until(submitted, "the client found the new primary", 30)
            wait_until(lambda: len(heard.bells) == 2, "and so did the worker", 60)
        result = pump.finish(pump.submit("s1", script([("write", {"name": "w"})], final="after")), 30)
    assert result.text == "after"


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_planned_failover_under_load_loses_no_turn(
    deployment: SentinelDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old primary takes writes, and calls itself one, for seconds after another took its place."""
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    with fleet(deployment.url, tmp_path) as client:
        handles = [submit(client, f"s{number}") for number in range(LOAD)]
        wait_until(lambda: diary.notes("start", tool="write"), "writes run")
        old = deployment.switch()
        assert deployment.role(old) == "master", "the fault fired: it takes writes still"
        handles += [submit(client, f"t{number}") for number in range(LOAD)]
        results = [insist(partial(handle.result, timeout_s=200)) for handle in handles]
    assert [(result.ending, result.text) for result in results] == [(Ending.COMPLETED, "done")] * 2 * LOAD
    written = [note["turn"] for note in diary.notes("start", tool="write")]
    assert len(written) == len(set(written)), "no write ran twice"


@pytest.mark.full
@pytest.mark.timeout(300)
def test_no_call_is_rescued_after_a_failover(
    deployment: SentinelDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    with (
        fleet(deployment.url, tmp_path, lease_s=600.0, beat_s=1.0) as client,
        make_client(deployment.url) as redis_client,
    ):
        handles = [submit(client, f"s{number}", gate="gate") for number in range(4)]
        wait_until(lambda: len(diary.notes("start")) == len(handles), "reads run")
        redis_client.set("after", "them")
        assert redis_client.wait(1, 30_000) == 1, "the replica has what was before"
        deployment.fail_over()
        diary.open_gate("gate")
        for handle in handles:
            assert insist(partial(handle.result, timeout_s=200)).text == "done"
            assert [note["attempt"] for note in diary.notes("start", turn=handle.turn_id)] == [1, 1]


@pytest.mark.full
def test_streams_are_followed_through_a_failover(deployment: SentinelDeployment, tmp_path: Path) -> None:
    """The reader finds the new primary, and nothing is lost or doubled."""

    with make_client(deployment.url) as client:
        assert follow_through(deployment.fail_over, deployment.url, KEYS, client) == [1, 2, 3, 4, 5, 6]

"""`brainq versions` and `brainq doctor --before-upgrade`, as people type them, beside a build whose worker is alive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.runtime.settings.deployment import Settings
from tests.support.builds import announce
from tests.support.commands import Brainq


def said(brainq: Brainq, *words: str) -> str:
    ran = brainq(*words)
    return ran.out + ran.err


def test_two_builds_are_listed_ramped_and_released(
    client: Client, brainq: Brainq, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(wiring_of(client), "1.4", "d01d")
    announce(wiring_of(client), "1.5", "0e00")
    assert "build 1.4 is empty: its workers can stop" in said(brainq, "versions")
    assert "10 % of sessions begin on 1.5" in said(brainq, "versions", "ramp", "1.5", "--share", "10%")
    assert json.loads(brainq("versions", "--json").out)["ramp"].startswith("10 %")
    ended = said(brainq, "versions", "ramp", "1.5", "--share", "0%")
    assert "also on build 1.5 while it has workers; to keep turns off it, ramp the other build to 100 %" in ended
    assert "will continue on build 1.5" in said(brainq, "versions", "release", "1.4", "--to", "1.5")
    assert brainq("versions", "release", "1.4").code == 2
    assert {worker.build for pool in client.fleet().pools for worker in pool.workers} == {"1.4", "1.5"}


def test_before_an_upgrade_it_says_the_order_and_migrates_nothing(
    client: Client, brainq: Brainq, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(wiring_of(client), "1.4", "d01d")
    monkeypatch.setenv("BRAINQ_BUILD", "1.5")
    rows = {row["name"]: row for row in json.loads(brainq("doctor", "--before-upgrade", "--json").out)}
    assert rows["build"]["said"] == "1.5"
    assert "coordinator, parallel, serial, finalizer" in rows["order"]["said"]
    assert {rows[name]["level"] for name in ("state format", "sql revision")} == {"ok"}


def test_several_cells_are_all_looked_at_and_one_that_is_away_is_named(
    client: Client, brainq: Brainq, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for build, digest in (("1.4", "d01d"), ("1.5", "0e00")):
        announce(wiring_of(client), build, digest)
    assert settings.redis_url is not None
    here = {"redis": settings.redis_url.get_secret_value(), "sql": f"sqlite:///{tmp_path / 'brainq.db'}"}
    away = {"redis": "redis://127.0.0.1:1/0", "sql": f"sqlite:///{tmp_path / 'other.db'}"}
    monkeypatch.delenv("BRAINQ_REDIS_URL")
    monkeypatch.delenv("BRAINQ_SQL_URL")
    monkeypatch.setenv("BRAINQ_CELLS", json.dumps({"a": here, "b": away}))
    listed = said(brainq, "versions")
    assert "build 1.4 is empty in cell a; b did not answer, so keep its workers" in listed
    assert "cell b did not answer" in listed
    changed = said(brainq, "versions", "ramp", "1.5", "--share", "10%")
    assert "the others on 1.4, in cell a" in changed
    assert "cell b did not answer and is unchanged; run this command again" in changed
    monkeypatch.setenv("BRAINQ_BUILD", "1.6")
    rows = {row["name"]: row["level"] for row in json.loads(brainq("doctor", "--before-upgrade", "--json").out)}
    assert (rows["a build"], rows["a state format"], rows["b redis"], rows["order"]) == ("ok", "ok", "FAIL", "ok")


def test_a_submit_says_that_the_workers_run_another_version_of_the_code_here(
    client: Client, brainq: Brainq, settings: Settings
) -> None:
    (settings.data_dir / "changed_brain.py").write_text(
        'from brainq import Brain\n\nbrain = Brain("shop", "offline:rules", "Changed.")\n'
    )
    announce(wiring_of(client), "1.4", "d01d")
    told = brainq("-A", "changed_brain:brain", "submit", "s1", "Hello!", "--no-wait")
    assert (
        told.code,
        "the workers run a different version of brain shop than the code in this directory" in told.err,
    ) == (
        0,
        True,
    )

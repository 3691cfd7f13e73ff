"""`brainq schedule`."""

from __future__ import annotations

import json

import pytest

from tests.support.commands import Brainq


def test_a_schedule_from_add_to_remove(brainq: Brainq) -> None:
    added = brainq("schedule", "add", "acme:daily", "s-{date}", "hi", "--cron", "0 7 * * *", "--zone", "Europe/Berlin")
    assert (added.code, "schedule acme:daily: " in added.err + added.out) == (0, True)
    (listed,) = json.loads(brainq("schedule", "list", "--json").out)
    assert (listed["when"], listed["zone"], listed["paused"]) == ("0 7 * * *", "Europe/Berlin", False)
    assert "acme:daily" in brainq("schedule", "list").out
    assert brainq("schedule", "pause", "acme:daily").code == 0
    assert json.loads(brainq("schedule", "show", "acme:daily", "--json").out)["paused"] is True
    assert "user_message  hi" in brainq("schedule", "show", "acme:daily").out
    assert brainq("schedule", "resume", "acme:daily").code == 0
    assert brainq("schedule", "remove", "acme:daily").code == 0
    assert brainq("schedule", "remove", "acme:daily").code == 5
    assert "no schedules" in brainq("schedule", "list").err


def test_what_is_wrong_is_said(brainq: Brainq) -> None:
    assert "give exactly one of" in brainq("schedule", "add", "x", "s", "hi", "--every", "30m", "--in", "1h").err
    assert "--cron: '* * *' has 3 fields" in brainq("schedule", "add", "x", "s", "hi", "--cron", "* * *").err
    assert "--every, --at and --in" in brainq("schedule", "add", "x", "s", "hi").err
    assert "is not a time" in brainq("schedule", "add", "x", "s", "hi", "--at", "soon").err
    assert "no schedule 'x'" in brainq("schedule", "show", "x").err


def test_a_tenant_has_as_many_as_the_deployment_allows(brainq: Brainq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINQ_MAX_SCHEDULES_A_TENANT", "1")
    assert brainq("schedule", "add", "acme:1", "s", "hi", "--every", "30m").code == 0
    refused = brainq("schedule", "add", "acme:2", "s", "hi", "--every", "30m")
    assert (refused.code, "brainq schedule remove" in refused.err) == (8, True)

"""hooks_done.lua: calls that no worker ended, of which the brain's hook has heard."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, TID, WRITE, Rig

SPEC = '{"arguments":{"n":1},"hook":true}'


def due(rig: Rig) -> tuple[Any, Any]:
    names = rig.names(TID)
    return rig.client.hget(names["turn"], "hooks_due"), rig.client.hget(names["trace"], "c1-0:hook")


def lapsed(rig: Rig, spec: str) -> None:
    rig.running(spec=spec, **WRITE)
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", status="unknown", outcome='{"kind":"unknown"}') == ["SETTLED"]


def test_a_call_that_no_worker_ended_is_due_until_its_owner_says_that_it_was_told(rig: Rig) -> None:
    lapsed(rig, SPEC)
    assert due(rig) == ("c1-0", '{"kind":"unknown"}\n' + SPEC)
    rig.run("turn_claim", fence=1)
    assert rig.run("hooks_done", fence=1, calls="c1-0") == ["LOST"]
    assert due(rig)[0] == "c1-0"
    assert rig.run("hooks_done", fence=2, calls="c1-0") == ["DONE"]
    assert due(rig) == (None, None)


@pytest.mark.parametrize("spec", ['{"arguments":{"n":1}}', '{"arguments":{},"metadata":{"hook":true}}'])
def test_nothing_is_kept_where_the_brain_has_no_hook(rig: Rig, spec: str) -> None:
    lapsed(rig, spec)
    assert due(rig) == (None, None)


def test_others_stay_due(rig: Rig) -> None:
    lapsed(rig, SPEC)
    rig.client.hset(rig.names(TID)["turn"], "hooks_due", "c1-0 c1-1")
    rig.run("turn_claim", fence=1)
    assert rig.run("hooks_done", fence=2, calls="c1-0") == ["DONE"]
    assert due(rig)[0] == "c1-1"

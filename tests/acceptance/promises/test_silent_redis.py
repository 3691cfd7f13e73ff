"""P17, P20: silent connections to Redis are given up within ten seconds, and no work is taken from one who lives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.brains import diary
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

DEFAULTS = {"lease_s": 10.0, "beat_s": 3.0, "sweep_s": 1.0, "rering_s": 5.0}
GIVEN_UP = re.compile(r"BRPOP got no reply for (\d+) seconds")


@pytest.mark.full
@pytest.mark.timeout(300)
def test_what_runs_goes_on_and_what_is_new_begins(tmp_path: Path, sid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    world = World(tmp_path, pace=DEFAULTS, proxied=True)
    try:
        world.start()
        assert world.proxy is not None
        turns = [
            world.client.submit(f"{sid}-{tool}", script([(tool, {"name": tool, "gate": sid})]))
            for tool in ("read", "write")
        ]
        wait_until(lambda: len(notes("start")) == 2, "both began")
        world.proxy.go_silent()
        world.proxy.heal()
        assert world.proxy.silenced >= 8, "the fault fired"
        open_gate(sid)
        turns.append(world.client.submit(f"{sid}-new", script([("read", {"name": "new"})])))
        for turn in turns:
            assert turn.result(timeout_s=120).text == "done"
            assert [row["attempt"] for row in notes("start", turn=turn.turn_id)] == [1]
            assert [row["attempt"] for row in notes("thinking", turn=turn.turn_id)] == [1, 1]
        waited = [int(s) for worker in world.fleet.workers for s in GIVEN_UP.findall(worker.log_path.read_text())]
        assert waited
        assert max(waited) <= 10
    finally:
        world.stop()

"""docs/backup.md: a copy of SQL and an empty Redis are enough to go on, and no write is made twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from brainq.client.handle import TurnHandle
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.models.scripted import ScriptedProvider, calls, says
from tests.support.people import Pumps, awaits, brain_of, swept_until
from tests.support.pump import Pump

SCRIPTS = {
    "ends": [calls(("note", {"name": "a"}))],
    "wrote": [calls(("note", {"name": "b"})), calls(("write", {"name": "b"}))],
    "asks": [calls(("write", {"name": "c"}))],
    "waits": [calls(("note", {"name": "d"}))],
}


def replies(request: ModelRequest) -> ModelReply:
    """By the turn's own message: its calls, one a step, and then its name."""
    said = [message.content for message in request.messages if message.role == "user"][-1]
    script = SCRIPTS[said]
    return script[request.step - 1] if request.step <= len(script) else says(f"{said}: done")


def copied(database: Path, to: Path) -> str:
    """The url of a copy that SQLite's own backup made, beside a database that is open and in WAL mode."""
    with closing(sqlite3.connect(database)) as live, closing(sqlite3.connect(to)) as copy:
        live.backup(copy)
    return f"sqlite:///{to}"


def again(pump: Pump, handle: TurnHandle) -> TurnHandle:
    """The same turn as a client of the restored deployment has it."""
    return pump.client.handle(handle.turn_id)


def test_a_copy_of_sql_and_an_empty_redis_are_enough(pumps: Pumps, tmp_path: Path, redis_url: str) -> None:
    ran: list[str] = []
    brain = brain_of(ScriptedProvider(rules=replies), ran, approval="It changes things.")
    pump = pumps(brain)
    ended = pump.submit("s1", "ends")
    assert pump.finish(ended).text == "ends: done"
    wrote, parked = pump.submit("s2", "wrote"), pump.submit("s3", "asks")
    pump.drain()
    queued = pump.submit("s3", "waits")
    pump.drain()
    assert (awaits(wrote), awaits(parked)) == ("parked people", "parked people")
    assert ran == ["note a", "note b"]

    copy = copied(tmp_path / "brainq.db", tmp_path / "copy.db")
    redis: Any = pump.wiring.state.redis
    redis.flushall()
    pump.close()
    with Pump(brain, redis_url, copy, owner="restored") as restored:
        assert again(restored, ended).result(timeout_s=1).text == "ends: done"
        assert restored.wiring.sweeper.comparer.compare(0).healed == 3

        lost = restored.finish(again(restored, wrote))
        assert (lost.ending, lost.stop_reason) == (Ending.FAILED, StopReason.LOST)
        assert "begun to write" in (lost.error or "")

        rebuilt = again(restored, parked)
        swept_until(restored, lambda: restored.drain() or awaits(rebuilt) == "parked people", "it asks again")
        (asked,) = rebuilt.approvals()
        assert ran == ["note a", "note b"]
        assert restored.client.approve(asked.id)
        assert restored.finish(rebuilt).text == "asks: done"
        assert restored.finish(again(restored, queued)).text == "waits: done"
        assert ran == ["note a", "note b", "write c", "note d"]

"""P1 and P4 with processes that are stopped and go on: what they held is another's by then, and they write nothing."""

from __future__ import annotations

import json
import signal
from typing import Any

from brainq.app.devserver.local_fleet import LocalWorker
from brainq.contracts.event import EventKind
from brainq.contracts.status import TraceStatus
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World


def freeze(world: World, pool: str, pid: int) -> LocalWorker:
    """SIGSTOP the worker of `pool` that is process `pid`."""
    (worker,) = [w for w in world.fleet.of_pool(pool) if w.process is not None and w.process.pid == pid]
    world.fleet.kill(worker, signal.SIGSTOP)
    return worker


def state_of(world: World, sid: str, turn_id: str) -> tuple[Any, ...]:
    """All that a late writer could change."""
    client: Any = world.wiring.state.redis
    turn = world.wiring.state.keys.turn(sid, turn_id)
    # That it lives, and was not lost by the turn, an owner that thaws does say (turn_release).
    said_by_it = ("lost_owner", "lost_attempts")
    return (
        {name: value for name, value in client.hgetall(turn).items() if name not in said_by_it},
        client.hgetall(f"{turn}:budget"),
        client.xrange(f"{turn}:events"),
        client.lrange(world.wiring.state.keys.of_session(sid, "history"), 0, -1),
    )


def test_a_coordinator_that_thaws_after_its_model_call_changes_nothing(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script(final="said once", gate=f"m-{sid}"))
    first = wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")[0]
    frozen = freeze(stormy, "coordinator", first["pid"])
    try:
        wait_until(lambda: len(notes("thinking", turn=handle.turn_id)) == 2, "another took the turn over")
        open_gate(f"m-{sid}")
        assert handle.result(timeout_s=60).text == "said once"
        stormy.done(handle)
        before = state_of(stormy, sid, handle.turn_id)
    finally:
        stormy.fleet.kill(frozen, signal.SIGCONT)
    bell = f"brainq.turn.advance[{handle.turn_id}.advance.0] succeeded"
    wait_until(lambda: bell in frozen.log_path.read_text(), "the thawed worker came to its end")
    assert state_of(stormy, sid, handle.turn_id) == before
    events = stormy.all_events(handle)
    assert [e.data["attempt"] for e in events if e.kind is EventKind.STEP_STARTED] == [1, 2]
    assert {str(e.data["attempt"]) for e in events if e.kind is EventKind.TEXT_DELTA} == {"2"}
    # It has lost a turn, and works on.
    assert stormy.client.submit(sid, script(final="next")).result(timeout_s=60).text == "next"


def test_a_write_whose_worker_thaws_stays_unknown_and_its_end_is_told(stormy: World, sid: str) -> None:
    handle = stormy.client.submit(sid, script([("write", {"name": "w", "gate": f"w-{sid}"})], final="$seen"))
    begun = wait_until(lambda: notes("start", turn=handle.turn_id), "the write started")[0]
    frozen = freeze(stormy, "serial", begun["pid"])
    try:
        (told,) = [m for m in json.loads(handle.result(timeout_s=60).text) if m["role"] == "tool"]
        assert "may or may not have taken effect" in told["text"]
        stormy.done(handle)
        before = state_of(stormy, sid, handle.turn_id)
    finally:
        stormy.fleet.kill(frozen, signal.SIGCONT)
    open_gate(f"w-{sid}")
    wait_until(lambda: notes("stop", turn=handle.turn_id), "the write came to its end after all")
    notices = stormy.wiring.state.keys.of_session(sid, "notices")
    wait_until(lambda: stormy.wiring.state.redis.exists(notices), "its end was left for the next turn")
    assert state_of(stormy, sid, handle.turn_id) == before
    assert stormy.status(handle) == TraceStatus.UNKNOWN
    assert len(notes("start", turn=handle.turn_id)) == 1
    shown = json.loads(stormy.client.submit(sid, script(final="$seen")).result(timeout_s=60).text)
    assert [m["text"] for m in shown if "succeeded after all" in m["text"]]

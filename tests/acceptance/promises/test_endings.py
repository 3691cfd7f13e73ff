"""Endings and P10 with real processes."""

from __future__ import annotations

import threading

import pytest

from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending, StopReason
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World


def test_a_thinking_turn_is_cancelled(calm: World, sid: str) -> None:
    handle = calm.client.submit(sid, script([("write", {"name": sid})], gate=sid))
    wait_until(lambda: notes("thinking", turn=handle.turn_id), "the model was asked")
    assert handle.cancel("enough") == "requested"
    result = handle.result(timeout_s=60)
    assert (result.ending, result.error) == (Ending.CANCELLED, "enough")
    open_gate(sid)
    calm.done(handle)
    calm.all_events(handle)
    assert not notes("start", turn=handle.turn_id)


def test_a_turn_whose_tool_runs_is_cancelled(calm: World, sid: str) -> None:
    handle = calm.client.submit(sid, script([("write", {"name": sid, "gate": sid}), ("write", {"name": "never"})]))
    wait_until(lambda: notes("start", turn=handle.turn_id), "the tool started")
    handle.cancel()
    assert handle.result(timeout_s=60).ending is Ending.CANCELLED
    open_gate(sid)
    wait_until(lambda: notes("stop", turn=handle.turn_id), "the abandoned tool ended")
    assert len(notes("start", turn=handle.turn_id)) == 1
    # Its lane is free again.
    assert calm.client.submit(sid, script([("write", {"name": sid})])).result(timeout_s=60).text == "done"


def test_a_deadline_ends_a_turn_whose_tool_does_not_listen(calm: World, sid: str) -> None:
    handle = calm.client.submit(sid, script([("write", {"name": sid, "gate": sid})]), limits={"timeout_s": 6})
    wait_until(lambda: notes("start", turn=handle.turn_id), "the tool started")
    result = handle.result(timeout_s=60)
    assert (result.ending, result.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    assert 6000 <= result.elapsed_ms < 36_000
    open_gate(sid)


@pytest.mark.parametrize("gap_s", [0.0, 0.02])
def test_followers_resume_from_any_number(calm: World, sid: str, gap_s: float) -> None:
    words = " ".join(f"word{n}" for n in range(20))
    handle = calm.client.submit(sid, script([("read", {"name": sid})], final=words, words_s=gap_s))
    live = list(handle.events(timeout_s=60))
    kept = calm.all_events(handle)
    assert live == kept
    for after in (0, 3, len(kept) - 1):
        assert list(handle.events(after=after, timeout_s=2)) == kept[after:]
    assert "".join(str(e.data["text"]) for e in kept if e.kind is EventKind.TEXT_DELTA) == words


def test_many_sessions_at_once(calm: World, sid: str) -> None:
    handles = [
        calm.client.submit(
            f"{sid}-{n % 10}", script([("read", {"name": str(n)}), ("write", {"name": str(n)})], final=str(n))
        )
        for n in range(40)
    ]
    assert [handle.result(timeout_s=60).text for handle in handles] == [str(n) for n in range(40)]
    for handle in handles:
        calm.done(handle)
        calm.all_events(handle)
        assert calm.row_counts(handle) == {"messages": 2, "decisions": 1, "calls": 1}


def test_a_request_key_from_many_threads_is_one_turn(calm: World, sid: str) -> None:
    found: list[str] = []
    message = script([("write", {"name": sid})])

    def submit() -> None:
        found.append(calm.client.submit(sid, message, request_key=f"key-{sid}").turn_id)

    threads = [threading.Thread(target=submit) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10
    assert len(set(found)) == 1
    assert calm.client.handle(found[0]).result(timeout_s=60).text == "done"
    assert len(notes("start", name=sid)) == 1

"""A cancel is seen by running calls at once, in every kind of worker, long before their next beat in 20 s."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from brainq.contracts.status import Ending, TraceStatus
from tests.support.brains.diary import notes
from tests.support.brains.obedient import script
from tests.support.elsewhere import Elsewhere
from tests.support.wait import wait_until
from tests.support.watch import started
from tests.support.world import World

SEEN_WITHIN_S = 10.0  # some 50 ms on a free machine


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("tool", ["watch_read", "watch_write", "watch_apart"])
def test_a_token_reads_expired_before_the_next_beat(
    narrow: World, other: Elsewhere, sid: str, tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = narrow.client.submit(sid, script([(tool, {})]))
    started(turn)
    other.handle(turn, "cancel", "enough")
    returned_at = time.monotonic()
    (seen,) = wait_until(lambda: notes("expired", turn=turn.turn_id), "the tool saw its token expire")
    took_s = seen["at"] - returned_at
    with capsys.disabled():
        print(f"\n{tool}: seen {took_s * 1000:+.0f} ms after the cancel returned", end=" ")
    assert took_s < SEEN_WITHIN_S
    assert seen["reason"] == "cancelled"
    result = turn.result(timeout_s=60)
    assert result.ending is Ending.CANCELLED
    # It returned what it had within the grace, so its end is known.
    assert narrow.status(turn) == TraceStatus.COMPLETED


def test_two_reads_of_one_wave_see_it_together(narrow: World, other: Elsewhere, sid: str) -> None:
    turn = narrow.client.submit(sid, script([("watch_read", {}), ("watch_apart", {})]))

    def both(what: str) -> list[dict[str, Any]]:
        return wait_until(lambda: rows if len(rows := notes(what, turn=turn.turn_id)) == 2 else [], f"both: {what}")

    both("start")
    other.session(sid, "interrupt")
    returned_at = time.monotonic()
    assert max(row["at"] for row in both("expired")) - returned_at < SEEN_WITHIN_S
    assert turn.result(timeout_s=60).ending is Ending.CANCELLED


def test_a_process_that_does_not_listen_is_killed(narrow: World, other: Elsewhere, sid: str) -> None:
    turn = narrow.client.submit(sid, script([("deaf", {})]))
    pid = started(turn)["pid"]
    assert is_alive(pid)
    other.handle(turn, "cancel")
    wait_until(lambda: not is_alive(pid), "its process is gone")
    assert turn.result(timeout_s=60).ending is Ending.CANCELLED
    assert narrow.status(turn) == TraceStatus.UNKNOWN
    # Its slot and its lane are free: the only serial slot there is takes the next write.
    after = narrow.client.submit(sid, script([("write", {"name": "w"})], final="after"))
    assert after.result(timeout_s=60).text == "after"


@pytest.mark.full
def test_a_thread_that_does_not_listen_is_left_behind(narrow: World, other: Elsewhere, sid: str) -> None:
    """The turn ends after the grace; what the write did in the end is told to the session's next turn."""
    turn = narrow.client.submit(sid, script([("write", {"name": "w", "sleep_s": 8.0})]))
    started(turn)
    other.handle(turn, "cancel")
    assert turn.result(timeout_s=60).ending is Ending.CANCELLED
    assert not notes("stop", turn=turn.turn_id)
    assert narrow.status(turn) == TraceStatus.UNKNOWN
    # The next write of the session waits for the lane, which is kept until the first one has ended after all.
    after = narrow.client.submit(sid, script([("write", {"name": "x"})], final="after"))
    assert after.result(timeout_s=60).text == "after"
    (stop,) = notes("stop", turn=turn.turn_id)
    assert stop["at"] < started(after)["at"]
    assert [row.state for row in narrow.wiring.store.calls.of_turn(turn.turn_id)] == ["done"]
    second = notes("thinking", turn=after.turn_id, step=2)[0]
    (notice,) = [text for text in second["others"] if text.startswith("[Notice")]
    assert "write w ok" in notice

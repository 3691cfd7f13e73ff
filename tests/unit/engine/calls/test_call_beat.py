"""A call's beat tells readers how far the call is."""

from __future__ import annotations

from typing import cast

import pytest

from brainq.adapters.redis.calls import RedisCalls
from brainq.contracts.call import Progress
from brainq.contracts.claim import CallClaim
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.calls.run import CallBeat
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.errors import InvalidInput
from tests.support.wait import wait_until
from tests.unit.engine.calls.fakes import Calls, Rig
from tests.unit.engine.calls.support import context_for


def beating(calls: Calls, said: list[Progress]) -> CallBeat:
    claim = cast(CallClaim, None)  # only handed on
    return CallBeat(cast(RedisCalls, calls), claim, lambda: said[-1] if said else None)


def test_the_newest_word_is_told_once() -> None:
    calls, said = Calls([]), list[Progress]()
    beat = beating(calls, said)
    assert beat.beat() == "OK"
    said += [Progress(done=1), Progress(done=2, total=3, message="rows")]
    beat.beat()
    beat.beat()
    assert calls.progress == [(1, said[-1])]
    said.append(Progress(done=2, total=3, message="rows"))
    beat.beat()
    assert calls.progress == [(1, said[-2]), (2, said[-1])], "said again, it was done again"


def test_what_redis_may_have_heard_is_said_again_under_its_number() -> None:
    calls, said = Calls([]), [Progress(done=1)]
    beat = beating(calls, said)
    calls.fails = ConnectionError("away")
    with pytest.raises(ConnectionError):
        beat.beat()
    calls.fails = None
    said.append(Progress(done=2))
    beat.beat()
    beat.beat()
    assert calls.progress == [(1, said[0]), (2, said[1])]


def test_of_a_call_that_is_lost_nothing_is_told() -> None:
    calls = Calls([])
    calls.word = "LOST"
    assert beating(calls, [Progress(done=1)]).beat() == "LOST"
    assert calls.progress == []


def test_what_a_running_tool_says_is_told(brain: Brain, rig: Rig) -> None:
    @brain.tool(effect=Effect.READ_ONLY)
    def count(ctx: RunContext) -> str:  # pyright: ignore[reportUnusedFunction]
        ctx.progress(1, 2, "half")
        rig.beats.beat_now()
        wait_until(lambda: rig.calls.progress, "it is told")
        return "counted"

    rig.claim("count", Effect.READ_ONLY)
    rig.run()
    assert rig.calls.progress == [(1, Progress(done=1, total=2, message="half"))]


def test_what_is_no_number_is_refused_and_a_long_line_is_cut() -> None:
    context = context_for(DeadlineToken(5.0))
    for done in (float("nan"), float("inf"), True, "3"):
        with pytest.raises(InvalidInput, match="done"):
            context.progress(done)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="total"):
        context.progress(1, float("nan"))
    assert context.newest_progress is None
    context.progress(1, message="a\nb  c " + "x" * 1000)
    assert context.newest_progress is not None
    assert context.newest_progress.message.startswith("a b c xxx")
    assert len(context.newest_progress.message) == 300

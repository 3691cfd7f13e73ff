"""A cancel reaches running calls at once, long before their next beat, and says of each what is sure."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, Effect, RunContext, ScriptedProvider
from brainq.contracts.status import Ending, TraceStatus
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.results import Partial
from tests.support.pump import Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]
OUTCOME = {TraceStatus.COMPLETED: "success", TraceStatus.UNKNOWN: "unknown"}
SLOW = {"lease_s": 60.0, "beat_s": 20.0}  # no beat comes in time to tell


class Tool:
    """What a tool under test saw."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.expired_at = 0.0

    def wait(self, context: RunContext) -> str:
        self.running.set()
        context.token.wait(60.0)
        self.expired_at = time.monotonic()
        return context.token.reason


def brain_of(tool: Tool, effect: Effect, how: str) -> Brain:
    brain = Brain("cancelled", ScriptedProvider([calls(("work", {})), says("done")]))

    @brain.tool(effect=effect)
    def work(context: RunContext) -> Partial:  # pyright: ignore[reportUnusedFunction]
        reason = tool.wait(context)
        if how == "gives up":
            raise TimeoutError(reason)
        return Partial(reason)

    return brain


@pytest.mark.parametrize(
    ("effect", "how", "status"),
    [
        (Effect.READ_ONLY, "returns", TraceStatus.COMPLETED),
        (Effect.READ_ONLY, "gives up", TraceStatus.CANCELLED),
        (Effect.LOCAL_WRITE, "returns", TraceStatus.COMPLETED),
        (Effect.LOCAL_WRITE, "gives up", TraceStatus.UNKNOWN),
    ],
)
@pytest.mark.parametrize("gap", [False, True], ids=["heard", "in a gap"])
def test_a_token_reads_as_expired_within_a_second(
    pumps: Pumps, effect: Effect, how: str, status: TraceStatus, gap: bool
) -> None:
    tool = Tool()
    pump = pumps(brain_of(tool, effect, how), **SLOW)
    handle = pump.submit("s1", "Work.")
    pump.drain("brainq.turns")
    running = threading.Thread(target=pump.drain)
    running.start()
    assert tool.running.wait(60)
    client: Any = pump.wiring.state.redis
    wait_until(lambda: dict(client.pubsub_numsub(pump.wiring.state.keys.stops)).popitem()[1], "somebody listens")
    if gap:
        assert client.execute_command("CLIENT", "KILL", "TYPE", "pubsub"), "the fault fired"
    cancelled_at = time.monotonic()
    handle.cancel()
    running.join(60)
    assert tool.expired_at - cancelled_at < 10.0, "it heard of it before its next beat"

    result = pump.finish(handle)
    assert result.ending is Ending.CANCELLED
    [entry] = pump.wiring.state.calls.trace("s1", handle.turn_id)
    assert entry.status == status
    [message] = [m for m in pump.wiring.store.transcripts.of_turn(handle.turn_id) if m.role == "tool"]
    match status:
        case TraceStatus.COMPLETED:
            # The listener that was there may be an earlier test's, and this one's connect after the cancel: a gap.
            assert message.content.startswith(("cancelled\n", "CLOSED\n"))
        case TraceStatus.CANCELLED:
            assert re.fullmatch(r"Cancelled after \d+\.\d s\.", message.content)
        case _:
            assert re.fullmatch(r"Cancelled after .*; check before repeating it\.", message.content)
    kept = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert [row.outcome_kind for row in kept] == ([] if effect.is_read else [OUTCOME[status]])

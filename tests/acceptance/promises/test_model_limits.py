"""A model's limit over a real fleet: four coordinator processes, one of them killed, and a service that counts. One
tenant fills the line; another's turn is in its next round."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from brainq.contracts.status import Ending
from tests.integration.engine.models.test_wire import openai_words
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.arrivals import most_in_a_window
from tests.support.wait import wait_until
from tests.support.world import World

MOST, TURNS, WINDOW_S = 60, 130, 60.0
KILLED_AFTER = 40  # requests
OTHERS_TEXT = "hi from another tenant"


@pytest.mark.full
@pytest.mark.timeout(400)
def test_sixty_a_minute_of_four_coordinators_are_never_sixty_one(tmp_path: Path) -> None:
    arrivals: list[float] = []

    def count(exchange: Exchange) -> None:
        arrivals.append(time.monotonic())
        openai_words(exchange, "hello")

    with WireServer() as wire:
        wire.otherwise = count
        world = World(
            tmp_path,
            workers={"coordinator": 4, "parallel": 0, "serial": 0},
            environment={
                "BRAINQ_APP": "tests.support.brains.limited:brain",
                "BRAINQ_RATES": f"openai:m={MOST}/min",
                "OPENAI_BASE_URL": f"{wire.url}/v1",
                "OPENAI_API_KEY": "k",
            },
            threads={"coordinator": 4},
        )
        try:
            world.start()
            turns = [world.client.submit(f"acme:{i}", "hi") for i in range(TURNS)]
            wait_until(lambda: len(arrivals) >= KILLED_AFTER, "some have been asked", 60)
            first = world.fleet.of_pool("coordinator")[0]
            assert first.process is not None
            world.kill_the("coordinator", first.process.pid)
            wait_until(lambda: world.wiring.state.rates.models()[0].waiting > MOST, "more than a round wait", 60)
            asked = len(wire.bodies)
            turns.append(world.client.submit("b:1", OTHERS_TEXT))
            endings = Counter(turn.result(timeout_s=300).ending for turn in turns)
        finally:
            world.stop()
    assert endings == {Ending.COMPLETED: TURNS + 1}
    assert len(arrivals) > TURNS
    others = next(i for i, body in enumerate(wire.bodies) if OTHERS_TEXT in json.dumps(body))
    before_the_other = others - asked
    assert before_the_other < MOST, "it waited behind all of the other tenant's"
    most = most_in_a_window(arrivals, WINDOW_S)
    print(
        json.dumps(
            {
                "requests": len(arrivals),
                "most a minute": most,
                "took_s": arrivals[-1] - arrivals[0],
                "before the other": before_the_other,
            }
        )
    )
    assert most_in_a_window(arrivals, WINDOW_S) <= MOST
    # The limit is used: three bursts, and not one request at a time.
    assert arrivals[-1] - arrivals[0] < 3 * (WINDOW_S + 5)

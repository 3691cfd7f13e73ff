"""P16, with many beside it: the turns that share a process with one that kills it end in their time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, StopReason
from tests.acceptance.promises.test_p16_poison import supervised
from tests.support.brains.diary import notes, open_gate
from tests.support.wait import wait_until
from tests.support.world import World

INNOCENTS = 60
MODEL_S = 12.0
LIMIT_S = 120
DEFAULT_PACE = {"lease_s": 10.0, "beat_s": 3.0, "sweep_s": 1.0, "rering_s": 5.0}


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(
        tmp_path_factory.mktemp("many"),
        environment={"BRAINQ_APP": "tests.support.brains.poison:brain"},
        threads={"coordinator": 100},
        pace=DEFAULT_PACE,
    )
    try:
        yield made.start()
    finally:
        made.stop()


def submit(world: World, session: str, **orders: Any) -> TurnHandle:
    return world.client.submit(session, json.dumps(orders), limits={"timeout_s": LIMIT_S})


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kills", [{"kill": True}, {"model_s": MODEL_S / 2, "reply_kills": True}], ids=["at once", "amid a reply"]
)
def test_sixty_turns_beside_one_that_kills_end_in_their_time(world: World, kills: dict[str, Any]) -> None:
    with supervised(world) as died:
        innocents = [submit(world, f"calm{n}", gate="together", model_s=MODEL_S) for n in range(INNOCENTS)]
        poison = submit(world, "poison", gate="together", **kills)
        for handle in (*innocents, poison):
            wait_until(lambda h=handle: notes("prompt", turn=h.turn_id), "all are at work", 60)
        open_gate("together")
        results = [handle.result(timeout_s=400) for handle in innocents]
        end = poison.result(timeout_s=400)
    assert [(result.ending, result.text) for result in results] == [(Ending.COMPLETED, "well")] * INNOCENTS
    assert (end.ending, end.stop_reason) == (Ending.FAILED, StopReason.LOST)
    assert end.error is not None
    assert "killed by signal 9, 2 times" in end.error
    assert died == ["coordinator"] * 2
    asked = [len(notes("asked", turn=handle.turn_id)) for handle in innocents]
    assert sum(asked) <= 4 * INNOCENTS, "two workers died, and a process that a few of them shared"

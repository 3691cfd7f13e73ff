"""The cap of a brain holds over the fleet while a coordinator is killed, and keeps no turn of another brain waiting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending
from tests.support.brains.capped import APP, CAP
from tests.support.brains.diary import notes, open_gate
from tests.support.brains.obedient import script
from tests.support.wait import wait_until
from tests.support.world import World

EACH = 12


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        tmp_path,
        workers={"coordinator": 2},
        environment={"BRAINQ_APP": APP, "BRAINQ_MAX_LIVE_TURNS": "40", "BRAINQ_MAX_LIVE_TURNS_A_TENANT": "40"},
    )


def most_at_once(world: World, handles: Sequence[TurnHandle]) -> int:
    """By Redis' clock. One that begins when another ends does so in the same script, so at the same time."""
    moves: list[tuple[int, int]] = []
    for handle in handles:
        for event in world.all_events(handle):
            if event.kind in (EventKind.TURN_ACTIVE, EventKind.TURN_CLOSING):
                moves.append((event.at_ms, 1 if event.kind is EventKind.TURN_ACTIVE else -1))
    live = most = 0
    for _, change in sorted(moves):
        live += change
        most = max(most, live)
    return most


def why_queued(world: World, handle: TurnHandle) -> list[str]:
    return [str(event.data["why"]) for event in world.all_events(handle) if event.kind is EventKind.TURN_QUEUED]


@pytest.mark.full
def test_a_cap_holds_while_a_coordinator_dies_and_another_brains_turns_do_not_wait(world: World) -> None:
    redis, keys = world.wiring.state.redis, world.wiring.state.keys
    try:
        world.start()
        wait_until(lambda: redis.hget(keys.room, "brain lab") == str(CAP), "a sweeper said what the cap is")
        message = script(words_s=0.02, final="one two three four")
        held = script(gate="held", final="one")
        desk: list[TurnHandle] = []
        lab: list[TurnHandle] = []
        for n in range(EACH):
            lab.append(world.client.submit(f"a:lab{n}", held if n == EACH // 2 else message, brain="lab"))
            desk.append(world.client.submit(f"a:desk{n}", message, brain="desk"))
        victim = lab[EACH // 2]
        (thinks,) = wait_until(lambda: notes("thinking", turn=victim.turn_id), "it thinks, and is held")
        world.kill_the("coordinator", thinks["pid"])
        open_gate("held")
        world.launch_dead()
        for handle in (*desk, *lab):
            assert handle.result(timeout_s=120).ending is Ending.COMPLETED
        assert len(notes("thinking", turn=victim.turn_id)) > 1, "another one went on with it"
        assert most_at_once(world, lab) == CAP
        assert [why_queued(world, handle) for handle in desk] == [[]] * EACH
        assert {why for handle in lab for why in why_queued(world, handle)} == {"brain"}
        for handle in (*desk, *lab):
            world.done(handle)
        assert [key for key in redis.keys("*{room}*") if key != keys.room] == []
    finally:
        world.stop()

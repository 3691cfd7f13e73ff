"""A burst of turns that write, over a model's limit and over real pools: windows of seconds, so that many pass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from brainq.contracts.event import TurnEvent
from brainq.contracts.status import Ending
from brainq.contracts.turn import LimitsFields
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.brains.short_window import APP, WINDOW_S
from tests.support.wait import wait_until
from tests.support.world import World

MOST, TURNS = 10, 34
TIMEOUT_S = 16.0  # of each turn: a few windows, and less than the burst takes


@pytest.mark.full
@pytest.mark.timeout(300)
def test_of_a_burst_nothing_fails_what_has_written_goes_first_and_another_tenant_is_next(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        environment={"BRAINQ_APP": APP, "BRAINQ_RATES": f"scripted:*={MOST}/min", WINDOW_S: "3.5"},
        pace={"lease_s": 10.0, "beat_s": 1.0},
    )
    limits: LimitsFields = {"timeout_s": TIMEOUT_S}
    try:
        world.start()
        big = [world.client.submit(f"big:{i}", script([("write", {})]), limits=limits) for i in range(TURNS)]
        wait_until(
            lambda: len({turn.turn_id for turn in big if told_to_wait(turn.events_so_far())}) >= TURNS - 2 * MOST,
            "most of them stand in line",
            60,
        )
        small = world.client.submit("small:1", script(), limits=limits)
        wait_until(lambda: told_to_wait(small.events_so_far()) or asked(small.turn_id), "it stands in line", 60)
        before = len(diary.notes("thinking"))
        wait_until(lambda: asked(small.turn_id), "the other tenant's is asked", 120)
        between = [note["turn"] for note in diary.notes("thinking")[before:]]
        results = [turn.result(timeout_s=240) for turn in [small, *big]]
    finally:
        world.stop()
    assert Counter(result.ending for result in results) == {Ending.COMPLETED: TURNS + 1}
    # What the limit let through was used: no request was made twice, or for a turn that came to nothing.
    assert len(diary.notes("thinking")) == 2 * TURNS + 1
    assert len(diary.notes("write")) == TURNS
    until = between.index(small.turn_id) if small.turn_id in between else 0
    overtaken = [begun_between_write_and_answer(turn.turn_id) for turn in big]
    print({"before the other": until, "begun before what had written": max(overtaken)})
    assert until < 2 * MOST, "it waited behind more than two rounds of the other tenant's"
    assert max(overtaken) < 2 * MOST, "what had not begun went before what had written"


def told_to_wait(events: tuple[TurnEvent, ...]) -> bool:
    return any("waits_for" in event.data for event in events)


def asked(turn_id: str) -> bool:
    return bool(diary.notes("thinking", turn=turn_id))


def begun_between_write_and_answer(turn_id: str) -> int:
    """How many turns asked for the first time meanwhile."""
    notes = diary.notes()
    wrote = next(i for i, note in enumerate(notes) if note["what"] == "write" and note["turn"] == turn_id)
    answered = next(
        i for i, note in enumerate(notes) if note["what"] == "thinking" and (note["turn"], note["step"]) == (turn_id, 2)
    )
    return sum(note["what"] == "thinking" and note["step"] == 1 for note in notes[wrote:answered])

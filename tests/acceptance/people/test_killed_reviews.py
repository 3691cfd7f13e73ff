"""Turns with a history of their own: whoever is killed, the session keeps their outcome once, and nothing else."""

from __future__ import annotations

import pytest

from brainq.contracts.status import Ending
from tests.support.brains.diary import notes, open_gate, order
from tests.support.watch import at_place
from tests.support.world import World


@pytest.mark.full
@pytest.mark.parametrize("kind", ["review", "compact"])
@pytest.mark.parametrize("side", ["before", "after"])
def test_the_coordinator_dies_at_its_end(stormy: World, sid: str, kind: str, side: str) -> None:
    stormy.client.submit(sid, "the question").result(timeout_s=60)
    turn_id = f"t-{sid}"
    order(f"end.{side}.{turn_id}", f"e-{sid}")
    turn = stormy.client.submit(sid, "look at it", turn_id=turn_id, kind="review" if kind == "review" else "compact")
    held = at_place(turn, f"end.{side}")
    stormy.kill_the("coordinator", held["pid"])
    open_gate(f"e-{sid}")
    assert turn.result(timeout_s=60).ending is Ending.COMPLETED
    after = stormy.client.submit(sid, "and now")
    after.result(timeout_s=60)
    others = notes("thinking", turn=after.turn_id)[0]["others"]
    assert not [text for text in others if text == "look at it"]
    assert len([text for text in others if "heard: look at it" in text]) == (1 if kind == "review" else 0)
    stormy.all_events(turn)

"""Two brains in one fleet of real workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainq.client.handle import TurnHandle
from tests.support.brains import diary, pair
from tests.support.wait import wait_until
from tests.support.world import World


def told(handle: TurnHandle) -> dict[str, str]:
    return {call.tool: call.result or "" for call in handle.calls()}


@pytest.mark.full
def test_each_brains_turns_have_its_own_tools_steps_and_judges(tmp_path: Path) -> None:
    world = World(tmp_path, environment={"BRAINQ_APP": pair.APP}, pools=["all"])
    try:
        world.start()
        by_default = world.client.submit("s1", "Where?")
        in_lab = world.client.submit("s2", "Where?", brain="lab", prompt_id="strictly")
        spoken, lab_said = by_default.result(timeout_s=60), in_lab.result(timeout_s=60)
        world.done(by_default)
        world.done(in_lab)
        assert (spoken.text, spoken.brain) == ("The desk has spoken.", "desk")
        assert (lab_said.text, lab_said.brain) == ("The lab has spoken.", "lab")

        workers = {worker.process.pid for worker in world.fleet.workers if worker.process is not None}
        name, brain, pid = told(by_default)["where"].split()
        assert (name, brain, int(pid) in workers) == ("desk", "desk", True)
        assert told(by_default)["ask_lab"] == "The lab has spoken."
        name, brain, pid = told(in_lab)["where"].split()
        assert (name, brain, int(pid) in workers) == ("lab", "lab", False)

        store = world.wiring.store
        steps = {note["turn"] for note in diary.notes("step")}
        turns = {row.turn_id: store.turns.request(row.turn_id) for row in store.turns.list()}
        of_lab = {turn_id for turn_id, request in turns.items() if request and request.brain == "lab"}
        assert len(of_lab) == 2, "its own, and the desk's child"
        assert steps == of_lab
        wait_until(lambda: [row.state for row in store.judgements.of_turn(in_lab.turn_id)] == ["done"], "it is judged")
        assert [(row.judge, row.score) for row in store.judgements.of_turn(in_lab.turn_id)] == [("strict", 0.25)]
        assert store.judgements.of_turn(by_default.turn_id) == []
    finally:
        world.stop()

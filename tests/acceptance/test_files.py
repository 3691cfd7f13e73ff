"""A picture through a fleet of real workers: sent, made by tools in two pools, shown to the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainq import File
from tests.support.blobs import png
from tests.support.brains import seeing
from tests.support.world import World


@pytest.mark.full
def test_the_model_sees_every_picture_as_it_was(tmp_path: Path) -> None:
    world = World(tmp_path, environment={"BRAINQ_APP": seeing.APP}, pools=["all"])
    pictures = [File(png(), name="plan.png"), File(png(7), name="chart.png"), File(png(8), name="wall.png")]
    seen = [f"{file.name}:{file.attachment.sha256[:8]}" for file in pictures]
    try:
        world.start()
        handle = world.client.submit("s1", "Look.", attachments=[pictures[0]])
        assert handle.result(timeout_s=60).text == " ".join(seen)
        again = world.client.submit("s1", "Again.")
        assert again.result(timeout_s=60).text == " ".join([*seen, *seen[1:]])
        for file in pictures:
            assert handle.file(file.attachment.sha256) == file
    finally:
        world.stop()

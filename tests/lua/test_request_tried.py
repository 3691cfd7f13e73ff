"""request_tried.lua: how a try ended."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_request_try import Client


def test_the_end_of_a_try_that_was_tried_again_since_is_not_the_next_ones(rig: Rig) -> None:
    client = Client(rig)
    first = client.begin(0)
    assert client.begin(1) == first
    assert client.end(first, 0, "cut") == "NONE"
    assert client.end(first, 1, "sent") == "NOTED"
    assert client.end(first, 1, "cut") == "NONE"
    assert client.end("k9", 0, "cut") == "NONE"

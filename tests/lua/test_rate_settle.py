"""rate_settle.lua: what came of a request, and what its service said of its limits."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_rate_take import settle, take


def test_what_is_learned_is_told_to_all_once(rig: Rig) -> None:
    with rig.client.pubsub() as heard:
        heard.subscribe(rig.keys.limited)
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        assert settle(rig, "p0", requests=60, tokens=90_000) == ["LEARNED"]
        assert heard.get_message(timeout=5)["data"] == "openai:gpt"
        assert settle(rig, "p1", requests=60, tokens=90_000) == ["LEARNED"]
        assert settle(rig, "p2", stop_ms=5_000) == ["LEARNED"]
        assert heard.get_message(timeout=5)["data"] == "openai:gpt"
        assert heard.get_message() is None
    rule = rig.client.hgetall(rig.keys.rate("openai:gpt", "rule"))
    assert (rule["requests"], rule["tokens"]) == ("60", "90000")
    assert rig.client.zrange(rig.keys.limited, 0, -1) == ["openai:gpt"]


def test_a_shorter_stop_does_not_end_a_longer_one(rig: Rig) -> None:
    settle(rig, "p0", stop_ms=20_000)
    settle(rig, "p1", stop_ms=1_000)
    assert take(rig, "w0")[:2] == ["WAIT", 20_000]


def test_a_place_whose_window_is_over_is_settled_no_more(rig: Rig) -> None:
    take(rig, "p0", requests_most=1, tokens=10)
    rig.pass_ms(100_000)
    take(rig, "p1", requests_most=1, tokens=10)
    assert settle(rig, "p0", used=500, answered_ms=0) == ["OK"]
    assert rig.client.hget(rig.keys.rate("openai:gpt", "rule"), "sum") == "10"

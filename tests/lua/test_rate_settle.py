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


def test_after_a_stop_that_was_cut_short_one_request_tries_and_its_answer_lifts_it(rig: Rig) -> None:
    settle(rig, "p0", stop_ms=300_000, probes=1)
    assert take(rig, "w0")[:2] == ["WAIT", 300_000]
    rig.pass_ms(300_000)
    assert take(rig, "w0") == ["GO"]
    assert take(rig, "w1")[:3] == ["WAIT", 60_000, "stop"]
    settle(rig, "w0", used=5)
    assert take(rig, "w1") == ["GO"]
    assert take(rig, "w2") == ["GO"]


def test_a_try_that_is_refused_stops_all_again_and_one_that_is_lost_is_followed_by_another(rig: Rig) -> None:
    settle(rig, "p0", stop_ms=300_000, probes=1)
    rig.pass_ms(300_000)
    take(rig, "w0")
    settle(rig, "w0", stop_ms=300_000, probes=1)
    assert take(rig, "w1")[:2] == ["WAIT", 300_000]
    rig.pass_ms(300_000)
    assert take(rig, "w1") == ["GO"]
    rig.pass_ms(60_000)
    assert take(rig, "w2") == ["GO"]
    assert take(rig, "w3")[0] == "WAIT"


def test_a_stop_that_was_not_cut_short_needs_no_try(rig: Rig) -> None:
    settle(rig, "p0", stop_ms=20_000)
    rig.pass_ms(20_000)
    assert [take(rig, f"w{i}") for i in range(3)] == [["GO"]] * 3

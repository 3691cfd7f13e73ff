"""The scripts that settle, leave and report permits of a model's limits."""

from __future__ import annotations

import heapq
from typing import Any

import pytest

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, settle, take
from tests.lua.test_rate_take import take_once as rate_take_once
from tests.lua.test_rate_tenants import MOST, comes, fill, flood, in_line, round_of
from tests.lua.test_rate_tenants import ask as rate_leave_ask
from tests.lua.test_rate_tenants import ask as rate_ranks_ask

# rate_take.lua, rate_settle.lua: a service that counts more tokens than are estimated.


WINDOW, ESTIMATE = 20_000, 400


def ask(rig: Rig, place: str, output: int = 0) -> list[Any]:
    return take(rig, place, tokens_most=WINDOW, tokens=ESTIMATE + output, estimated=ESTIMATE)


def answered(rig: Rig, place: str, counted: int, output: int = 0) -> list[Any]:
    return settle(rig, place, used=counted + output, estimated=ESTIMATE, counted=counted, answered_ms=0)


def rule(rig: Rig, field: str) -> str | None:
    return rig.client.hget(rig.keys.rate("openai:gpt", "rule"), field)


@pytest.mark.parametrize("factor", [1.0, 1.77, 3.9])
def test_a_first_burst_stays_within_the_window_of_a_service_that_counts_more(rig: Rig, factor: float) -> None:
    """Sixty ask at once; each answer takes six seconds; who waits comes when it was told to."""
    counts = round(ESTIMATE * factor)
    due = {f"p{i:02d}": 0 for i in range(60)}
    under_way: list[tuple[int, str]] = []
    spent, at = 0, 0
    while (now := min([*due.values(), *(when for when, _ in under_way)])) < 60_000:
        rig.pass_ms(now - at)
        at = now
        for when, place in tuple(under_way):
            if when <= at:
                under_way.remove((when, place))
                answered(rig, place, counts)
        for place in [place for place, when in due.items() if when <= at]:
            reply = ask(rig, place)
            if reply == ["GO"]:
                del due[place]
                under_way.append((at + 6_000, place))
                spent += counts
            else:
                due[place] = at + reply[1]
    assert 0.75 * WINDOW < spent <= WINDOW


def test_until_it_is_known_a_quarter_goes_and_the_others_look_again_soon(rig: Rig) -> None:
    replies = [ask(rig, f"p{i}") for i in range(14)]
    assert replies == [["GO"]] * 12 + [["WAIT", 3_000, "tokens", WINDOW]] * 2
    for i in range(12):
        answered(rig, f"p{i}", ESTIMATE)
    rig.pass_ms(3_000)
    assert ask(rig, "p12") == ["GO"]


def test_when_it_is_known_who_waits_is_told_its_time(rig: Rig) -> None:
    for i in range(12):
        ask(rig, f"p{i}")
        answered(rig, f"p{i}", ESTIMATE)
    replies = [ask(rig, f"q{i}") for i in range(40)]
    waits = [reply[1] for reply in replies if reply != ["GO"]]
    assert waits
    assert min(waits) > COUNTS_MS - 6_000


def test_an_answer_is_learned_from_once_and_a_high_estimate_makes_none_cheaper(rig: Rig) -> None:
    for i in range(40):
        ask(rig, f"p{i}")
        answered(rig, f"p{i}", 100)
        answered(rig, f"p{i}", 100)
    assert rule(rig, "ratio_n") == "40"
    before = int(rule(rig, "sum") or 0)
    ask(rig, "next")
    assert int(rule(rig, "sum") or 0) - before == ESTIMATE


# rate_settle.lua: what came of a request, and what its service said of its limits.


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


# rate_report.lua: what a stream that goes on has told of its usage.


def report(rig: Rig, place: str, counted: int, output: int = 0, is_all: int = 1) -> list[Any]:
    return rig.run(
        "rate_report",
        **{part: rig.keys.rate("openai:gpt", part) for part in ("places", "rule")},
        place=place,
        used=counted + output,
        estimated=ESTIMATE,
        counted=counted,
        is_all=is_all,
    )


def test_a_streams_first_report_tells_what_its_estimate_was_worth(rig: Rig) -> None:
    ask(rig, "p0", output=100)
    assert rule(rig, "sum") == str(4 * ESTIMATE + 100)
    assert report(rig, "p0", counted=500, output=100) == ["OK"]
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == ("600", "1")
    assert report(rig, "p0", counted=500, output=100) == ["OK"]
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == ("600", "1"), "run twice it is run once"


def test_a_report_of_an_answer_without_a_limit_only_raises(rig: Rig) -> None:
    ask(rig, "p0")
    report(rig, "p0", counted=500, is_all=0)
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == (str(4 * ESTIMATE), None)
    report(rig, "p0", counted=3_000, is_all=0)
    assert (rule(rig, "sum"), rule(rig, "ratio_n")) == ("3000", "1")


def test_a_report_of_a_place_that_counts_no_more_changes_nothing(rig: Rig) -> None:
    assert report(rig, "p0", counted=500) == ["GONE"]
    assert rule(rig, "sum") is None


# rate_leave.lua: who wants no place any more leaves the line.


LEFT = ("line", "order", "due", "rule", "tenants")


def leave(rig: Rig, session: str) -> list[str]:
    """It leaves, and once more: what the second time says."""
    return rig.run("rate_leave", **parts(rig), ticket=f"{session} t 1 step")


def once(rig: Rig, session: str) -> str:
    return rig.once("rate_leave", **parts(rig), ticket=f"{session} t 1 step")[0]


def parts(rig: Rig) -> dict[str, Any]:
    return {part: rig.keys.rate("openai:gpt", part) for part in LEFT}


def test_a_hundred_that_were_cancelled_hold_nobody_up(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 100)
    assert rate_leave_ask(rig, "acme:last")[1] > 10 * COUNTS_MS * 0.9
    for i in range(100):
        assert once(rig, f"acme:{i:03d}") == "LEFT"
    assert in_line(rig) == ["acme:last"]
    assert rate_leave_ask(rig, "acme:last")[:2] == ["WAIT", COUNTS_MS]
    rig.pass_ms(COUNTS_MS)
    assert rate_leave_ask(rig, "acme:last") == ["GO"]


def test_who_leaves_leaves_once_and_who_never_stood_there_leaves_nothing(rig: Rig) -> None:
    fill(rig)
    rate_leave_ask(rig, "acme:2")
    rate_leave_ask(rig, "acme:4")
    leave(rig, "acme:4")  # and once more
    assert leave(rig, "acme:3") == ["NONE"]
    assert in_line(rig) == ["acme:2"]


# rate_take.lua: within a tenant what goes on goes before what has not begun.


HIGH, NORMAL, LOW = 1, 2, 3


def test_what_goes_on_goes_before_what_has_not_begun(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 30)
    for i in range(3):
        assert rate_ranks_ask(rig, f"acme:on{i}", rank=0)[:2] == ["WAIT", COUNTS_MS]
    assert in_line(rig)[:4] == ["acme:on0", "acme:on1", "acme:on2", "acme:000"]
    assert rate_ranks_ask(rig, "acme:009")[1] > COUNTS_MS  # it was to come in this round, and is told of a later one
    gone = round_of(rig)
    assert gone == [*(f"acme:on{i}" for i in range(3)), *(f"acme:{i:03d}" for i in range(MOST - 3))]


def test_what_has_not_begun_goes_by_its_priority_then_first_come(rig: Rig) -> None:
    fill(rig)
    for rank in (LOW, NORMAL, HIGH):
        for i in range(2):
            rate_ranks_ask(rig, f"acme:{rank}{i}", rank=rank)
    assert in_line(rig) == ["acme:10", "acme:11", "acme:20", "acme:21", "acme:30", "acme:31"]
    assert rate_ranks_ask(rig, "acme:30", rank=HIGH)[0] == "WAIT"  # it has its place already
    assert in_line(rig)[4] == "acme:30"


def test_a_free_place_is_for_the_first_of_them(rig: Rig) -> None:
    fill(rig)
    rig.pass_ms(1_000)
    rate_ranks_ask(rig, "acme:new")
    rate_ranks_ask(rig, "acme:on", rank=0)
    rig.pass_ms(COUNTS_MS - 1_000)
    for i in range(MOST - 1):
        assert rate_ranks_ask(rig, f"acme:on{i}", rank=0) == ["GO"]
    assert rate_ranks_ask(rig, "acme:new")[0] == "WAIT"
    assert rate_ranks_ask(rig, "acme:on", rank=0) == ["GO"]


def test_no_tenant_goes_before_another_by_it(rig: Rig) -> None:
    fill(rig)
    for i in range(200):
        comes(rig, f"acme:{i:03d}", rank=0)
    assert rate_ranks_ask(rig, "b:1", rank=LOW)[:2] == ["WAIT", COUNTS_MS]
    assert "b:1" in round_of(rig)


def test_who_is_late_leaves_its_tenant_a_turn(rig: Rig) -> None:
    """What one that leaves stood for is its tenant's again, and those behind it come nearer."""
    fill(rig)
    flood(rig, "acme:", 20)
    flood(rig, "b:", 20)
    before = in_line(rig).index("acme:005")
    for i in range(5):
        assert rate_ranks_ask(rig, f"acme:00{i}", most_wait_ms=1)[0] == "LATE"
    assert "acme:005" in in_line(rig)[:2]
    assert before >= 8
    assert len(in_line(rig)) == 35


def test_tokens_of_those_ahead_count_by_who_is_ahead(rig: Rig) -> None:
    take(rig, "p0", tokens_most=100, tokens=100)
    take(rig, "first", tokens_most=100, tokens=10)
    take(rig, "on", tokens_most=100, tokens=95, rank=0)
    rig.pass_ms(COUNTS_MS)
    assert take(rig, "first", tokens_most=100, tokens=10)[0] == "WAIT"
    assert take(rig, "on", tokens_most=100, tokens=95, rank=0) == ["GO"]


def test_turns_of_two_steps_all_end_though_far_more_came_than_a_minute_takes(rig: Rig) -> None:
    """Each asks for its second place two seconds after it had its first, and has two minutes from there."""
    most, turns = 30, 101
    due = [(rig.now_ms, i, 1) for i in range(turns)]
    begun: dict[int, int] = {}
    took: list[int] = []
    while due:
        at, turn, step = heapq.heappop(due)
        rig.pass_ms(max(0, at - rig.now_ms))
        reply = take_once(rig, f"acme:{turn} t {step} step", most, 0 if step > 1 else NORMAL)
        if reply:
            heapq.heappush(due, (rig.now_ms + reply, turn, step))
        elif step == 1:
            begun[turn] = rig.now_ms
            heapq.heappush(due, (rig.now_ms + 2_000, turn, 2))
        else:
            took.append(rig.now_ms - begun[turn])
    assert len(took) == turns
    assert max(took) < 120_000
    assert rig.client.zcard(rig.keys.rate("openai:gpt", "order")) == 0


def take_once(rig: Rig, ticket: str, most: int, rank: int) -> int:
    """How long it waits still, ms; 0: it went."""
    reply = rate_take_once(rig, f"{ticket} p", ticket, rank=rank, requests_most=most)
    return 0 if reply == ["GO"] else reply[1]

"""rate_take.lua: within a tenant what goes on goes before what has not begun."""

from __future__ import annotations

import heapq

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, take
from tests.lua.test_rate_take import take_once as rate_take_once
from tests.lua.test_rate_tenants import MOST, ask, comes, fill, flood, in_line, round_of

HIGH, NORMAL, LOW = 1, 2, 3


def test_what_goes_on_goes_before_what_has_not_begun(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 30)
    for i in range(3):
        assert ask(rig, f"acme:on{i}", rank=0)[:2] == ["WAIT", COUNTS_MS]
    assert in_line(rig)[:4] == ["acme:on0", "acme:on1", "acme:on2", "acme:000"]
    assert ask(rig, "acme:009")[1] > COUNTS_MS  # it was to come in this round, and is told of a later one
    gone = round_of(rig)
    assert gone == [*(f"acme:on{i}" for i in range(3)), *(f"acme:{i:03d}" for i in range(MOST - 3))]


def test_what_has_not_begun_goes_by_its_priority_then_first_come(rig: Rig) -> None:
    fill(rig)
    for rank in (LOW, NORMAL, HIGH):
        for i in range(2):
            ask(rig, f"acme:{rank}{i}", rank=rank)
    assert in_line(rig) == ["acme:10", "acme:11", "acme:20", "acme:21", "acme:30", "acme:31"]
    assert ask(rig, "acme:30", rank=HIGH)[0] == "WAIT"  # it has its place already
    assert in_line(rig)[4] == "acme:30"


def test_a_free_place_is_for_the_first_of_them(rig: Rig) -> None:
    fill(rig)
    rig.pass_ms(1_000)
    ask(rig, "acme:new")
    ask(rig, "acme:on", rank=0)
    rig.pass_ms(COUNTS_MS - 1_000)
    for i in range(MOST - 1):
        assert ask(rig, f"acme:on{i}", rank=0) == ["GO"]
    assert ask(rig, "acme:new")[0] == "WAIT"
    assert ask(rig, "acme:on", rank=0) == ["GO"]


def test_no_tenant_goes_before_another_by_it(rig: Rig) -> None:
    fill(rig)
    for i in range(200):
        comes(rig, f"acme:{i:03d}", rank=0)
    assert ask(rig, "b:1", rank=LOW)[:2] == ["WAIT", COUNTS_MS]
    assert "b:1" in round_of(rig)


def test_who_is_late_leaves_its_tenant_a_turn(rig: Rig) -> None:
    """What one that leaves stood for is its tenant's again, and those behind it come nearer."""
    fill(rig)
    flood(rig, "acme:", 20)
    flood(rig, "b:", 20)
    before = in_line(rig).index("acme:005")
    for i in range(5):
        assert ask(rig, f"acme:00{i}", most_wait_ms=1)[0] == "LATE"
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

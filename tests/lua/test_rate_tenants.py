"""rate_take.lua: tenants take turns in the line for a model's places."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, take, take_once

MOST = 10


def ask(rig: Rig, session: str, **given: Any) -> list[Any]:
    """The turn of this session asks for its place."""
    return take(rig, f"{session} p", f"{session} t 1 step", **{"requests_most": MOST} | given)


def comes(
    rig: Rig, session: str, most: int | None = MOST, tokens: int = 1, tokens_most: int | None = None, rank: int = 2
) -> bool:
    """It asks, and goes: where it is not this that is tested, the script is run once."""
    limits = {"requests_most": most or "", "tokens_most": tokens_most or ""}
    return take_once(rig, f"{session} p", f"{session} t 1 step", rank=rank, tokens=tokens, **limits) == ["GO"]


def flood(rig: Rig, tenant: str, count: int) -> None:
    for i in range(count):
        comes(rig, f"{tenant}{i:03d}")


def fill(rig: Rig) -> None:
    """One tenant has a whole window."""
    assert all(comes(rig, f"acme:first{i}") for i in range(MOST))


def in_line(rig: Rig) -> list[str]:
    """The sessions that wait, next first: whose tenant's turn it is, and of a tenant in its own order."""
    slots: list[str] = rig.client.zrange(rig.keys.rate("openai:gpt", "line"), 0, -1)
    of_tenant: dict[str, list[str]] = {}
    for word in rig.client.zrange(rig.keys.rate("openai:gpt", "order"), 0, -1):
        tenant, _, _, session, *_ = word.split(" ")
        of_tenant.setdefault(tenant, []).append(session)
    assert sum(map(len, of_tenant.values())) == len(slots)
    return [of_tenant[slot.split(" ")[0]].pop(0) for slot in slots]


def round_of(rig: Rig) -> list[str]:
    """A window passes, and those come whose time it is; who goes."""
    rig.pass_ms(COUNTS_MS)
    key = rig.keys.rate("openai:gpt", "due")
    due = {ticket.split(" ")[0] for ticket in rig.client.zrangebyscore(key, "-inf", rig.now_ms)}
    return [session for session in in_line(rig) if session in due and comes(rig, session)]


def held(rig: Rig) -> dict[str, str]:
    """How many places each tenant has."""
    return rig.client.hgetall(rig.keys.rate("openai:gpt", "by"))


def tags(rig: Rig) -> dict[str, float]:
    return dict(rig.client.zrange(rig.keys.rate("openai:gpt", "tenants"), 0, -1, withscores=True))


def test_a_turn_waits_behind_one_round_of_anothers_flood_and_no_more(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 200)
    assert ask(rig, "acme:last")[1] > 20 * COUNTS_MS * 0.9
    assert ask(rig, "b:1")[:2] == ["WAIT", COUNTS_MS]
    assert "b:1" in round_of(rig)


def test_tenants_take_turns_and_within_each_who_came_first_is_first(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 30)
    flood(rig, "b:", 10)
    flood(rig, "plain", 10)
    gone = round_of(rig)
    counts = Counter(session.partition(":")[0][:5] for session in gone)
    assert counts["acme"] in (3, 4)
    assert counts["b"] in (3, 4)
    assert [session for session in gone if session.startswith("acme:")] == [
        f"acme:{i:03d}" for i in range(counts["acme"])
    ]
    assert round_of(rig)[-1] != gone[-1]


def test_who_is_overtaken_asks_again_and_waits_again(rig: Rig) -> None:
    fill(rig)
    for i in range(MOST):
        assert ask(rig, f"acme:{i}")[:2] == ["WAIT", COUNTS_MS]
    assert [ask(rig, f"b:{i}")[:2] for i in range(5)] == [["WAIT", COUNTS_MS]] * 5
    gone = round_of(rig)
    assert len([session for session in gone if session.startswith("b:")]) >= 4
    late = in_line(rig)
    assert late
    assert ask(rig, late[0])[:2] == ["WAIT", COUNTS_MS]
    assert sorted(round_of(rig)) == sorted(late)


def test_who_is_overtaken_past_its_deadline_is_told_so(rig: Rig) -> None:
    fill(rig)
    for i in range(MOST):
        ask(rig, f"acme:{i}")
    for i in range(5):
        ask(rig, f"b:{i}")
    assert ask(rig, "acme:9", most_wait_ms=COUNTS_MS)[0] == "LATE"
    assert "acme:9" not in in_line(rig)


def test_a_tenant_that_was_away_has_saved_nothing_up(rig: Rig) -> None:
    fill(rig)
    ask(rig, "b:0")
    flood(rig, "acme:", 40)
    assert "b:0" in round_of(rig)
    round_of(rig)
    round_of(rig)
    flood(rig, "b:late", 20)
    gone = round_of(rig)
    assert 4 <= len([session for session in gone if session.startswith("b:")]) <= 6


def test_new_tenants_without_end_starve_nobody(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 2)
    came, gone = 0, set[str]()
    while not {"acme:000", "acme:001"} <= gone:
        for _ in range(MOST + 3):  # more than there are places
            comes(rig, f"new{came}:1")
            came += 1
        gone.update(round_of(rig))
        assert came < 400


def test_the_cost_of_a_request_is_what_it_takes_of_the_limits(rig: Rig) -> None:
    """Tokens are what runs out: a tenant of great requests and one of small ones have as many tokens each."""
    cost = {"other": 1000, "acme": 200, "b": 20}

    def goes(session: str) -> bool:
        return comes(rig, session, None, cost[session.partition(":")[0]], 1000)

    assert goes("other:1")
    for i in range(20):
        goes(f"acme:{i:02d}")
    for i in range(40):
        goes(f"b:{i:02d}")
    rig.pass_ms(COUNTS_MS)
    gone = Counter(session.partition(":")[0] for session in in_line(rig) if goes(session))
    assert gone["acme"] in (2, 3)
    assert 20 <= gone["b"] <= 30


def test_turns_that_never_come_back_are_not_held_against_their_tenant(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:gone", 30)
    rig.pass_ms(5 * COUNTS_MS)
    assert ask(rig, "b:0") == ["GO"]  # all that were to come before are long overdue
    flood(rig, "b:", MOST + 20)
    for tenant in ("c:", "d:", "e:"):
        flood(rig, tenant, 2)
    ask(rig, "acme:1")
    assert in_line(rig).index("acme:1") <= 3


def test_beside_another_a_tenant_leaves_a_fifth_free_and_the_others_turn_goes_at_once(rig: Rig) -> None:
    fill(rig)
    flood(rig, "acme:", 60)
    assert ask(rig, "b:0")[:2] == ["WAIT", COUNTS_MS]
    gone = round_of(rig)
    assert ("b:0" in gone, len(gone)) == (True, MOST - 1)
    assert ask(rig, "b:1") == ["GO"]
    for _ in range(5):
        assert len(round_of(rig)) == MOST * 4 / 5
        assert ask(rig, "acme:more")[0] == "WAIT"
        assert ask(rig, "b:2") == ["GO"]


def test_those_that_have_their_share_do_not_stand_before_one_that_has_not(rig: Rig) -> None:
    ask(rig, "b:first", requests_most=100)
    for i in range(200):
        comes(rig, f"acme:{i:03d}", 100)
    assert held(rig) == {"acme:": "80", "b:": "1"}
    assert [comes(rig, f"b:{i}", 100) for i in range(12)] == [True] * 12
    assert int(held(rig)["b:"]) <= 4 * (100 - 80 - 12)


def test_two_that_want_all_leave_some_to_a_third(rig: Rig) -> None:
    for i in range(150):
        comes(rig, f"acme:{i:03d}", 100)
        comes(rig, f"b:{i:03d}", 100)
    assert {tenant: 43 <= int(count) <= 46 for tenant, count in held(rig).items()} == {"acme:": True, "b:": True}
    assert ask(rig, "c:1", requests_most=100) == ["GO"]


def test_a_tenant_that_is_alone_for_ten_windows_has_all_again(rig: Rig) -> None:
    ask(rig, "b:1")
    rig.pass_ms(599_000)
    flood(rig, "acme:", MOST)
    assert held(rig) == {"acme:": "8"}
    round_of(rig)
    flood(rig, "acme:later", MOST)
    assert held(rig) == {"acme:": "10"}


def test_what_tenants_have_is_what_counts_now(rig: Rig) -> None:
    for tenant in ("acme:", "b:"):
        flood(rig, tenant, 2)
    assert held(rig) == {"acme:": "2", "b:": "2"}
    rig.pass_ms(COUNTS_MS)
    ask(rig, "b:9")
    assert held(rig) == {"b:": "1"}


def test_what_is_kept_of_tenants_is_bounded(rig: Rig) -> None:
    fill(rig)
    for i in range(150):
        comes(rig, f"tenant{i}:1", 1000)
    assert len(tags(rig)) <= 110
    rig.pass_ms(COUNTS_MS)
    for i in range(100):
        comes(rig, f"acme:{i}", 1000)
    assert set(tags(rig)) == {"acme:"}


def test_what_is_set_is_kept_with_the_count(rig: Rig) -> None:
    ask(rig, "acme:1", tokens_most=500)
    rule = rig.client.hgetall(rig.keys.rate("openai:gpt", "rule"))
    assert (rule["set_requests"], rule["set_tokens"]) == (str(MOST), "500")
    ask(rig, "acme:2", requests_most="", tokens_most=500)
    assert rig.client.hget(rig.keys.rate("openai:gpt", "rule"), "set_requests") == ""

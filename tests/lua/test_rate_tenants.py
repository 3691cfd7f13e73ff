"""rate_take.lua: tenants take turns in the line for a model's places."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, PARTS, SLACK_MS, WINDOW_MS, take

MOST = 10


def ask(rig: Rig, session: str, **given: Any) -> list[Any]:
    """The turn of this session asks for its place."""
    return take(rig, f"p of {session}", f"{session} t 1 step", **{"requests_most": MOST} | given)


def comes(
    rig: Rig, session: str, most: int | None = MOST, tokens: int = 1, tokens_most: int | None = None
) -> bool:
    """It asks, and goes: where it is not this that is tested, the script is run once."""
    reply = rig.scripts.rate_take(
        **{part: rig.keys.rate("openai:gpt", part) for part in PARTS},
        model="openai:gpt",
        place=f"p of {session}",
        ticket=f"{session} t 1 step",
        tokens=tokens,
        requests_most=most,
        tokens_most=tokens_most,
        window_ms=WINDOW_MS,
        slack_ms=SLACK_MS,
        most_wait_ms=10**8,
    )
    return reply == "GO"


def flood(rig: Rig, tenant: str, count: int) -> None:
    for i in range(count):
        comes(rig, f"{tenant}{i:03d}")


def fill(rig: Rig) -> None:
    """One tenant has a whole window."""
    assert all(comes(rig, f"acme:first{i}") for i in range(MOST))


def in_line(rig: Rig) -> list[str]:
    """The sessions that wait, next first."""
    waiting: list[str] = rig.client.zrange(rig.keys.rate("openai:gpt", "line"), 0, -1)
    return [ticket.split(" ")[0] for ticket in waiting]


def round_of(rig: Rig) -> list[str]:
    """A window passes, and those come whose time it is; who goes."""
    rig.pass_ms(COUNTS_MS)
    key = rig.keys.rate("openai:gpt", "due")
    due = {ticket.split(" ")[0] for ticket in rig.client.zrangebyscore(key, "-inf", rig.now_ms)}
    return [session for session in in_line(rig) if session in due and comes(rig, session)]


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
    assert len(gone) == MOST
    assert len([session for session in gone if session.startswith("b:")]) == 5
    late = in_line(rig)
    assert late == [f"acme:{i}" for i in range(5, MOST)]
    assert ask(rig, late[0])[:2] == ["WAIT", COUNTS_MS]
    assert round_of(rig) == late


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
    ask(rig, "acme:1")
    assert in_line(rig).index("acme:1") <= 1


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

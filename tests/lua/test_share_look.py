"""share_look.lua: what a cell has and uses of a limit that several cells share."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, settle, take

LIMIT = 10
LOOKED = ("places", "line", "rule", "by")
WHOLE = 1_000_000


def look(rig: Rig, number: int, asker: str = "w1", **given: Any) -> list[Any]:
    asked: dict[str, Any] = {
        **{part: rig.keys.rate("openai:gpt", part) for part in LOOKED},
        "look": f"look{number}",
        "asker": asker,
        "keep_ms": 4_000,
        "requests_most": LIMIT,
        "tokens_most": "",
    }
    return rig.run("share_look", **asked | given)


def put(rig: Rig, mark: int, share: int, for_ms: int = 15_000) -> list[Any]:
    rule = rig.keys.rate("openai:gpt", "rule")
    return rig.run("share_put", rule=rule, mark=mark, share=share, for_ms=for_ms)


def give(rig: Rig, number: int, requests: int) -> None:
    """A share of so many requests."""
    mark = look(rig, number)[1]
    assert put(rig, mark, -(-requests * WHOLE // LIMIT)) == ["PUT"]


def ask(rig: Rig, place: str, **given: Any) -> list[Any]:
    asked: dict[str, Any] = {"requests_most": LIMIT, "shared": 1}
    return take(rig, place, **asked | given)


def test_nothing_is_seen_of_a_model_that_nothing_limits(rig: Rig) -> None:
    assert look(rig, 1, requests_most="") == ["FREE"]


def test_it_sees_what_is_used_and_who_waits(rig: Rig) -> None:
    assert look(rig, 1) == ["SEEN", rig.now_ms, 0, 0, "0", LIMIT]
    assert put(rig, rig.now_ms, 200_000) == ["PUT"]
    assert [ask(rig, f"p{i}")[0] for i in range(3)] == ["GO", "GO", "WAIT"]
    rig.pass_ms(1_000)
    assert look(rig, 2) == ["SEEN", rig.now_ms, 200_000, 200_000, "1", LIMIT]
    rig.pass_ms(COUNTS_MS)
    assert look(rig, 3)[3] == 0


def test_of_tokens_and_requests_what_is_used_most_counts(rig: Rig) -> None:
    take(rig, "p1", requests_most=LIMIT, tokens_most=100, tokens=50)
    assert look(rig, 1, tokens_most=100)[3] == 500_000


def test_a_learned_limit_is_shared_too(rig: Rig) -> None:
    settle(rig, "p0", requests=4)
    assert look(rig, 1, requests_most="") == ["SEEN", rig.now_ms, 0, 0, "0", 4]


def test_one_process_of_a_cell_looks(rig: Rig) -> None:
    assert look(rig, 1, "w1")[0] == "SEEN"
    rig.pass_ms(3_999)
    assert look(rig, 2, "w2") == ["OTHER"]
    rig.pass_ms(1)
    assert look(rig, 3, "w2")[0] == "SEEN"  # the other one looks no more
    assert look(rig, 4, "w1") == ["OTHER"]


def test_each_look_has_a_greater_mark_also_where_the_clock_stands_still_or_steps_back(rig: Rig) -> None:
    first = look(rig, 1)[1]
    assert look(rig, 2)[1] == first + 1
    rig.pass_ms(-10_000)
    assert look(rig, 3)[1] == first + 2


def test_a_shared_limit_lets_so_many_go_as_the_share_has(rig: Rig) -> None:
    assert ask(rig, "early")[:3] == ["WAIT", 2_000, "requests"]  # home has given nothing yet
    give(rig, 1, 3)
    rig.pass_ms(2_000)
    assert [ask(rig, place)[0] for place in ("early", "p1", "p2")] == ["GO", "GO", "GO"]
    assert ask(rig, "p3")[:2] == ["WAIT", 2_000]  # it looks again soon: home may give more
    give(rig, 2, 4)
    rig.pass_ms(2_000)
    assert ask(rig, "p3") == ["GO"]


def test_who_has_all_of_it_waits_as_where_there_is_one_cell(rig: Rig) -> None:
    give(rig, 1, LIMIT)
    for i in range(LIMIT):
        assert ask(rig, f"p{i}") == ["GO"]
    assert ask(rig, "more") == ["WAIT", COUNTS_MS, "requests", LIMIT]


def test_a_share_that_has_lapsed_lets_none_go(rig: Rig) -> None:
    give(rig, 1, 5)
    rig.pass_ms(14_999)
    assert ask(rig, "p0") == ["GO"]
    rig.pass_ms(1)
    assert ask(rig, "p1")[0] == "WAIT"


def test_a_share_of_tokens(rig: Rig) -> None:
    mark = look(rig, 1, requests_most="", tokens_most=100)[1]
    put(rig, mark, 300_000)
    tokens: dict[str, Any] = {"requests_most": "", "tokens_most": 100, "tokens": 20}
    assert ask(rig, "p0", **tokens) == ["GO"]
    assert ask(rig, "p1", **tokens)[:4] == ["WAIT", 2_000, "tokens", 30]


def test_where_the_limit_is_not_shared_no_share_is_asked_for(rig: Rig) -> None:
    assert take(rig, "p0", requests_most=1) == ["GO"]
    assert take(rig, "p1", requests_most=1) == ["WAIT", COUNTS_MS, "requests", 1]

"""The scripts of limits that several cells share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.rates import RedisRates
from brainq.contracts.limit_share import LEASE_S, USED_S, Share, ShareReport, ShareRow, decide_share
from brainq.contracts.rate import EMPTY_RATE_REPORT, parse_rates
from brainq.engine.upkeep.limit_shares import LimitShareUpdater
from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, settle, take
from tests.support.arrivals import most_in_a_window

# Two cells and one limit: they keep to it together, and what one does not use the other has.


MODEL = "openai:gpt"


@dataclass
class Home:
    """As `LimitShares`, by the test's clock. `is_away`: it answers nobody."""

    now: Callable[[], float]
    is_away: bool = False
    rows: dict[str, tuple[ShareRow, float, float]] = field(default_factory=dict[str, "tuple[ShareRow, float, float]"])

    def ask(self, cell: str, report: ShareReport) -> Share | None:
        if self.is_away:
            raise ConnectionError("home is away")
        now = self.now()
        others = [
            ShareRow(row.cell, row.held, row.wanted, now - at) for row, at, _ in self.rows.values() if row.cell != cell
        ]
        _, at, since = self.rows.get(cell, (None, now, now))
        since = now if now - at > LEASE_S else since
        share = decide_share(cell, report, others, cells=2, asking_s=now - since)
        self.rows[cell] = (ShareRow(cell, share.held, report.wanted, 0.0), now, since)
        return share


class World:
    """Cells in one Redis, each with keys of its own, and one clock."""

    def __init__(self, rig: Rig, limit: int) -> None:
        self.rig, self.limit, self.sent = rig, limit, dict[str, list[float]](a=[], b=[])
        self.home = Home(self.now)
        self.rates = {name: self._rates(name) for name in "ab"}
        self.updaters = {
            name: LimitShareUpdater(cell=name, cells=2, limits=self.rates[name], home=lambda: self.home, now=self.now)
            for name in "ab"
        }
        self._waiting: dict[str, list[tuple[str, float]]] = {"a": [], "b": []}
        self._number = 0

    def now(self) -> float:
        return self.rig.now_ms / 1000

    def _rates(self, name: str) -> RedisRates:
        scripts = copy.copy(self.rig.scripts)
        scripts.keys = Keys(f"{name}:")
        return RedisRates(scripts, parse_rates(f"{MODEL}={self.limit}/min"), shared=True, asker=f"asker-{name}")

    def want(self, cell: str, requests: int) -> None:
        for _ in range(requests):
            self._number += 1
            self._waiting[cell].append((f"{cell}{self._number}", 0.0))

    def second(self, *, asking: str = "ab") -> None:
        """Keepers look, and those who wait ask again when they were told to."""
        for name in asking:
            self.updaters[name].update()
        for name, waiting in self._waiting.items():
            left: list[tuple[str, float]] = []
            for place, at in waiting:
                wait = None if at > self.now() else self._take(name, place)
                if at > self.now():
                    left.append((place, at))
                elif wait is not None:
                    left.append((place, self.now() + wait))
            self._waiting[name] = left
        self.rig.pass_ms(1_000)

    def _take(self, cell: str, place: str) -> float | None:
        wait = self.rates[cell].take(MODEL, place, f"s1 {place} 1 step", 1, 1e6)
        if wait is None:
            self.sent[cell].append(self.now())
            self.rates[cell].settle(MODEL, place, 1, 0.0, EMPTY_RATE_REPORT)
        return None if wait is None else wait.wait_s

    def fullest(self) -> int:
        return most_in_a_window([*self.sent["a"], *self.sent["b"]], 60.0)

    def waits_after(self, seconds: int, cell: str, *, asking: str = "ab") -> int:
        """How many of this cell wait after so long."""
        for _ in range(seconds):
            self.second(asking=asking)
        return len(self._waiting[cell])


def test_what_an_idle_cell_does_not_use_the_busy_one_has(rig: Rig) -> None:
    world = World(rig, 10)
    world.want("a", 10)
    assert world.waits_after(4, "a") == 5  # the other may be about to ask
    assert world.waits_after(int(LEASE_S) + 1, "a") == 0  # it was given all of it
    assert world.fullest() == 10


def test_two_busy_cells_share_and_what_one_gives_back_the_other_gets(rig: Rig) -> None:
    world = World(rig, 10)
    world.want("a", 60)
    world.waits_after(30, "a")
    world.want("b", 60)
    world.waits_after(300, "a")
    assert world.fullest() <= world.limit
    in_the_end = {name: sum(at > world.now() - 120 for at in sent) for name, sent in world.sent.items()}
    assert in_the_end == {"a": 10, "b": 10}


def test_one_request_a_minute_for_two_cells_starves_neither(rig: Rig) -> None:
    world = World(rig, 3)
    world.want("a", 30)
    world.want("b", 30)
    world.waits_after(270, "a")
    assert world.fullest() <= 3
    assert len(world.sent["a"]) + len(world.sent["b"]) >= 3 * 270 // 65 - 3
    assert min(len(world.sent["a"]), len(world.sent["b"])) >= 4


def test_a_dead_cells_share_returns_to_the_living_one(rig: Rig) -> None:
    world = World(rig, 10)
    world.want("a", 10)
    assert world.waits_after(int(LEASE_S) + 5, "a") == 0
    world.want("b", 10)
    # Nobody asks for `a` any more. It has the whole limit until its lease, and what it took counts yet after that.
    assert world.waits_after(int(LEASE_S + USED_S) - 5, "b", asking="b") == 10
    assert world.waits_after(12, "b", asking="b") == 0
    assert world.fullest() <= world.limit


def test_cells_go_on_while_home_is_away_and_keep_to_the_limit(rig: Rig) -> None:
    world = World(rig, 10)
    world.want("a", 60)
    world.waits_after(20, "a")
    world.home.is_away = True
    world.want("b", 60)
    world.waits_after(300, "a")
    assert world.fullest() <= world.limit
    in_the_end = {name: sum(at > world.now() - 120 for at in sent) for name, sent in world.sent.items()}
    assert in_the_end == {"a": 10, "b": 10}
    world.home.is_away = False
    world.waits_after(200, "a")
    assert world.fullest() <= world.limit


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_where_they_keep_to_the_limit(rig: Rig, seed: int) -> None:
    random = Random(seed)
    world = World(rig, random.choice([5, 10, 20]))
    for _ in range(250):
        for name in "ab":
            if random.random() < 0.05:
                world.want(name, random.randrange(1, 8))
        world.second(asking=random.choice(["ab", "ab", "ab", "a", "b", ""]))
    assert world.fullest() <= world.limit
    assert world.sent["a"]
    assert world.sent["b"]


# share_look.lua: what a cell has and uses of a limit that several cells share.


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


# share_put.lua: a cell's share of a limit is put by whoever looked last.


def test_what_was_decided_for_an_earlier_look_is_not_put(rig: Rig) -> None:
    first = look(rig, 1)[1]
    second = look(rig, 2)[1]
    assert put(rig, first, 1_000_000) == ["OLD"]
    assert ask(rig, "p0")[0] == "WAIT"
    assert put(rig, second, 1_000_000) == ["PUT"]
    assert ask(rig, "p0") == ["GO"]


def test_a_share_counts_from_the_look_not_from_when_it_is_put(rig: Rig) -> None:
    mark = look(rig, 1)[1]
    rig.pass_ms(10_000)  # home took long to answer
    put(rig, mark, 1_000_000, for_ms=15_000)
    rig.pass_ms(5_000)
    assert ask(rig, "p0")[0] == "WAIT"


def test_nothing_is_put_where_redis_was_emptied_since(rig: Rig) -> None:
    mark = look(rig, 1)[1]
    rig.client.delete(rig.keys.rate("openai:gpt", "rule"))
    assert put(rig, mark, 1_000_000) == ["OLD"]

"""The budgets that are in force, and the clock that they go by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.contracts.budgets import (
    AtCap,
    Budget,
    GrantedWindow,
    MoneyGrant,
    MoneyHold,
    MoneyRefusal,
    WindowCounter,
    reservation_for,
)
from brainq.engine.people import budgets
from brainq.engine.people.budgets import READ_AGAIN_S, RETRY_S, UNHEARD_S, BudgetDesk
from brainq.errors import BudgetSpent, CellUnreachable, InvalidInput

# BudgetDesk while SQL, home or Redis is away, and the order in which it tells them.


HOUR_MS = 3_600_000
ALL = Budget(scope="all", per="hour", usd=1.0)
TENANT = Budget(scope="tenant", per="hour", usd=2.0, at_cap="refuse")


class Services:
    """SQL and Redis of a keeper; `log` has what was asked of both, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.set_ones: list[Budget] = []
        self.sql_is_away = False
        self.granted: MoneyGrant | Exception | None = MoneyGrant(0.5, 0.0, 1.0)
        self.rows: list[GrantedWindow] = []
        self.refusals: list[MoneyRefusal] = []
        self.spent = False
        self.restored: list[Any] = []
        self.dies_at = ""
        sql: Any = Part(self, "sql")
        redis: Any = Part(self, "redis")
        self.keeper = BudgetDesk(rows=sql, counters=redis, defaults=(ALL,), zone="UTC", listen=self.listen)

    def listen(self) -> None:
        self.log.append("listen")

    def note(self, what: str) -> None:
        self.log.append(what)
        if what == self.dies_at:
            raise SystemExit

    def sql_standing(self) -> list[Budget]:
        if self.sql_is_away:
            raise ConnectionError
        return self.set_ones

    def sql_grant(self, scope: str, budget: Budget, refusal: MoneyRefusal) -> MoneyGrant | None:
        if isinstance(self.granted, Exception):
            raise self.granted
        return self.granted

    def sql_windows(self, since_ms: int) -> list[GrantedWindow]:
        return [row for row in self.rows if row.start_ms >= since_ms]

    def sql_is_spent(self, scope: str, per: str, start_ms: int) -> bool:
        return self.spent

    def sql_raise_by(self, *_: object) -> float:
        return 3.0

    def redis_now_ms(self) -> int:
        return 10 * HOUR_MS + 1

    def redis_take(self, call_id: str, hold: MoneyHold) -> MoneyRefusal | None:
        return self.refusals.pop(0) if self.refusals else None

    def redis_restore(self, granted: Any) -> None:
        self.restored += granted

    def redis_resume(self, name: str) -> int:
        return 2

    def redis_counters(self, windows: Any) -> list[WindowCounter]:
        return [WindowCounter(0.25, 0.5, 1, 2) for _ in windows]


class Part:
    def __init__(self, services: Services, name: str) -> None:
        self._services, self._name = services, name

    def __getattr__(self, verb: str) -> Any:
        def act(*args: Any, **given: Any) -> Any:
            self._services.note(f"{self._name}.{verb}")
            answer = getattr(self._services, f"{self._name}_{verb}", None)
            return None if answer is None else answer(*args, **given)

        return act


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """This machine's clock, in seconds."""
    clock = [100.0]
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


@pytest.fixture
def services(here: list[float]) -> Services:
    return Services()


def refusal(**given: Any) -> MoneyRefusal:
    fields: dict[str, Any] = {
        "why": "short",
        "window": "all/hour",
        "start_ms": 10 * HOUR_MS,
        "wanted": 0.5,
        "expected": 0.6,
        "in_flight": 0,
        "is_new": False,
    }
    return MoneyRefusal(**{**fields, **given})


def grant(services: Services, **given: Any) -> AtCap | None:
    return services.keeper.grant(services.keeper.windows("acme:1", "b"), refusal(**given))


def test_while_home_is_away_a_call_waits(services: Services) -> None:
    services.granted = CellUnreachable("", "gone")
    at_cap = grant(services)
    assert at_cap is not None
    assert (at_cap.what, at_cap.start_ms) == ("wait", 10 * HOUR_MS)


def test_what_is_refused_waits_for_calls_in_flight_and_else_is_at_the_cap(services: Services) -> None:
    assert [each and each.what for each in (grant(services, why="wait"), grant(services))] == ["wait", None]
    assert services.log.count("sql.grant") == services.log.count("redis.grant") == 1
    services.granted = None
    found = [grant(services, in_flight=flight) for flight in (1, 0)]
    assert [each and each.what for each in found] == ["wait", "park"]
    assert services.log.count("redis.grant") == 1


def test_sql_grants_before_redis_may_spend(services: Services) -> None:
    grant(services)
    assert services.log[-2:] == ["sql.grant", "redis.grant"]


def test_a_standing_budget_is_in_sql_before_anybody_hears_of_it_and_read_anew_here(services: Services) -> None:
    services.keeper.budgets()
    services.log.clear()
    services.keeper.set("all", "hour", 5, "park", "ann")
    assert services.log == ["sql.set", "redis.tell", "redis.resume"]
    services.set_ones = [ALL.model_copy(update={"usd": 5.0})]
    assert services.keeper.budgets() == tuple(services.set_ones)


def test_a_raise_is_in_sql_before_parked_turns_ask_again(services: Services) -> None:
    assert services.keeper.raise_by("all", "hour", 2, "ann") == 3.0
    assert [each for each in services.log if each.partition(".")[2] in ("raise_by", "mark_spent", "resume")] == [
        *("sql.raise_by", "sql.mark_spent", "redis.resume")
    ]
    with pytest.raises(InvalidInput, match="no budget of 'tenant acme:'"):
        services.keeper.raise_by("tenant acme:", "hour", 2, "ann")
    with pytest.raises(InvalidInput):
        services.keeper.raise_by("all", "day", 2, "ann")
    services.set_ones = [TENANT]
    services.keeper.forget()
    with pytest.raises(InvalidInput):
        services.keeper.raise_by("tenant", "hour", 2, "ann")  # of whom?
    assert services.keeper.raise_by("tenant acme:", "hour", 2, "ann") == 3.0


def test_budgets_are_read_once_a_minute_and_soon_again_while_sql_is_away(services: Services, here: list[float]) -> None:
    keeper = services.keeper
    services.set_ones = [TENANT]
    assert keeper.budgets() == keeper.budgets() == (ALL, TENANT)
    assert services.log == ["listen", "sql.standing"], "whoever sets one is heard before they are read"
    services.sql_is_away = True
    here[0] += READ_AGAIN_S
    assert keeper.budgets() == (ALL, TENANT), "what was known holds"
    services.sql_is_away, services.set_ones = False, []
    here[0] += RETRY_S
    assert keeper.budgets() == (ALL,)
    here[0] += READ_AGAIN_S - 1
    services.log.clear()
    keeper.budgets()
    assert services.log == []


def test_what_sql_had_granted_counts_until_redis_has_heard_of_all(services: Services) -> None:
    services.rows = [GrantedWindow("all", "hour", 10 * HOUR_MS, 0.5, 0.0, is_spent=False, returned_usd=0.125)]
    services.dies_at = "redis.restore"
    with pytest.raises(SystemExit):
        services.keeper.restore("e1")
    services.dies_at = ""
    services.keeper.restore("e1")
    ((window, start_ms, granted),) = services.restored
    assert (window.name, start_ms, granted) == (
        "all/hour",
        10 * HOUR_MS,
        MoneyGrant(0.5, 0.5, 0.5, returned_usd=0.125),
    )
    services.log.clear()
    services.keeper.restore("e1")
    assert services.log == []
    services.keeper.restore("e2")
    assert len(services.restored) == 2


def test_only_windows_that_go_on_are_restored(services: Services) -> None:
    services.rows = [GrantedWindow("all", "hour", hour * HOUR_MS, 0.5, 0.0, is_spent=False) for hour in (9, 10, 11)]
    services.keeper.restore("e1")
    assert [start_ms for _, start_ms, _ in services.restored] == [10 * HOUR_MS]


def test_a_call_after_the_turn_is_granted_until_it_fits_or_told_which_budget_refuses(services: Services) -> None:
    services.refusals = [refusal(), refusal()]
    assert services.keeper.reserve("c1", "acme:1", "b", 0.5, None) is None
    assert services.log.count("sql.grant") == 2
    services.refusals, services.granted = [refusal()], None
    assert services.keeper.reserve("c1", "acme:1", "b", 0.5, None) == "budget all/hour"


def test_a_call_whose_worst_case_is_not_known_is_asked_for_with_its_least(services: Services) -> None:
    windows = services.keeper.windows("acme:1", "b")
    assert reservation_for(windows, None, 0.25) == MoneyHold(windows, 0.25, is_blind=True)
    assert reservation_for(windows, None, None) == MoneyHold(windows, 0.0, is_blind=True)
    assert reservation_for(windows, 0.5, 0.25, leaves_room=False) == MoneyHold(windows, 0.5, leaves_room=False)
    assert reservation_for((), 0.5, 0.25) is None


def test_a_producer_reads_budgets_soon_again_because_it_hears_of_none(services: Services, here: list[float]) -> None:
    services.set_ones = [TENANT]
    services.keeper.require("acme:1", "b")
    services.spent = True
    with pytest.raises(BudgetSpent, match="tenant acme:/hour"):
        services.keeper.require("acme:1", "b")
    assert "listen" not in services.log
    services.set_ones = []
    here[0] += UNHEARD_S
    services.keeper.require("acme:1", "b")


def test_windows_that_cells_share_are_those_that_go_on(services: Services) -> None:
    assert services.keeper.shared_windows() == []
    services.set_ones = [Budget(scope="brain", per="hour", usd=4.0), TENANT]
    services.keeper.forget()
    services.rows = [
        GrantedWindow(scope, "hour", hour * HOUR_MS, 0.5, 0.0, is_spent=False)
        for scope, hour in (("all", 10), ("all", 9), ("brain b", 10), ("tenant acme:", 10), ("brain", 11))
    ]
    assert [(window.name, window.budget.usd) for window, _ in services.keeper.shared_windows()] == [
        ("all/hour", 1.0),
        ("brain b/hour", 4.0),
    ]


def test_a_list_has_each_budget_once_with_what_is_parked_for_it(services: Services) -> None:
    services.set_ones = [TENANT]
    services.rows = [GrantedWindow("tenant acme:", "hour", 10 * HOUR_MS, 0.5, 1.0, is_spent=True)]
    found = services.keeper.list()
    assert [(one.scope, one.usd, one.raised_usd, one.is_spent, one.parked) for one in found] == [
        ("all", 1.0, 0.0, False, 2),
        ("tenant (each)", 2.0, 0.0, False, 0),
        ("tenant acme:", 2.0, 1.0, True, 2),
    ]
    assert found[2].left_usd == 2.25
    assert found[0].ends_at.timestamp() == 11 * HOUR_MS / 1000


# The clock by which a process knows in which window of a budget it is.


class Counters:
    """Redis' clock, which may be away."""

    def __init__(self) -> None:
        self.at_ms = 10 * HOUR_MS
        self.is_away = False
        self.asked = 0

    def now_ms(self) -> int:
        self.asked += 1
        if self.is_away:
            raise ConnectionError
        return self.at_ms


class Rows:
    def standing(self) -> list[Budget]:
        return []


@pytest.fixture
def budget_clock_here(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """This machine's own clock, in seconds."""
    clock = [100.0]
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


def test_a_clock_that_was_put_right_is_heard_of_within_a_minute(budget_clock_here: list[float]) -> None:
    redis = Counters()
    keeper = BudgetDesk(
        rows=cast("Any", Rows()),
        counters=cast("Any", redis),
        defaults=(Budget(scope="all", per="hour", usd=1.0),),
        zone="UTC",
        listen=lambda: None,
    )

    def begun() -> int:
        return keeper.windows("s1", "b")[0].starts[1] // HOUR_MS

    assert (begun(), begun(), redis.asked) == (10, 10, 1)
    redis.at_ms += 5 * HOUR_MS  # or this machine was suspended: its own clock stood still
    budget_clock_here[0] += READ_AGAIN_S
    redis.is_away = True
    assert begun() == 10
    budget_clock_here[0] += READ_AGAIN_S
    redis.is_away = False
    assert begun() == 15

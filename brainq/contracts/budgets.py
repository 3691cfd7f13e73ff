"""Budgets: caps on the cost of model calls per hour, day or month, for a tenant, a user, a brain, or all together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from brainq.contracts.base import Wire
from brainq.contracts.ids import PREFIX_BOUNDARY, tenant_of
from brainq.errors import InvalidInput

Per = Literal["hour", "day", "month"]
CapAction = Literal["park", "refuse", "finish"]
PERIODS: tuple[Per, ...] = get_args(Per)
CAP_ACTIONS: tuple[CapAction, ...] = get_args(CapAction)
SCOPE_KINDS = ("all", "tenant", "user", "brain")
MAX_USD = 1e9
NOTICE_SHARE = 0.8
BUDGET_FORM = (
    "write entries such as `all day=100; tenant day=5 park; tenant acme: month=300; brain support hour=2 refuse`"
)
_NAME = re.compile(r"\S{1,200}")


class Budget(Wire):
    """A cap on the cost of model calls in a window.

    scope: `all`; `tenant`, `user` or `brain` for a separate cap on each of them; or one of them: `tenant acme:`, `user
        acme:ann:`, `brain support`.
    usd: US dollars per window.
    at_cap: what happens when the cap is reached. `park` pauses turns until the next window begins or the budget is
        raised. `refuse` rejects new turns and ends live ones. `finish` gives turns one last answer without tools.
    """

    scope: str
    per: Per
    usd: float
    at_cap: CapAction = "park"

    @property
    def is_of_each(self) -> bool:
        return " " not in self.scope and self.scope != "all"


class BudgetState(Wire):
    """The state of a budget in the current window.

    scope: one tenant, user or brain, such as `tenant acme:`, or `all`.
    usd: its configured amount. `raised_usd` is added to it in this window.
    spent_usd: the cost of calls that began in the window. `held_usd` is the worst case of calls in flight.
    parked: turns that wait for the budget.
    noticed_at: when people were notified that four fifths of its present cap are granted, or None.
    """

    scope: str
    per: Per
    usd: float
    at_cap: CapAction
    raised_usd: float = 0.0
    spent_usd: float = 0.0
    held_usd: float = 0.0
    in_flight: int = 0
    parked: int = 0
    is_spent: bool = False
    noticed_at: datetime | None = None
    begins_at: datetime
    ends_at: datetime

    @property
    def left_usd(self) -> float:
        return max(0.0, self.usd + self.raised_usd - self.spent_usd - self.held_usd)

    @property
    def used_share(self) -> float:
        """The spent and held part of the cap, such as 0.81."""
        cap = self.usd + self.raised_usd
        return (self.spent_usd + self.held_usd) / cap if cap else float(self.is_spent)


@dataclass(frozen=True, slots=True)
class MoneyRefusal:
    """Why a model call may not begin now: `wait` for calls in flight, or `short` because the window has too little
    left.

    window: the name of the budget's window, such as `tenant acme:/day`. `start_ms` is when it began.
    wanted: the total US dollars that the window must have been granted. If its counter is new, earlier spending is
        added.
    expected: the same total for the expected bill. It is granted as well while enough is left.
    """

    why: Literal["wait", "short"]
    window: str
    start_ms: int
    wanted: float
    expected: float
    in_flight: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class BudgetWindow:
    """One budget as it applies to one call. `starts` has the start times of the windows around now, in ms."""

    scope: str
    budget: Budget
    starts: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.scope}/{self.budget.per}"

    def end_ms(self, start_ms: int) -> int:
        """Return the time at which the window that began at `start_ms` ends, in ms."""
        later = [start for start in self.starts if start > start_ms]
        return later[0] if later else self.starts[-1]


@dataclass(frozen=True, slots=True)
class MoneyHold:
    """The money that one model call holds against each of its budgets while it runs.

    usd: the worst-case cost, or the least cost if the worst case is unknown (`is_blind`).
    leaves_room: whether a budget with the cap action `finish` must keep as much again for the turn's last answer.
    """

    windows: tuple[BudgetWindow, ...]
    usd: float
    is_blind: bool = False
    leaves_room: bool = True


def reservation_for(
    windows: Sequence[BudgetWindow], usd: float | None, least_usd: float | None, *, leaves_room: bool = True
) -> MoneyHold | None:
    """Return the money that a call must hold, or None if no budget applies.

    `usd` is the worst-case cost. If it is unknown (None), `least_usd` is held.
    """
    if not windows:
        return None
    known = usd if usd is not None else least_usd or 0.0
    return MoneyHold(tuple(windows), known, is_blind=usd is None, leaves_room=leaves_room)


@dataclass(frozen=True, slots=True)
class MoneyGrant:
    """The total US dollars that a window was granted. `spent_before` is the first value of a new counter.

    is_all: whether this is the whole cap.
    returned_usd: the amount returned to the home cell, if cells share the budget.
    has_noticed: whether this grant has passed four fifths of the cap.
    """

    granted_usd: float
    spent_before: float
    cap_usd: float
    is_all: bool = False
    has_noticed: bool = False
    returned_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class BudgetNotice:
    """The notice that four fifths of a window's cap are granted. It is sent once for each window and cap."""

    scope: str
    per: Per
    start_ms: int
    cap_usd: float
    granted_usd: float


@dataclass(frozen=True, slots=True)
class GrantedWindow:
    """The state of one window in SQL.

    is_spent: whether a call was refused in it since it was last raised.
    noticed_usd: the cap of which four fifths were granted at `noticed_at`.
    leased_usd, returned_usd: the totals leased by the home cell and returned to it, if cells share the budget.
    """

    scope: str
    per: Per
    start_ms: int
    granted_usd: float
    raised_usd: float
    is_spent: bool
    noticed_usd: float | None = None
    noticed_at: datetime | None = None
    leased_usd: float = 0.0
    returned_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowCounter:
    """The counters of a window in Redis, and the number of turns that are parked for its budget."""

    spent_usd: float = 0.0
    held_usd: float = 0.0
    in_flight: int = 0
    parked: int = 0


@dataclass(frozen=True, slots=True)
class AtCap:
    """A spent budget, and the action (`what`) for the window that began at `start_ms`.

    `wait` means that calls in flight may leave some of it unspent.
    """

    what: Literal["park", "refuse", "finish", "wait"]
    window: BudgetWindow
    start_ms: int

    @property
    def name(self) -> str:
        return f"budget {self.window.name}"


def user_of(session_id: str) -> str | None:
    """Return the prefix of its user's sessions: `acme:ann:` for `acme:ann:7`, or None for a session without a user."""
    parts = session_id.split(PREFIX_BOUNDARY)
    return PREFIX_BOUNDARY.join(parts[:2]) + PREFIX_BOUNDARY if len(parts) > 2 else None


def scopes_of(session_id: str, brain: str) -> dict[str, str]:
    """Return the scopes that a call of this session and brain counts against, by kind."""
    scopes = {"all": "all", "tenant": f"tenant {tenant_of(session_id)}", "brain": f"brain {brain}"}
    user = user_of(session_id)
    return scopes if user is None else scopes | {"user": f"user {user}"}


def budgets_for(budgets: Sequence[Budget], session_id: str, brain: str) -> list[tuple[str, Budget]]:
    """Return the budgets that apply to a call, each with its scope.

    A budget for one tenant, user or brain replaces the budget for each of them with the same period.
    """
    chosen: dict[tuple[str, Per], Budget] = {}
    for kind, scope in scopes_of(session_id, brain).items():
        for budget in budgets:
            if budget.scope == scope or (budget.scope == kind and (scope, budget.per) not in chosen):
                chosen[scope, budget.per] = budget
    return [(scope, budget) for (scope, _), budget in chosen.items()]


def window_starts(per: Per, at_ms: int, zone: str) -> tuple[int, ...]:
    """Return the start times of the previous, the current and the next two windows, in ms.

    Days and months follow the time zone `zone`.
    """
    at = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(zone))
    if per == "hour":
        begin = at_ms - at_ms % 3_600_000
        return tuple(begin + hours * 3_600_000 for hours in (-1, 0, 1, 2))
    if per == "day":
        # When clocks are set back, midnight may come twice, as in the Azores. The day then begins at the first one.
        day = at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        return tuple(_ms(day + timedelta(days=days)) for days in (-1, 0, 1, 2))
    months = at.year * 12 + at.month - 1
    return tuple(
        _ms(datetime((months + more) // 12, (months + more) % 12 + 1, 1, tzinfo=at.tzinfo)) for more in (-1, 0, 1, 2)
    )


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def check_budget(scope: str, per: str, usd: object, at_cap: str = "park") -> Budget:
    """Return a checked budget. Raises InvalidInput naming the field."""
    kind, _, name = scope.partition(" ")
    if kind not in SCOPE_KINDS or (kind == "all" and name) or (name and not _NAME.fullmatch(name)):
        raise InvalidInput("scope", f"{scope!r} is not all, tenant, user, brain, or one of them such as `tenant acme:`")
    if kind in ("tenant", "user") and name and not name.endswith(PREFIX_BOUNDARY):
        raise InvalidInput("scope", f"{scope!r} must end with a colon, as a prefix of session ids: write `{scope}:`")
    if per not in PERIODS:
        raise InvalidInput("per", f"{per!r} is not one of {', '.join(PERIODS)}")
    if at_cap not in CAP_ACTIONS:
        raise InvalidInput("at_cap", f"{at_cap!r} is not one of {', '.join(CAP_ACTIONS)}")
    return Budget(scope=scope, per=per, usd=check_usd(usd), at_cap=at_cap)


def check_usd(usd: object, field: str = "usd") -> float:
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not math.isfinite(usd) or not 0 <= usd <= MAX_USD:
        raise InvalidInput(field, f"{usd!r} must be a number of US dollars, 0 or more")
    return float(usd)


def parse_budgets(text: str) -> tuple[Budget, ...]:
    """Return the budgets of BRAINQ_BUDGETS. Raises ValueError, which shows the problem and the format."""
    found: dict[tuple[str, str], Budget] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        words = entry.split()
        amounts = [word for word in words if "=" in word]
        at_cap = [word for word in words[1:] if word in CAP_ACTIONS]
        scope = " ".join(word for word in words if word not in (*amounts, *at_cap))
        if not amounts or len(at_cap) > 1:
            raise ValueError(f"{entry!r} has no amount, or more than one action at the cap; {BUDGET_FORM}")
        for amount in amounts:
            per, _, usd = amount.partition("=")
            try:
                budget = check_budget(scope, per, float(usd), *at_cap)
            except InvalidInput as wrong:
                raise ValueError(f"{wrong}; {BUDGET_FORM}") from None
            except ValueError:
                raise ValueError(f"{amount!r} is not a period and an amount, such as day=5; {BUDGET_FORM}") from None
            if (scope, per) in found:
                raise ValueError(f"the budget of {scope!r} per {per} is given twice; put it into one entry")
            found[scope, per] = budget
    return tuple(found.values())


def merge_budgets(standing: Iterable[Budget], defaults: Iterable[Budget]) -> tuple[Budget, ...]:
    """Return the budgets of SQL, and the budgets of the settings that SQL does not replace."""
    return tuple(({(one.scope, one.per): one for one in defaults} | {(s.scope, s.per): s for s in standing}).values())

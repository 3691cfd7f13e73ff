"""The budgets that model calls are held to: what SQL grants to their windows, and what happens at a cap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from brainq.contracts.budget_lease import is_shared
from brainq.contracts.budgets import (
    PERIODS,
    AtCap,
    Budget,
    BudgetState,
    BudgetWindow,
    GrantedWindow,
    MoneyGrant,
    MoneyRefusal,
    Per,
    budgets_for,
    check_budget,
    check_usd,
    merge_budgets,
    reservation_for,
    window_starts,
)
from brainq.errors import BudgetSpent, CellUnreachable, InvalidInput
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.money import RedisMoney
    from brainq.adapters.sql.repositories.budgets import Budgets

log = logger("brainq.people")
READ_AGAIN_S = 60.0  # in case the message about a budget that was set is lost
UNHEARD_S = 10.0
RETRY_S = 5.0
MAX_WINDOWS_LISTED = 10_000


@dataclass(eq=False, kw_only=True)
class BudgetDesk:
    """The budgets in force. Thread-safe; it costs a turn nothing if there are no budgets.

    defaults   the budgets of the settings
    listen     subscribes to the budgets that other processes set
    """

    rows: Budgets
    counters: RedisMoney
    defaults: Sequence[Budget]
    zone: str
    listen: Callable[[], None]
    _known: tuple[Budget, ...] = field(init=False)
    _stale_at: float = field(default=0.0, init=False)
    _offset_s: float | None = field(default=None, init=False)
    _clock_stale_at: float = field(default=0.0, init=False)
    _epoch: str = field(default="", init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._known = tuple(self.defaults)

    def forget(self) -> None:
        """Have the budgets read again before the next call."""
        self._stale_at = 0.0

    def budgets(self) -> tuple[Budget, ...]:
        """Return the budgets in force. A budget that was set wins over the settings."""
        if time.monotonic() >= self._stale_at:
            self.listen()
            self._read(READ_AGAIN_S)
        return self._known

    def _read(self, good_for_s: float) -> None:
        with self._lock:
            self._stale_at = time.monotonic() + good_for_s
            try:
                self._known = merge_budgets(self.rows.standing(), self.defaults)
            except Exception as failure:  # SQL is unavailable: the known budgets stay in force
                self._stale_at = time.monotonic() + RETRY_S
                log.warning("budgets not read", why=type(failure).__name__)

    def windows(self, session_id: str, brain: str) -> tuple[BudgetWindow, ...]:
        """Return the budgets of a model call, each with its windows around now. In most deployments there are none."""
        budgets = self.budgets()
        if not budgets:
            return ()
        now_ms = self._now_ms()
        return tuple(
            BudgetWindow(scope, budget, window_starts(budget.per, now_ms, self.zone))
            for scope, budget in budgets_for(budgets, session_id, brain)
        )

    def grant(self, windows: Sequence[BudgetWindow], refusal: MoneyRefusal) -> AtCap | None:
        """Ask SQL for the money that a refused call needs. Returns None if it was granted, so that the call can try
        again."""
        window = next(each for each in windows if each.name == refusal.window)
        if refusal.why == "wait":
            return AtCap("wait", window, refusal.start_ms)
        try:
            granted = self.rows.grant(window.scope, window.budget, refusal)
        except CellUnreachable:  # other cells or home have the rest, which is unknown now
            return AtCap("wait", window, refusal.start_ms)
        if granted is None:
            waits = refusal.in_flight > 0
            return AtCap("wait" if waits else window.budget.at_cap, window, refusal.start_ms)
        self.counters.grant(window, refusal.start_ms, granted)
        if granted.has_noticed:
            log.warning("budget is nearly spent", budget=window.name, cap_usd=granted.cap_usd)
        return None

    def reserve(
        self, call_id: str, session_id: str, brain: str, usd: float | None, least_usd: float | None
    ) -> str | None:
        """Reserve money for a model call that is made after its turn has ended. Idempotent by `call_id`.

        usd   the worst-case cost; None if it is unknown

        Returns the name of the budget that refused the call, or None.
        """
        windows = self.windows(session_id, brain)
        hold = reservation_for(windows, usd, least_usd, leaves_room=False)
        while hold and (refusal := self.counters.take(call_id, hold)):
            if (at_cap := self.grant(windows, refusal)) is not None:
                return at_cap.name
        return None

    def settle(self, call_id: str, usd: float) -> None:
        """Replace the reservation of a call by its cost."""
        self.counters.settle(call_id, usd)

    def queue_key(self, at_cap: AtCap) -> str:
        """Return the key of the queue in which turns wait for the budget."""
        return self.counters.line(at_cap.window)

    def remaining_ms(self, at_cap: AtCap) -> int:
        """Return how long the window of the budget lasts from now on."""
        return max(1000, at_cap.window.end_ms(at_cap.start_ms) - self._now_ms())

    def require(self, session_id: str, brain: str) -> None:
        """Raise BudgetSpent if a budget refuses new turns. For producers, which do not subscribe to budgets."""
        if time.monotonic() >= self._stale_at:
            self._read(UNHEARD_S)
        for window in self.windows(session_id, brain):
            start_ms = window.starts[1]
            if window.budget.at_cap == "refuse" and self.rows.is_spent(window.scope, window.budget.per, start_ms):
                raise BudgetSpent(window.name, _at(window.end_ms(start_ms)))

    def restore(self, epoch: str) -> None:
        """Bring Redis what SQL has granted, if `epoch` shows that Redis may have lost data."""
        if epoch == self._epoch:
            return
        if self.budgets():
            starts = self._starts()
            self.counters.restore([_granted(row, starts[row.per]) for row in self._windows(starts)])
        self._epoch = epoch

    def shared_windows(self) -> list[tuple[BudgetWindow, GrantedWindow]]:
        """Return the present windows of the budgets that several cells share."""
        budgets = self.budgets()
        if not any(is_shared(budget.scope) for budget in budgets):
            return []
        starts, found = self._starts(), list[tuple[BudgetWindow, GrantedWindow]]()
        for row in self._windows(starts):
            kind = row.scope.partition(" ")[0]
            by_scope = {one.scope: one for one in budgets if one.per == row.per}
            budget = by_scope.get(row.scope) or by_scope.get(kind)
            if budget is not None and is_shared(row.scope):
                found.append((BudgetWindow(row.scope, budget, starts[row.per]), row))
        return found

    def _starts(self) -> dict[Per, tuple[int, ...]]:
        now_ms = self._now_ms()
        return {per: window_starts(per, now_ms, self.zone) for per in PERIODS}

    def _windows(self, starts: Mapping[Per, tuple[int, ...]]) -> list[GrantedWindow]:
        """Return the present windows."""
        rows = self.rows.windows(min(each[1] for each in starts.values()))
        return [row for row in rows if row.start_ms == starts[row.per][1]]

    def list(self) -> list[BudgetState]:
        """Return each budget in its present window. A budget of each tenant, user or brain is listed for each in whose
        window money was spent."""
        budgets, starts = self.budgets(), self._starts()
        rows = {(row.scope, row.per): row for row in self._windows(starts)}
        found: dict[tuple[str, str], Budget] = {(one.scope, one.per): one for one in budgets if not one.is_of_each}
        for scope, per in rows:
            kind = scope.partition(" ")[0]
            of_each = next((one for one in budgets if (one.scope, one.per) == (kind, per)), None)
            if of_each is not None:
                found.setdefault((scope, per), of_each)
        places = [(f"{scope}/{per}", starts[budget.per][1]) for (scope, per), budget in found.items()]
        counted = self.counters.counters(places[:MAX_WINDOWS_LISTED])
        states: list[BudgetState] = []
        for ((scope, per), budget), count in zip(found.items(), counted, strict=False):
            row = rows.get((scope, per))
            states.append(
                BudgetState(
                    scope=scope,
                    per=budget.per,
                    usd=budget.usd,
                    at_cap=budget.at_cap,
                    raised_usd=0.0 if row is None else row.raised_usd,
                    spent_usd=max(0.0, count.spent_usd),
                    held_usd=max(0.0, count.held_usd),
                    in_flight=count.in_flight,
                    parked=count.parked,
                    is_spent=row is not None and row.is_spent,
                    noticed_at=_noticed_at(row, budget),
                    begins_at=_at(starts[budget.per][1]),
                    ends_at=_at(starts[budget.per][2]),
                )
            )
        of_each = [one for one in budgets if one.is_of_each]
        states += [
            BudgetState(
                scope=f"{one.scope} (each)",
                **one.model_dump(exclude={"scope"}),
                begins_at=_at(starts[one.per][1]),
                ends_at=_at(starts[one.per][2]),
            )
            for one in of_each
        ]
        return sorted(states, key=lambda state: (state.scope, state.per))

    def set(self, scope: str, per: str, usd: float | None, at_cap: str, by: str) -> None:
        """Set a budget. With `usd` None the budget of the settings applies again. Turns that are parked for the budget
        try again. Raises InvalidInput."""
        budget = check_budget(scope, per, 0 if usd is None else usd, at_cap)
        self.rows.set(budget.scope, budget.per, None if usd is None else budget.usd, budget.at_cap, by)
        self.forget()
        self.counters.tell()
        self.counters.resume(f"{scope}/{per}")

    def raise_by(self, scope: str, per: str, usd: float, by: str) -> float:
        """Raise the cap of the present window by `usd`, and resume the turns that are parked for it. Returns the new
        cap. Raises InvalidInput if there is no such budget."""
        budget = self._budget_of(scope, per)
        start_ms = window_starts(budget.per, self._now_ms(), self.zone)[1]
        cap = self.rows.raise_by(scope, budget, start_ms, check_usd(usd), by)
        resumed = self.resume(scope, budget.per)
        log.info("budget was raised", budget=f"{scope}/{per}", cap_usd=cap, by=by, resumed=resumed)
        return cap

    def resume(self, scope: str, per: str) -> int:
        """Resume the turns that are parked for the budget, and accept new ones. Returns how many were parked."""
        start_ms = window_starts(self._budget_of(scope, per).per, self._now_ms(), self.zone)[1]
        self.rows.mark_spent(scope, per, start_ms, is_spent=False)
        return self.counters.resume(f"{scope}/{per}")

    def _budget_of(self, scope: str, per: str) -> Budget:
        kind = scope.partition(" ")[0]
        for wanted in (scope, kind):
            for budget in self.budgets():
                if budget.scope == wanted and budget.per == per and (wanted != kind or scope != kind or kind == "all"):
                    return budget
        raise InvalidInput("scope", f"there is no budget of {scope!r} by {per}; `brainq budgets list` has them")

    def _now_ms(self) -> int:
        """Return the time of Redis' clock, counted on from its last reading. It is read again now and then: after a
        suspension of the machine, or a correction of the clock, the window would be wrong for ever.
        """
        if self._offset_s is None or time.monotonic() >= self._clock_stale_at:
            self._clock_stale_at = time.monotonic() + READ_AGAIN_S
            try:
                self._offset_s = self.counters.now_ms() / 1000 - time.monotonic()
            except Exception:  # Redis is unavailable: the last reading is used
                if self._offset_s is None:
                    raise
        return int((time.monotonic() + self._offset_s) * 1000)


def _granted(row: GrantedWindow, starts: tuple[int, ...]) -> tuple[BudgetWindow, int, MoneyGrant]:
    window = BudgetWindow(row.scope, Budget(scope=row.scope, per=row.per, usd=0.0), starts)
    usd = row.granted_usd
    return window, row.start_ms, MoneyGrant(usd, usd, usd, returned_usd=row.returned_usd)


def _noticed_at(row: GrantedWindow | None, budget: Budget) -> datetime | None:
    """Return when people were notified about the present cap. A raised cap is notified again."""
    return row.noticed_at if row is not None and row.noticed_usd == budget.usd + row.raised_usd else None


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)

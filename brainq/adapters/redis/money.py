"""Budgets in Redis: the reservations of model calls, the grants of windows, and the queues of turns that wait for
budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast

from brainq.adapters.redis.connection import Client
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_methods import Parameter, script
from brainq.adapters.redis.scripts import Scripts
from brainq.contracts.budgets import BudgetWindow, MoneyGrant, MoneyHold, MoneyRefusal, WindowCounter

KEEP_MS = 86_400_000
AT_ONCE = 500
LEAST_USD = 1e-6  # A smaller amount is not worth giving back.
MAX_RESUMED = 10_000  # The maximum number of turns that one raise resumes at once.


def read_money_refusal(
    why: Literal["wait", "short"], window: str, start: int, wanted: str, expected: str, in_flight: int, is_new: bool
) -> MoneyRefusal:
    """Return the reply MONEY of a script as a contract."""
    return MoneyRefusal(why, window, start, float(wanted), float(expected), in_flight, is_new)


class RedisMoney:
    """The counters of budgets in Redis."""

    def __init__(self, scripts: Scripts, client: Client, keys: Keys) -> None:
        self._scripts = scripts
        self._client = client
        self._keys = keys
        self._on_set: list[Callable[[], None]] = []

    def on_set(self, callback: Callable[[], None]) -> None:
        """Register a function to call when any process has set a budget, or may have done so."""
        self._on_set.append(callback)

    def receive_set(self, _: str) -> None:
        """Handle the message that a process has set a budget."""
        self.catch_up()

    def catch_up(self) -> None:
        """Read the budgets again, because one may have been set while this process was not subscribed."""
        for callback in self._on_set:
            callback()

    def now_ms(self) -> int:
        seconds, micros = self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    @script("money_grant")
    def _grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant, keep_ms: int) -> None: ...

    def grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant) -> None:
        """Set the total grant of the window's counter. A new counter, or one of another Redis, begins with
        `spent_before`."""
        self._grant(window, start_ms, grant, max(KEEP_MS, window.end_ms(start_ms) - start_ms) + KEEP_MS)

    def restore(self, granted: Sequence[tuple[BudgetWindow, int, MoneyGrant]]) -> None:
        """Set the counters in Redis to the amounts that SQL had granted, because another Redis may have replaced the
        earlier one. Missing counters start with these amounts when they are next used."""
        for first in range(0, len(granted), AT_ONCE):
            some = granted[first : first + AT_ONCE]
            there = self._client.many([("EXISTS", self._counter(window, start)) for window, start, _ in some])
            for one, is_there in zip(some, there, strict=True):
                if is_there:
                    self.grant(*one)

    @script("money_return", least=LEAST_USD, RETURNED=float, BUSY=None)
    def give_back(self, window: BudgetWindow, start_ms: int) -> float | None:
        """Take the rest out of the window's counter. Returns the total that was returned so far, or None while a call
        is in flight."""
        ...

    def _counter(self, window: BudgetWindow, start_ms: int) -> str:
        return f"{self._keys.money('w', window.name)}:{start_ms}"

    def line(self, window: BudgetWindow) -> str:
        """Return the key of the queue of turns that are parked for a window."""
        return self._keys.money("line", window.name)

    @script("money_resume", most=MAX_RESUMED, OK=int)
    def resume(self, name: str) -> int:
        """Let the turns that are parked for a budget, such as `tenant acme:/day`, try again, in the order of their
        queue. Returns their number."""
        ...

    @script("money_take", money=Parameter("hold"), keep_ms=KEEP_MS, GO=None, MONEY=read_money_refusal)
    def take(self, call_id: str, hold: MoneyHold) -> MoneyRefusal | None:
        """Reserve the worst case of a call, once. Returns None if the call may begin."""
        ...

    @script("money_settle")
    def settle(self, call_id: str, usd: float) -> None:
        """Replace the reservation of a call that has ended by its cost."""
        ...

    def counters(self, windows: Sequence[tuple[str, int]]) -> list[WindowCounter]:
        """Return the counters of the given windows, in order. A window is its name and its start in milliseconds."""
        reads: list[tuple[str | int, ...]] = []
        for name, start_ms in windows:
            reads.append(("HMGET", f"{self._keys.money('w', name)}:{start_ms}", "spent", "held", "n", "returned"))
            reads.append(("ZCARD", self._keys.money("line", name)))
        found = self._client.many(reads) if reads else []
        return [
            WindowCounter(float(row[0] or 0) - float(row[3] or 0), float(row[1] or 0), int(row[2] or 0), int(parked))
            for row, parked in zip(cast("list[list[str | None]]", found[::2]), found[1::2], strict=True)
        ]

    def tell(self) -> None:
        """Notify every process to read the budgets again."""
        self._client.publish(self._keys.budgets, "set")

"""Budgets in Redis: what a model call is held against, what windows were granted, and who waits in their lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import cast

from brainq.contracts.budgets import BudgetWindow, MoneyGrant, MoneyHold, MoneyRefusal, WindowCounter
from brainq.state.connection import Client
from brainq.state.keys import Keys
from brainq.state.typed_scripts import AuxBeginMoney, MoneyTakeMoney, Scripts, StepBeginMoney

KEEP_MS = 86_400_000
AT_ONCE = 500
LEAST_USD = 1e-6  # that is worth giving back
MAX_RESUMED = 10_000  # turns that one raise has looked at at once


def money_refusal(reply: StepBeginMoney | AuxBeginMoney | MoneyTakeMoney) -> MoneyRefusal:
    return MoneyRefusal(
        reply.why, reply.window, reply.start, float(reply.wanted), float(reply.expected), reply.in_flight, reply.is_new
    )


def money_json(keys: Keys, hold: MoneyHold | None) -> str:
    """Return the argument `money` of scripts. Returns "" if no budget applies."""
    if hold is None:
        return ""
    windows = [
        {
            "key": keys.money("w", window.name) + ":",
            "name": window.name,
            "trust": keys.money("trust", window.scope),
            "starts": window.starts,
            "room": 2 if hold.leaves_room and window.budget.at_cap == "finish" else 1,
        }
        for window in hold.windows
    ]
    return json.dumps({"usd": hold.usd, "blind": hold.is_blind, "windows": windows})


class RedisMoney:
    """Fits `ports.people.MoneyCounters`."""

    def __init__(self, scripts: Scripts, client: Client, keys: Keys) -> None:
        self._scripts = scripts
        self._client = client
        self._keys = keys
        self._on_set: list[Callable[[], None]] = []

    def on_set(self, callback: Callable[[], None]) -> None:
        """Call it when a budget was set by any process, or may have been."""
        self._on_set.append(callback)

    def receive_set(self, _: str) -> None:
        """Some process has set a budget."""
        self.catch_up()

    def catch_up(self) -> None:
        """One may have been set while nobody here listened."""
        for callback in self._on_set:
            callback()

    def now_ms(self) -> int:
        seconds, micros = self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def grant(self, window: BudgetWindow, start_ms: int, grant: MoneyGrant) -> None:
        """Let the window's counter have so much in all; a new one, or another Redis', begins with `spent_before`."""
        keep_ms = max(KEEP_MS, window.end_ms(start_ms) - start_ms) + KEEP_MS
        self._scripts.money_grant(
            counter=self._counter(window, start_ms),
            granted=grant.granted_usd,
            spent=grant.spent_before,
            is_full=grant.is_all,
            returned=grant.returned_usd,
            keep_ms=keep_ms,
        ).run()

    def restore(self, granted: Sequence[tuple[BudgetWindow, int, MoneyGrant]]) -> None:
        """Another Redis may have taken this one's place: counters that it has come to what SQL had granted, by window
        and begin. Those that it lost begin so when they are next asked."""
        for first in range(0, len(granted), AT_ONCE):
            some = granted[first : first + AT_ONCE]
            there = self._client.many([("EXISTS", self._counter(window, start)) for window, start, _ in some])
            for one, is_there in zip(some, there, strict=True):
                if is_there:
                    self.grant(*one)

    def give_back(self, window: BudgetWindow, start_ms: int) -> float | None:
        """Take what is left out of the window's counter: how much was ever; None while a call is in flight."""
        reply = self._scripts.money_return(counter=self._counter(window, start_ms), least=LEAST_USD).run()
        return None if reply == "BUSY" else float(reply.returned)

    def _counter(self, window: BudgetWindow, start_ms: int) -> str:
        return f"{self._keys.money('w', window.name)}:{start_ms}"

    def line(self, window: BudgetWindow) -> str:
        """The key of the line of turns that are parked for it."""
        return self._keys.money("line", window.name)

    def resume(self, name: str) -> int:
        """Turns that are parked for this budget, such as `tenant acme:/day`, ask again, in the order of their line."""
        line = self._keys.money("line", name)
        return self._scripts.money_resume(parked_line=line, prefix=self._keys.prefix, most=MAX_RESUMED).run().resumed

    def take(self, call_id: str, hold: MoneyHold) -> MoneyRefusal | None:
        """Take a call's worst case, once. None: it may begin."""
        ticket, money = self._keys.money("call", call_id), money_json(self._keys, hold)
        reply = self._scripts.money_take(ticket=ticket, money=money, keep_ms=KEEP_MS).run()
        return money_refusal(reply) if isinstance(reply, MoneyTakeMoney) else None

    def settle(self, call_id: str, usd: float) -> None:
        """The call is over, and has cost so much."""
        self._scripts.money_settle(ticket=self._keys.money("call", call_id), usd=usd).run()

    def counters(self, windows: Sequence[tuple[str, int]]) -> list[WindowCounter]:
        """What there is of windows, by name and begin."""
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
        """Every process reads the budgets again."""
        self._client.publish(self._keys.budgets, "set")

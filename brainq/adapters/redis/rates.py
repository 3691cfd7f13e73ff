"""The limits of models' services in Redis: one count for the whole fleet."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import cast

from brainq.adapters.redis.connection import Client, Command
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_methods import Parameter, script
from brainq.adapters.redis.scripts import Scripts
from brainq.contracts.fleet import FleetModel
from brainq.contracts.limit_share import LEASE_S, ShareReport
from brainq.contracts.rate import (
    EMPTY_RATE_REPORT,
    NO_RATE,
    QueueTicket,
    Rate,
    RateLimitKind,
    RateReport,
    RateRules,
    RateWait,
    TokenCount,
)

WINDOW_S = 60.0
SLACK_SHARE = 1 / 12  # A part of the window, 5 s, within which a request that has got its place arrives.
LEARNED_S = 3600.0
REPORT_AGAIN_S = 300.0  # Facts that every answer repeats are not written more often.
MAX_WAIT_S = 86_400.0
ASKER_KEPT_MS = 4000  # For this long, the other processes of the cell leave it to the one that requests shares.
MAX_STOP_S = 300.0  # If a service asks for a longer pause, one request tries it after this time.
_OF_RULE = ("set_requests", "set_tokens", "requests", "tokens", "learned_until", "stopped_until")


def _wait(wait_ms: int, what: RateLimitKind, most: int) -> RateWait:
    return RateWait(wait_ms / 1000, what, most)


def _late(wait_ms: int, what: RateLimitKind, most: int) -> RateWait:
    return RateWait(wait_ms / 1000, what, most, is_late=True)


def _seen(mark: int, share: int, used: int, waits: bool, requests: int) -> tuple[int, int, int, bool, int]:
    return mark, share, used, waits, requests


class RedisRates:
    """The limits of models in one Redis.

    `name` is a model at one account: `provider:model`, then ` #` and a word for the account if there are several.

    A process contacts Redis only about models that are limited, by a setting or by what a process has learned of their
    service. Every process learns of these (`receive_learned`, `catch_up`).

    listen   starts listening; called before the first request for a model
    shared   True if several cells share a model's limits, and this cell has a share from the home cell
    asker    this process's name as the one that requests shares from the home cell
    """

    def __init__(
        self,
        scripts: Scripts,
        rates: RateRules,
        listen: Callable[[], None] = lambda: None,
        *,
        shared: bool = False,
        asker: str = "",
    ) -> None:
        self._scripts = scripts
        self._keys = scripts.keys
        self._rates = rates
        self._listen = listen
        self._shared = shared
        self._asker = asker
        self.any_limited = bool(rates.by_name)
        self._hears = False
        self._window_ms = int(WINDOW_S * 1000)
        self._slack_ms = int(WINDOW_S * SLACK_SHARE * 1000)
        self._lock = threading.Lock()
        self._learned: dict[str, float] = {}  # Until when each limit applies, by time.monotonic().
        self._reported: dict[str, tuple[RateReport, float]] = {}

    def is_limited(self, name: str) -> bool:
        """Return whether anything limits the model, without a round trip."""
        if not self._hears:
            self._hears = True
            self._listen()
        if not self.any_limited:
            return False  # Most deployments have no limits.
        rate = self._rates.for_model(_model_name(name))
        if rate is None:
            return False
        return rate != "unknown" or time.monotonic() < self._learned.get(name, 0.0)

    def receive_learned(self, name: str) -> None:
        """Handle the message that a process has learned a limit of this model's service."""
        with self._lock:
            self._learned[name] = time.monotonic() + LEARNED_S
            self.any_limited = True

    def catch_up(self) -> None:
        """Read the limits that were learned while this process was not subscribed."""
        seconds, _ = self._scripts.client.time()
        for name, until_ms in learned(self._scripts.client, self._keys, seconds * 1000):
            with self._lock:
                self._learned[name] = time.monotonic() + until_ms / 1000 - seconds
                self.any_limited = True

    def take(
        self, name: str, place: str, ticket: str, tokens: int, max_wait_s: float, rank: int = 2, estimated: int = 0
    ) -> RateWait | None:
        """Take a place for one request. Returns None, or how long to wait before asking again with the same ticket."""
        rate = self._rate(name)
        most_wait_ms = int(min(max_wait_s, MAX_WAIT_S) * 1000)
        while True:
            begun_at = time.monotonic()
            wait = self._take(name, place, ticket, rank, tokens, estimated, rate.requests, rate.tokens, most_wait_ms)
            # If Redis, or this process, was slow, the request could arrive when its place no longer counts.
            if wait is not None or (time.monotonic() - begun_at) * 2000 < self._slack_ms:
                return wait
            place += "+"

    @script("rate_take", GO=None, WAIT=_wait, LATE=_late)
    def _take(
        self,
        model: str,
        place: str,
        ticket: str,
        rank: int,
        tokens: int,
        estimated: int,
        requests_most: int | None,
        tokens_most: int | None,
        most_wait_ms: int,
    ) -> RateWait | None: ...

    @script("rate_leave")
    def leave(self, ticket: QueueTicket) -> None:
        """Leave the queue of a model."""
        ...

    def settle(
        self, name: str, place: str, used: int | TokenCount | None, answered_s: float | None, report: RateReport
    ) -> bool:
        """Record the outcome of a request. Writes nothing if nothing limits the model and nothing is new. Returns False
        if the limits that its service reports are not observed.

        answered_s   how long ago the answer began
        """
        if self._rates.for_model(_model_name(name)) is None:
            return False
        report = self._new_of(name, report)
        if report == EMPTY_RATE_REPORT and not self.is_limited(name):
            return True
        count, plain = (used, None) if isinstance(used, TokenCount) else (None, used)
        self._settle(
            name,
            place,
            place,
            used=count.used if count else plain,
            estimated=count.estimated if count else None,
            counted=count.counted if count else None,
            answered_s=answered_s,
            requests=report.requests,
            tokens=report.tokens,
            stop_s=min(report.stop_s, MAX_STOP_S),
            probes=report.stop_s > MAX_STOP_S,
        )
        if report != EMPTY_RATE_REPORT:
            self.receive_learned(name)
        return True

    @script("rate_settle")
    def _settle(
        self,
        model: str,
        place: str,
        mark: str,
        *,
        used: int | None,
        estimated: int | None,
        counted: int | None,
        answered_s: float | None,
        requests: int | None,
        tokens: int | None,
        stop_s: float,
        probes: bool,
    ) -> None: ...

    @script("rate_report", model=Parameter("name"))
    def report(self, name: str, place: str, count: TokenCount, is_all: bool) -> None:
        """Record what an open stream has reported: the tokens used, and those that its reply may still use. With
        `is_all` no further tokens can come."""
        ...

    def share_reports(self) -> list[ShareReport]:
        """Return this cell's share and use of each limited model that was called within a day. Only one process
        gets it."""
        found: list[ShareReport] = []
        for name in cast("Sequence[str]", self._scripts.client.zrange(self._keys.limited, 0, -1)):
            rate = self._rate(name)
            seen = self._look(name, uuid.uuid4().hex, rate.requests, rate.tokens)
            if seen is not None:
                mark, share, used, waits, requests = seen
                found.append(ShareReport(name, mark, share, used, waits, requests or None))
        return found

    @script("share_look", keep_ms=ASKER_KEPT_MS, SEEN=_seen, OTHER=None, FREE=None)
    def _look(
        self, model: str, look: str, requests_most: int | None, tokens_most: int | None
    ) -> tuple[int, int, int, bool, int] | None: ...

    @script("share_put", for_ms=int(LEASE_S * 1000), PUT=True, OLD=False)
    def put_share(self, report: ShareReport, share: int) -> bool:
        """Set the cell's share of a model until it lapses. Returns False if another process has reported since."""
        ...

    def models(self) -> tuple[FleetModel, ...]:
        """Return all models that are limited and were called, or learned of, within a day. The set limits are those
        that the last callers had, whichever process reads this."""
        client = self._scripts.client
        clock, names = client.many([("TIME",), ("ZRANGE", self._keys.limited, 0, -1)])
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        reads: list[Command] = []
        for name in names:
            reads += [
                ("ZCOUNT", self._keys.rate(name, "places"), f"({now_ms}", "+inf"),
                ("ZCARD", self._keys.rate(name, "line")),
                ("HMGET", self._keys.rate(name, "rule"), *_OF_RULE),
            ]
        found = client.many(reads) if reads else []
        return tuple(_fleet_model(name, *found[3 * i : 3 * i + 3], now_ms=now_ms) for i, name in enumerate(names))

    def _new_of(self, name: str, report: RateReport) -> RateReport:
        """Return the part of a report that was not reported a moment ago."""
        limits = RateReport(report.requests, report.tokens)
        before, at = self._reported.get(name, (EMPTY_RATE_REPORT, 0.0))
        if report.stop_s <= 0 and limits == before and time.monotonic() - at < REPORT_AGAIN_S:
            return EMPTY_RATE_REPORT
        if limits != EMPTY_RATE_REPORT:
            self._reported[name] = (limits, time.monotonic())
        return report

    def _rate(self, name: str) -> Rate:
        rate = self._rates.for_model(_model_name(name))
        return rate if isinstance(rate, Rate) else NO_RATE


def learned(client: Client, keys: Keys, now_ms: int) -> Sequence[tuple[str, float]]:
    """Return the names of models with a learned limit, and until when it applies (Redis time in ms)."""
    found = client.zrangebyscore(keys.limited, f"({now_ms}", "+inf", withscores=True)
    return cast("list[tuple[str, float]]", found)


def _fleet_model(name: str, taken: int, waiting: int, rule: Sequence[str | None], *, now_ms: int) -> FleetModel:
    set_requests, set_tokens, requests, tokens, learned_until, stopped_until = (int(value or 0) for value in rule)
    is_fresh = now_ms < learned_until
    return FleetModel(
        name=_model_name(name),
        account=name.partition(" #")[2],
        requests=_smaller_limit(set_requests, requests if is_fresh else 0),
        tokens=_smaller_limit(set_tokens, tokens if is_fresh else 0),
        taken=taken,
        waiting=waiting,
        stopped_s=max(0.0, (stopped_until - now_ms) / 1000),
    )


def _smaller_limit(configured: int, learned: int) -> int | None:
    limits = [limit for limit in (configured, learned) if limit]
    return min(limits) if limits else None


def _model_name(name: str) -> str:
    return name.partition(" #")[0]

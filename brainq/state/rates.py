"""The limits of models' services in Redis: one count for the whole fleet."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, cast

from brainq.contracts.fleet import FleetModel
from brainq.contracts.limit_share import LEASE_S, ShareReport
from brainq.contracts.rate import (
    EMPTY_RATE_REPORT,
    NO_RATE,
    QueueTicket,
    Rate,
    RateReport,
    RateRules,
    RateWait,
    TokenCount,
)
from brainq.state.connection import Client, Command
from brainq.state.keys import Keys
from brainq.state.typed_scripts import RateTakeLate, RateTakeWait, Scripts, ShareLookSeen

WINDOW_S = 60.0
SLACK_SHARE = 1 / 12  # of the window: 5 s, within which a request that has got its place arrives
LEARNED_S = 3600.0
REPORT_AGAIN_S = 300.0  # what every answer repeats is written no more often
MAX_WAIT_S = 86_400.0
ASKER_KEPT_MS = 4000  # so long another process of the cell leaves it to the one that asks
MAX_STOP_S = 300.0  # a service that asks for longer is tried by one request after that
_OF_RULE = ("set_requests", "set_tokens", "requests", "tokens", "learned_until", "stopped_until")


class RedisRates:
    """Fits `ports.redis_turns.RateLimits`.

    A process asks Redis only about models that are limited: by what is set, or by what some process has learned of
    their service, which all hear (`heard`, `catch_up`).

    listen   begins to hear of it; called before the first model is asked
    shared   several cells share what limits a model, and this one has what home gave it
    asker    this process, where it asks home
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
        self._learned: dict[str, float] = {}  # until when, by time.monotonic()
        self._reported: dict[str, tuple[RateReport, float]] = {}

    def is_limited(self, name: str) -> bool:
        """Whether anything limits the model. No round trip."""
        if not self._hears:
            self._hears = True
            self._listen()
        if not self.any_limited:
            return False  # most deployments
        rate = self._rates.for_model(_model_name(name))
        if rate is None:
            return False
        return rate != "unknown" or time.monotonic() < self._learned.get(name, 0.0)

    def receive_learned(self, name: str) -> None:
        """Some process has learned a limit of this model's service."""
        with self._lock:
            self._learned[name] = time.monotonic() + LEARNED_S
            self.any_limited = True

    def catch_up(self) -> None:
        """Read what was learned while nobody here listened."""
        seconds, _ = self._scripts.client.time()
        for name, until_ms in learned(self._scripts.client, self._keys, seconds * 1000):
            with self._lock:
                self._learned[name] = time.monotonic() + until_ms / 1000 - seconds
                self.any_limited = True

    def take(
        self, name: str, place: str, ticket: str, tokens: int, max_wait_s: float, rank: int = 2, estimated: int = 0
    ) -> RateWait | None:
        """Take a place for one request: None; or wait, and ask again with the same ticket."""
        rate = self._rate(name)
        while True:
            asked_at = time.monotonic()
            reply = self._scripts.rate_take(
                **self._of(name, "places", "line", "order", "due", "rule", "tenants", "by"),
                model=name,
                place=place,
                ticket=ticket,
                rank=rank,
                tokens=tokens,
                estimated=estimated,
                requests_most=rate.requests,
                tokens_most=rate.tokens,
                window_ms=self._window_ms,
                slack_ms=self._slack_ms,
                most_wait_ms=int(min(max_wait_s, MAX_WAIT_S) * 1000),
                shared=self._shared,
            ).run()
            match reply:
                case RateTakeWait() | RateTakeLate():
                    is_late = isinstance(reply, RateTakeLate)
                    return RateWait(reply.wait_ms / 1000, reply.what, reply.most, is_late)
                case "GO":
                    if (time.monotonic() - asked_at) * 2000 < self._slack_ms:
                        return None
                    # Redis, or this process, was slow: the request could arrive after its place counts no more.
                    place += "+"

    def leave(self, ticket: QueueTicket) -> None:
        """Leave the queue; nothing where it is left."""
        keys = self._of(ticket.queue, "line", "order", "due", "rule", "tenants")
        self._scripts.rate_leave(**keys, ticket=ticket.holder).run()

    def settle(
        self, name: str, place: str, used: int | TokenCount | None, answered_s: float | None, report: RateReport
    ) -> bool:
        """What came of a request; nothing is written where nothing limits the model, and nothing is new. False: what
        its service says is not kept to."""
        if self._rates.for_model(_model_name(name)) is None:
            return False
        report = self._new_of(name, report)
        if report == EMPTY_RATE_REPORT and not self.is_limited(name):
            return True
        count, plain = (used, None) if isinstance(used, TokenCount) else (None, used)
        self._scripts.rate_settle(
            **self._of(name, "places", "rule"),
            place=place,
            model=name,
            mark=place,
            used=count.used if count else plain,
            estimated=count.estimated if count else None,
            counted=count.counted if count else None,
            answered_ms=None if answered_s is None else int(answered_s * 1000),
            window_ms=self._window_ms,
            requests=report.requests,
            tokens=report.tokens,
            stop_ms=int(min(report.stop_s, MAX_STOP_S) * 1000),
            probes=report.stop_s > MAX_STOP_S,
        ).run()
        if report != EMPTY_RATE_REPORT:
            self.receive_learned(name)
        return True

    def report(self, name: str, place: str, count: TokenCount, is_all: bool) -> None:
        """See RateLimits.report."""
        self._scripts.rate_report(
            **self._of(name, "places", "rule"),
            place=place,
            used=count.used,
            estimated=count.estimated,
            counted=count.counted,
            is_all=is_all,
        ).run()

    def share_reports(self) -> list[ShareReport]:
        """What this cell has and uses of each model that is limited and was asked within a day. One process gets it."""
        found: list[ShareReport] = []
        for name in cast("Sequence[str]", self._scripts.client.zrange(self._keys.limited, 0, -1)):
            rate = self._rate(name)
            seen = self._scripts.share_look(
                **self._of(name, "places", "line", "rule", "by"),
                look=uuid.uuid4().hex,
                asker=self._asker,
                keep_ms=ASKER_KEPT_MS,
                requests_most=rate.requests,
                tokens_most=rate.tokens,
            ).run()
            if isinstance(seen, ShareLookSeen):
                found.append(ShareReport(name, seen.mark, seen.share, seen.used, seen.waits, seen.requests or None))
        return found

    def put_share(self, report: ShareReport, share: int) -> bool:
        """From now on the cell may use this share, until it lapses. False: another process has looked since."""
        put = self._scripts.share_put(
            **self._of(report.model, "rule"), mark=report.mark, share=share, for_ms=int(LEASE_S * 1000)
        )
        return put.run() == "PUT"

    def models(self) -> tuple[FleetModel, ...]:
        """All that are limited and were asked, or learned of, within a day. What is set for one is what those who asked
        last were given, wherever this is read."""
        client = self._scripts.client
        clock, names = client.many([("TIME",), ("ZRANGE", self._keys.limited, 0, -1)])
        now_ms = int(clock[0]) * 1000 + int(clock[1]) // 1000
        reads: list[Command] = []
        for name in names:
            keys = self._of(name, "places", "line", "rule")
            reads += [
                ("ZCOUNT", keys["places"], f"({now_ms}", "+inf"),
                ("ZCARD", keys["line"]),
                ("HMGET", keys["rule"], *_OF_RULE),
            ]
        found = client.many(reads) if reads else []
        return tuple(_fleet_model(name, *found[3 * i : 3 * i + 3], now_ms=now_ms) for i, name in enumerate(names))

    def _new_of(self, name: str, report: RateReport) -> RateReport:
        """What of it was not reported a moment ago."""
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

    def _of(self, name: str, *parts: str) -> dict[str, Any]:
        return {part: self._keys.rate(name, part) for part in parts}


def learned(client: Client, keys: Keys, now_ms: int) -> Sequence[tuple[str, float]]:
    """Names of models whose service's limits are known, and until when they are held to them (ms)."""
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

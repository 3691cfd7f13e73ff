"""Places: how a call waits for its model's limit, and what it says afterwards."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from brainq import ScriptedProvider
from brainq.contracts.model import TokenUsage
from brainq.contracts.rate import QueueTicket, RateReport, RateWait, TokenCount
from brainq.engine.models.asking.deferred import PermitDeferred, Requester
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.asking.permits import permit_for, reply_with_permits, stream_with_permits
from brainq.engine.models.asking.rate_permit import PermitPolicy, account_digest
from brainq.engine.models.asking.retry import RetryPolicy, ServiceError, call_with_retry
from brainq.engine.models.asking.stall_clock import Deadline
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import says
from brainq.errors import ProviderError
from tests.support.stand_in import stand_in
from tests.unit.engine.models.requests import request

Settled = tuple[str, int | None, bool, RateReport]


@dataclass
class Limits:
    """Answers with `waits`, one after another, then lets everybody go."""

    waits: list[RateWait | Exception] = field(default_factory=list[RateWait | Exception])
    any_limited: bool = True
    taken: list[tuple[str, str, int, float]] = field(default_factory=list[tuple[str, str, int, float]])
    settled: list[Settled] = field(default_factory=list[Settled])
    ranks: list[int] = field(default_factory=list[int])
    counts: list[int | TokenCount | None] = field(default_factory=list[int | TokenCount | None])
    reports: list[tuple[TokenCount, bool]] = field(default_factory=list[tuple[TokenCount, bool]])

    def is_limited(self, name: str) -> bool:
        return self.any_limited

    def take(
        self, name: str, place: str, ticket: str, tokens: int, max_wait_s: float, rank: int = 2, estimated: int = 0
    ) -> RateWait | None:
        self.ranks.append(rank)
        self.taken.append((name, ticket, tokens, max_wait_s))
        if not self.waits:
            return None
        wait = self.waits.pop(0)
        if isinstance(wait, Exception):
            raise wait
        return wait

    def leave(self, ticket: QueueTicket) -> None:
        self.taken.append((str(ticket), "left", 0, 0.0))

    def settle(
        self, name: str, place: str, used: int | TokenCount | None, answered_s: float | None, report: RateReport
    ) -> bool:
        self.counts.append(used)
        total = used.used if isinstance(used, TokenCount) else used
        self.settled.append((name, total, answered_s is not None, report))
        return True

    def report(self, name: str, place: str, count: TokenCount, is_all: bool) -> None:
        self.reports.append((count, is_all))


def taking(limits: Limits, hold_s: float = 2.0) -> tuple[PermitPolicy, list[float]]:
    slept: list[float] = []
    return PermitPolicy(stand_in(limits), hold_s, slept.append), slept


def test_without_limits_nothing_is_asked_and_nobody_waits() -> None:
    limits = Limits(any_limited=False)
    with taking(limits)[0].activate():
        assert reply_with_permits(ScriptedProvider([says("hi")]), request()).text == "hi"
    assert limits.taken == []


def test_a_short_wait_is_slept_and_a_place_is_settled_with_what_was_used() -> None:
    limits = Limits([RateWait(1.5, "requests", 60)])
    taker, slept = taking(limits)
    with taker.activate():
        reply = reply_with_permits(ScriptedProvider([says("hi")]), request())
        *_, last = stream_with_permits(ScriptedProvider([says("hi")]), request())
    assert last.reply is not None
    assert slept == [1.5]
    assert [used for _, used, answered, _ in limits.settled if answered] == [reply.usage.total] * 2


def test_a_long_wait_is_not_slept() -> None:
    taker, slept = taking(Limits([RateWait(12.0, "requests", 60)]))
    with taker.activate(), pytest.raises(PermitDeferred) as later:
        reply_with_permits(ScriptedProvider([says("hi")]), request())
    assert (slept, later.value.wait_s, later.value.kind) == ([], 12.0, "limited")
    assert later.value.why == "scripted:m: 60 requests a minute"


def test_a_wait_past_the_deadline_is_told_at_once() -> None:
    taker, _ = taking(Limits([RateWait(90.0, "requests", 60, is_late=True)]))
    with taker.activate(), pytest.raises(ProviderError, match="comes in 90 s, past the deadline") as failure:
        reply_with_permits(ScriptedProvider([says("hi")]), request())
    assert (failure.value.kind, "raise the limit" in str(failure.value)) == ("limited", True)


def test_a_count_that_cannot_be_reached_is_no_failure_of_the_model() -> None:
    taker, _ = taking(Limits([ConnectionError("away")]), hold_s=float("inf"))
    with taker.activate(), pytest.raises(PermitDeferred, match="cannot be reached"):
        reply_with_permits(ScriptedProvider([says("hi")]), request())


def test_one_that_waits_has_the_same_ticket_when_it_comes_again() -> None:
    limits = Limits([RateWait(12.0, "stop")])
    taker, _ = taking(limits)
    asked = request(session_id="acme:7", turn_id="t1", step=1, estimate=100, max_output_tokens=50)
    with taker.activate():
        for provider in (ScriptedProvider([says("hi")]), ScriptedProvider([says("hi")])):
            try:
                reply_with_permits(provider, asked)
            except PermitDeferred:
                continue
    assert [taken[:3] for taken in limits.taken] == [("scripted:m", "acme:7 t1 1 step", 150)] * 2


def test_a_fallback_asks_the_next_model_rather_than_wait_and_stands_in_line_for_the_last() -> None:
    limits = Limits([RateWait(12.0, "requests", 60, is_late=True)])
    models = Fallback([ScriptedProvider([says(name)], name=name) for name in ("one", "two")])
    with taking(limits)[0].activate():
        assert reply_with_permits(models, request()).text == "two"
        assert [(name, most_s <= 2.0) for name, _, _, most_s in limits.taken] == [("one:one", True), ("two:two", False)]
        limits.waits = [RateWait(12.0, "requests", 60, is_late=True), RateWait(9.0, "requests", 60)]
        with pytest.raises(PermitDeferred, match="two:two"):
            reply_with_permits(models, request())
        limits.waits = []
        assert reply_with_permits(models, request()).text == "one"  # it never rested


def test_what_failed_keeps_its_place_and_its_estimate() -> None:
    limits = Limits()
    place = permit_for("p", "m", account_digest("http://a", "k"))
    with taking(limits)[0].activate():
        place = permit_for("p", "m", account_digest("http://a", "k"))
    place.acquire(request(), 5)
    place.settle()
    assert limits.settled == [(f"p:m #{account_digest('http://a', 'k')}", None, False, RateReport())]
    assert account_digest("http://a", "k") != account_digest("http://a", "l")


def test_a_429_is_waited_for_once_in_line_and_not_here() -> None:
    """The retry loop asks again at once: its next attempt waits for a place, as all do."""
    slept: list[float] = []
    shared = ServiceError("no", kind="rate_limited", retryable=True, retry_after_s=20.0)
    shared.is_shared = True
    attempts: list[ProviderError] = [shared, PermitDeferred("p:m", RateWait(20.0, "stop"))]

    def attempt() -> str:
        raise attempts.pop(0)

    policy = RetryPolicy(clock=time.monotonic, sleep=slept.append)
    with pytest.raises(PermitDeferred):
        call_with_retry(attempt, Deadline(60), policy)
    assert slept == [0.0]


def test_a_turn_that_has_not_begun_waits_whatever_its_time_and_no_longer_than_it_may() -> None:
    limits = Limits([RateWait(600.0, "requests", 60)])
    taker = PermitPolicy(stand_in(limits), 2.0, [].append, Requester(1, 900.0))
    with taker.activate(), pytest.raises(PermitDeferred) as later:
        reply_with_permits(ScriptedProvider([says("hi")]), request(timeout_s=5.0))
    assert (later.value.wait_s, limits.ranks) == (600.0, [1])
    assert later.value.ticket is not None
    assert later.value.ticket.queue == "scripted:m"
    assert limits.taken[0][3] == float("inf")  # it stands in line even if its place comes too late: others may leave
    limits.waits = [RateWait(1200.0, "requests", 60)]
    with taker.activate(), pytest.raises(PermitDeferred) as later:
        reply_with_permits(ScriptedProvider([says("hi")]), request(timeout_s=5.0))
    assert 600 < later.value.wait_s <= 900


def test_when_it_may_wait_no_longer_it_is_told_so() -> None:
    limits = Limits([RateWait(300.0, "requests", 60, is_late=True)])
    with (
        PermitPolicy(stand_in(limits), 2.0, [].append, Requester(1, 1.0)).activate(),
        pytest.raises(ProviderError, match="max_wait_s") as end,
    ):
        reply_with_permits(ScriptedProvider([says("hi")]), request())
    assert end.value.kind == "waited"
    assert limits.taken[0][3] <= 1.0


def test_what_has_begun_waits_past_its_time_and_for_a_day_at_most() -> None:
    limits = Limits([RateWait(600.0, "requests", 60)])
    with (
        PermitPolicy(stand_in(limits), 2.0, [].append, Requester(0, 86_000.0, has_begun=True)).activate(),
        pytest.raises(PermitDeferred) as later,
    ):
        reply_with_permits(ScriptedProvider([says("hi")]), request(timeout_s=5.0))
    assert later.value.wait_s == 600.0
    limits.waits = [RateWait(600.0, "requests", 60, is_late=True)]
    with (
        PermitPolicy(stand_in(limits), 2.0, [].append, Requester(0, 1.0, has_begun=True)).activate(),
        pytest.raises(ProviderError, match="past the day that a turn may wait") as end,
    ):
        reply_with_permits(ScriptedProvider([says("hi")]), request())
    assert end.value.kind == "limited"


def test_little_of_its_own_time_is_slept() -> None:
    slept: list[float] = []
    taker = PermitPolicy(stand_in(Limits([RateWait(1.5, "requests", 60)])), 2.0, slept.append, Requester(1, 900.0))
    with taker.activate(), pytest.raises(PermitDeferred):
        reply_with_permits(ScriptedProvider([says("hi")]), request(timeout_s=2.0))
    assert slept == []


def test_extraction_stands_in_no_line_and_a_judge_does() -> None:
    limits = Limits()
    model = AuxiliaryModel(ScriptedProvider([], auxiliary=lambda _: says("{}")), "m", taking(limits)[0])
    for purpose in ("memory", "judge"):
        model.ask(purpose, "system", "text", timeout_s=30.0, turn_id="t1", session_id="acme:1")
    assert [most_s <= 2.0 for *_, most_s in limits.taken] == [True, False]


def test_a_place_says_how_far_off_its_estimate_was() -> None:
    limits = Limits()
    asked = request(estimate=400, session_id="s", turn_id="t", step=1)
    with taking(limits)[0].activate():
        for most_output, usage in (
            (None, TokenUsage(input_tokens=700, output_tokens=50)),
            (200, TokenUsage(input_tokens=700, output_tokens=50)),
            (None, TokenUsage(input_tokens=400, output_tokens=50, estimated=True)),
        ):
            place = permit_for("p", "m")
            place.acquire(asked.model_copy(update={"max_output_tokens": most_output}), 5)
            place.complete(usage)
            place.settle()
    assert limits.counts == [TokenCount(750, 400, 750), TokenCount(750, 400, 700), 450]


def test_what_a_stream_tells_first_is_reported_once() -> None:
    limits = Limits()
    with taking(limits)[0].activate():
        for most_output in (None, 200):
            place = permit_for("p", "m")
            place.acquire(request(estimate=400, max_output_tokens=most_output), 5)
            place.note_usage(TokenUsage(input_tokens=700, output_tokens=1))
            place.note_usage(TokenUsage(input_tokens=700, output_tokens=30))
            place.complete(TokenUsage(input_tokens=700, output_tokens=60))
            place.settle()
    assert limits.reports == [(TokenCount(701, 400, 701), False), (TokenCount(900, 400, 700), True)]
    assert limits.counts == [TokenCount(760, 400, 760), 760], "what was learned is not learned again"

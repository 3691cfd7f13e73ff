"""What requests come to that broke off: who was asked, and how much of it is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import httpx
import pytest

from brainq.adapters.models.failures import may_have_been_processed
from brainq.contracts.model import AnsweredBy, ModelChunk, ModelReply, ModelRequest, ModelRetry, Spend, TokenUsage
from brainq.engine.models.asking.bill import Allowance, Bill, BudgetExhausted, count_model_call
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.asking.permits import permit_for, reply_with_permits, stream_with_permits
from brainq.engine.models.asking.retry import RetryPolicy, call_with_retry
from brainq.engine.models.asking.stall_clock import Deadline
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import ScriptedProvider, fails, says
from brainq.errors import ProviderError
from brainq.runtime.observe.metrics.counters import SUM, Counters
from brainq.runtime.text.estimate import estimate_request, estimate_text
from tests.support.counted import counted
from tests.unit.engine.models.requests import request

__all__ = ["counted"]

WORDS = "word after word " * 100
AT_ONCE = RetryPolicy(sleep=lambda seconds: None)


class Streams:
    """Yields the parts of each try, or raises them."""

    def __init__(self, *parts: ModelChunk | Exception, name: str = "own") -> None:
        self.name = name
        self._parts = parts

    def generate(self, request: ModelRequest) -> ModelReply:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
        return says("Well.")

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part


def lost(provider: Any, **changes: Any) -> tuple[Sequence[Spend], ModelRequest]:
    """What a call that fails has lost."""
    asked = request(**changes)
    bill = Bill()
    with bill.activate(), pytest.raises(ProviderError) as failure:
        list(stream_with_permits(provider, asked))
    return bill.close(failure.value), asked


def cut(kind: str = "stream") -> ProviderError:
    return ProviderError("cut", kind=kind, retryable=True)


def test_all_that_was_streamed_is_counted_and_the_rest_estimated() -> None:
    arguments = '{"path": "' + "x" * 260 + '"}'
    parts = [
        ModelChunk(reasoning=WORDS),
        ModelChunk(text=WORDS),
        *(ModelChunk(arguments=piece) for piece in ("write", arguments)),
    ]
    (one,), asked = lost(Streams(*parts, cut()))
    assert (one.kind, one.model) == ("lost", "m")
    assert one.usage.input_tokens == estimate_request(asked)
    seen = 2 * estimate_text(WORDS) + estimate_text(arguments)
    assert seen <= one.usage.output_tokens <= seen + 3
    assert one.usage.estimated


def test_a_stream_of_small_pieces_is_not_rounded_up_piece_by_piece() -> None:
    (one,), _ = lost(Streams(*(ModelChunk(text="a") for _ in range(400)), cut()))
    assert one.usage.output_tokens == 100


def test_a_request_that_the_service_refused_costs_nothing() -> None:
    for kind in ("server", "rate_limited", "quota", "refused", "connection"):
        assert lost(Streams(cut(kind)))[0] == ()


def test_one_that_timed_out_may_be_billed_though_nothing_came() -> None:
    for kind in ("timeout", "stalled", "malformed"):
        (one,), asked = lost(Streams(cut(kind)))
        assert (one.usage.input_tokens, one.usage.output_tokens) == (estimate_request(asked), 0)


def test_what_broke_off_after_its_first_word_is_counted_whatever_it_broke_off_by() -> None:
    for kind in ("refused", "server", "raised"):
        assert len(lost(Streams(ModelChunk(text="Hello"), cut(kind)))[0]) == 1


def test_members_of_a_fallback_are_counted_by_their_own_names() -> None:
    silent = Streams(cut("timeout"), name="first")
    bill = Bill()
    with bill.activate():
        *_, last = stream_with_permits(Fallback([silent, ScriptedProvider([says("Well.")], name="second")]), request())
    assert last.reply is not None
    assert [one.model for one in bill.settle(last.reply).lost] == ["first"]


def test_the_reply_itself_is_no_loss() -> None:
    bill = Bill()
    with bill.activate():
        reply = reply_with_permits(ScriptedProvider([says("Well.")]), request())
    cost = bill.settle(reply)
    assert cost.lost == ()
    assert bill.spends_so_far() == (cost.spend.model_copy(update={"kind": "lost"}),), "until it is committed"


def test_each_try_inside_a_provider_is_counted() -> None:
    class Tries(Streams):
        takes_permits = True
        tries = 0

        def generate(self, request: ModelRequest) -> ModelReply:
            return call_with_retry(lambda: self._try(request), Deadline(request.timeout_s), AT_ONCE)

        def _try(self, request: ModelRequest) -> ModelReply:
            place = permit_for(self.name, request.model)
            place.acquire(request, 5.0)
            self.tries += 1
            if self.tries < 4:
                place.settle(cut("malformed"))
                raise cut("malformed")
            place.complete(TokenUsage(input_tokens=7, output_tokens=1))
            place.settle()
            return says("Well.")

    bill, provider = Bill(), Tries()
    with bill.activate():
        reply = reply_with_permits(provider, request())
    assert len(bill.settle(reply).lost) == 3


def test_a_provider_that_only_tells_of_its_retries_is_counted_by_them() -> None:
    retry = ModelChunk(retry=ModelRetry(kind="malformed", wait_s=0))
    refused = ModelChunk(retry=ModelRetry(kind="rate_limited", wait_s=0))
    ends = ModelChunk(reply=says("Well."))
    bill = Bill()
    with bill.activate():
        *_, last = stream_with_permits(Streams(retry, refused, retry, ends), request())
    assert last.reply is not None
    assert len(bill.settle(last.reply).lost) == 2


def test_while_a_request_is_open_its_worst_case_counts() -> None:
    unsent = Spend(kind="lost", step=1, input_tokens=5, output_tokens=5_000, estimated=True)
    bill = Bill(unsent=unsent)
    assert bill.spends_so_far() == (unsent,)
    with bill.activate():
        chunks = cast("Any", stream_with_permits(Streams(ModelChunk(text=WORDS)), request(max_output_tokens=5_000)))
        next(chunks)
        (one,) = bill.spends_so_far()
        assert (one.output_tokens, one.estimated) == (5_000, True), "its service may go on without a reader"
        chunks.close()
    (one,) = bill.close(GeneratorExit())
    assert one.usage.output_tokens == estimate_text(WORDS), "of one that has ended what came of it is known"
    assert bill.spends_so_far() == (one,)


def test_of_a_request_that_was_answered_nothing_the_longest_reply_counts() -> None:
    (one,), asked = lost(Streams(cut("timeout")), max_output_tokens=5_000)
    assert (one.input_tokens, one.output_tokens, one.estimated) == (estimate_request(asked), 5_000, True)
    (one,), _ = lost(Streams(ModelChunk(text=WORDS), cut("stream")), max_output_tokens=5_000)
    assert one.output_tokens == estimate_text(WORDS), "of one that broke off what was read"


def test_more_than_the_worst_case_counts_as_it_comes() -> None:
    bill = Bill()
    with bill.activate():
        chunks = cast("Any", stream_with_permits(Streams(ModelChunk(text=WORDS)), request(max_output_tokens=5)))
        next(chunks)
        assert bill.spends_so_far()[0].output_tokens == estimate_text(WORDS)
        chunks.close()


def test_an_attempt_that_is_over_and_cost_nothing_is_charged_nothing() -> None:
    bill = Bill(unsent=Spend(kind="lost", step=1, output_tokens=5_000))
    refused = ProviderError("no", kind="refused", retryable=False)
    with bill.activate(), pytest.raises(ProviderError):
        list(stream_with_permits(Streams(refused), request()))
    assert bill.close(refused) == ()
    assert bill.spends_so_far() == ()


def test_a_reader_that_leaves_has_had_what_it_has_read() -> None:
    bill = Bill()
    with bill.activate():
        chunks = cast("Any", stream_with_permits(Streams(ModelChunk(text=WORDS), ModelChunk(text=WORDS)), request()))
        next(chunks)
        assert bill.spends_so_far()[0].usage.output_tokens == estimate_text(WORDS)
        chunks.close()
    (one,) = bill.close(GeneratorExit())
    assert one.usage.output_tokens == estimate_text(WORDS)


def dear(provider: str, model: str, usage: TokenUsage) -> float | None:
    """A dollar for each input token of `first`; the others have no price."""
    return float(usage.input_tokens) if provider == "first" else None


@pytest.mark.parametrize(
    ("limits", "what"), [({"usd": 15.0}, "cost"), ({"tokens": 15}, "tokens"), ({"usd": 30.0, "tokens": 30}, "")]
)
def test_the_next_member_is_not_asked_where_the_limit_could_be_passed(limits: dict[str, Any], what: str) -> None:
    models = Fallback(
        [
            Streams(cut("timeout"), name="first"),
            Fallback(
                [Streams(cut("timeout"), name="first"), ScriptedProvider([says("Well.")], name="third")], name="inner"
            ),
        ]
    )
    bill = Bill(input_tokens=10, allowance=Allowance(dear, **limits))
    with bill.activate():
        if not what:
            *_, last = stream_with_permits(models, request())
            assert last.reply is not None
            return
        with pytest.raises(BudgetExhausted) as failure:
            list(stream_with_permits(models, request()))
    assert (failure.value.what, failure.value.kind) == (what, "spent")
    assert len(bill.close(failure.value)) == 1


def test_calls_beside_the_steps_are_held_to_the_allowance_and_tell_what_they_lost() -> None:
    auxiliary = AuxiliaryModel(Streams(cut("timeout")), "m")
    allowance = Allowance(dear, tokens=10)
    with allowance.activate():
        with pytest.raises(ProviderError):
            auxiliary.ask("reflection", "Look back.", "It failed.", timeout_s=5)
        with pytest.raises(BudgetExhausted):
            auxiliary.ask("reflection", "Look back.", "It failed.", timeout_s=5)
    assert [(spend.kind, spend.estimated) for spend in allowance.spends] == [("reflection", True)]


def test_a_reply_beside_the_steps_that_is_not_whole_is_paid_as_it_was_counted() -> None:
    used = TokenUsage(input_tokens=70, output_tokens=9)
    model = AuxiliaryModel(ScriptedProvider([], auxiliary=lambda _: says("Wel", usage=used, finish="length")), "m")
    allowance = Allowance(dear)
    with allowance.activate(), pytest.raises(ProviderError, match="incomplete"):
        model.ask("reflection", "Look back.", "It failed.", timeout_s=5)
    assert [spend.usage for spend in allowance.spends] == [used]


def test_of_several_models_the_one_is_counted_that_answered(counted: Counters) -> None:
    with Bill("fallback", "fallback").activate() as bill:
        by = AnsweredBy(provider="anthropic", model="claude")
        bill.settle(ModelReply(usage=TokenUsage(input_tokens=1), answered_by=by))
    cells = counted.totals()
    assert {cell[1:3] for cell in cells if cell[0] == "brainq_tokens"} == {("anthropic", "claude")}
    duration = "gen_ai_client_operation_duration_seconds"
    assert {cell[2:4] for cell in cells if cell[0] == duration} == {("anthropic", "claude")}


@pytest.mark.parametrize(
    ("cause", "is_timeout", "streamed", "whole"),
    [
        (httpx.ReadTimeout, True, True, True),
        (httpx.ConnectTimeout, True, False, False),
        (httpx.ConnectError, False, False, False),
        (httpx.RemoteProtocolError, False, False, True),
        (httpx.ReadError, False, False, True),
    ],
)
def test_what_was_sent_and_not_answered_may_have_been_worked_on(
    cause: type[Exception], is_timeout: bool, streamed: bool, whole: bool
) -> None:
    import openai

    sent: Any = httpx.Request("POST", "http://service")
    error = openai.APITimeoutError(sent) if is_timeout else openai.APIConnectionError(request=sent)
    error.__cause__ = cause("so")
    assert may_have_been_processed(error, openai, stream=True) is streamed
    assert may_have_been_processed(error, openai, stream=False) is whole
    assert not may_have_been_processed(ValueError(), openai, stream=False)


def test_fails_after_its_text_is_told_by_the_scripted_model_too() -> None:
    (one,), _ = lost(ScriptedProvider([fails("stream", after_text=WORDS)]))
    assert one.usage.output_tokens == estimate_text(WORDS)


def test_a_model_call_counts_what_it_used_and_how_it_ended() -> None:
    counters = Counters()
    spend = Spend(step=1, input_tokens=100, output_tokens=7, cache_read_tokens=60, cost_usd=0.002)
    count_model_call("openai", "gpt-4.1", "step", 1.0, spend, counters)
    refused = ProviderError("no", kind="rate_limited", retryable=True)
    count_model_call("openai", "gpt-4.1", "judge", 1.0, refused, counters)
    found = counters.totals()
    given = ("openai", "gpt-4.1")
    tokens = {cell[4]: value for cell, value in found.items() if cell[0] == "brainq_tokens"}
    assert tokens == {"input": 100, "output": 7, "cache_read": 60}
    assert found["brainq_cost_usd", *given, "step"] == 0.002
    assert found["gen_ai_client_token_usage", "chat", *given, "input", "256"] == 1
    calls = {cell[2:6] for cell in found if cell[0] == "gen_ai_client_operation_duration_seconds" and cell[-1] != SUM}
    assert calls == {(*given, "", "step"), (*given, "rate_limited", "judge")}


@pytest.mark.parametrize(("kind", "is_counted"), [("server", True), ("limited", False), ("waited", False)])
def test_a_request_that_was_never_sent_is_counted_as_no_call(kind: str, is_counted: bool) -> None:
    counters = Counters()
    failure = ProviderError("no", kind=kind, retryable=True)
    count_model_call("openai", "gpt-4.1", "step", 1.0, failure, counters)
    assert bool(counters.totals()) is is_counted

"""Several models as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq.contracts.model import AnsweredBy, ModelChunk, ModelReply, ModelRequest, ModelRetry
from brainq.contracts.model_options import ModelOptions
from brainq.engine.models import resolve_model
from brainq.engine.models.asking.fallback import Cooldown, Fallback
from brainq.engine.models.providers import keeps_limits
from brainq.engine.models.scripted import ScriptedProvider, fails, says
from brainq.errors import InvalidInput, ProviderError, SetupError
from tests.unit.engine.models.requests import request

Part = ModelChunk | Exception | Callable[[ModelRequest], None]


class Member:
    """Sends what it is told, part by part, every time it is asked."""

    def __init__(self, name: str, *parts: Part) -> None:
        self.name = name
        self.parts: tuple[Part, ...] = parts
        self.asked: list[ModelRequest] = []
        self.server_url = ""

    def generate(self, request: ModelRequest) -> ModelReply:
        *_, last = self.generate_stream(request)
        assert last.reply is not None
        return last.reply

    @keeps_limits
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        self.asked.append(request)
        for part in self.parts:
            if isinstance(part, Exception):
                raise part
            if isinstance(part, ModelChunk):
                yield part
            else:
                part(request)


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> Callable[[ModelRequest], None]:
        def pass_(_: ModelRequest) -> None:
            self.now += seconds

        return pass_


def away(kind: str, *, retryable: bool = True) -> ProviderError:
    return ProviderError(f"a {kind} failure", kind=kind, retryable=retryable)


def text(said: str) -> ModelChunk:
    return ModelChunk(text=said)


def reply(said: str) -> ModelChunk:
    return ModelChunk(reply=says(said))


def retry(wait_s: float, kind: str = "server") -> ModelChunk:
    return ModelChunk(retry=ModelRetry(kind=kind, wait_s=wait_s))


def answer(fallback: Fallback, **changes: Any) -> str:
    return fallback.generate(request(**changes)).text


@pytest.fixture
def clock() -> Time:
    return Time()


KINDS = ["rate_limited", "quota", "server", "connection", "timeout", "malformed"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_one_answers_where_the_first_cannot_be_had(kind: str) -> None:
    first, second = Member("a", away(kind, retryable=kind != "quota")), Member("b", text("Hi"), reply("Hi"))
    chunks = list(Fallback([first, second]).generate_stream(request(options=ModelOptions(temperature=0.5))))
    assert [chunk.retry for chunk in chunks if chunk.retry] == [ModelRetry(kind=kind, wait_s=0, model="b")]
    last = chunks[-1].reply
    assert last is not None
    assert (last.text, last.answered_by) == ("Hi", AnsweredBy(provider="b", model="b"))
    assert (second.asked[0].model, second.asked[0].options.temperature) == ("b", 0.5)


def test_headers_and_parameters_of_the_first_ones_service_go_to_no_other() -> None:
    own = ModelOptions(seed=7, extra_headers={"x-key": "secret"}, extra_body={"tier": "flex"})
    first, second = Member("a", away("server")), Member("b", away("server"))
    twin = Member("a", reply("Hi"))
    answer(Fallback([first, second, twin]), options=own)
    assert [member.asked[0].options for member in (first, second, twin)] == [own, ModelOptions(seed=7), own]


def test_two_servers_of_one_kind_are_two_services() -> None:
    own = ModelOptions(extra_headers={"x-gateway-key": "secret"})
    first, second, again = (Member("openai", away("server")) for _ in range(3))
    first.server_url, second.server_url, again.server_url = "https://a/v1", "https://b/v1", "https://a/v1/"
    with pytest.raises(ProviderError):
        answer(Fallback([first, second, again]), options=own)
    assert [member.asked[0].options for member in (first, second, again)] == [own, ModelOptions(), own]


@pytest.mark.parametrize("kind", ["refused", "too_long", "raised", "script"])
def test_what_is_refused_is_refused(kind: str) -> None:
    second = Member("b", reply("Hi"))
    with pytest.raises(ProviderError, match=kind):
        answer(Fallback([Member("a", away(kind, retryable=False)), second]))
    assert second.asked == []


def test_all_failed(clock: Time) -> None:
    fallback = Fallback([Member("a", away("server")), Member("b", away("quota", retryable=False))], clock=clock)
    with pytest.raises(ProviderError, match=r"a server failure; a quota failure") as caught:
        answer(fallback)
    assert (caught.value.kind, caught.value.retryable) == ("quota", False)


@pytest.mark.parametrize("shown", [text("He"), ModelChunk(reasoning="Hm.")])
@pytest.mark.parametrize("failure", [away("stream"), away("server"), away("quota", retryable=False)])
def test_after_its_first_output_the_attempt_is_over_and_the_next_passes_it_by(
    shown: ModelChunk, failure: ProviderError
) -> None:
    first, second = Member("a", shown, failure), Member("b", reply("Hi"))
    fallback = Fallback([first, second])
    with pytest.raises(ProviderError) as caught:
        list(fallback.generate_stream(request()))
    assert (caught.value.kind, caught.value.retryable) == ("stream", True)
    assert second.asked == []
    *_, last = fallback.generate_stream(request(attempt=2))
    assert last.reply == says("Hi").model_copy(update={"answered_by": AnsweredBy(provider="b", model="b")})
    assert len(first.asked) == 1


def test_a_stalled_stream_ends_the_attempt_of_a_turn_but_not_a_whole_call() -> None:
    first, second = Member("a", away("stalled")), Member("b", reply("Hi"))
    with pytest.raises(ProviderError, match="stalled"):
        list(Fallback([first, second]).generate_stream(request()))
    assert answer(Fallback([first, second])) == "Hi"


def test_a_dead_first_one_leaves_time_to_the_others(clock: Time) -> None:
    first = Member("a", clock.passes(20), away("timeout"))
    second, third = Member("b", clock.passes(20), away("server")), Member("c", reply("Hi"))
    fallback = Fallback([first, second, third], clock=clock)
    assert answer(fallback, timeout_s=90, first_token_s=60) == "Hi"
    given = [(member.asked[0].timeout_s, member.asked[0].first_token_s) for member in (first, second, third)]
    assert given == [(90, 30), (70, 35), (50, 60)]


def test_the_time_counts_from_the_call(clock: Time) -> None:
    first, second = Member("a", clock.passes(10), away("server")), Member("b", reply("Hi"))
    fallback = Fallback([first, second], clock=clock)
    stream = fallback.generate_stream(request(timeout_s=30))
    clock.now += 25
    with pytest.raises(ProviderError, match="server"):
        list(stream)
    assert second.asked == []


def test_a_service_is_asked_again_as_long_as_patience_lasts(clock: Time) -> None:
    waits = [retry(4), clock.passes(4), retry(8), clock.passes(8), retry(16, "rate_limited")]
    first, second = Member("a", *waits, reply("late")), Member("b", retry(60), reply("Hi"))
    fallback = Fallback([first, second], clock=clock, patience_s=15)
    told = [chunk.retry for chunk in fallback.generate_stream(request(timeout_s=300)) if chunk.retry]
    # The last one is waited for.
    assert told == [
        ModelRetry(kind="server", wait_s=4, model="a"),
        ModelRetry(kind="server", wait_s=8, model="a"),
        ModelRetry(kind="rate_limited", wait_s=0, model="b"),
        ModelRetry(kind="server", wait_s=60, model="b"),
    ]
    clock.now += 10
    assert answer(fallback) == "Hi"
    assert len(first.asked) == 1, "it asked to be left alone for 16 s"
    clock.now += 7
    answer(fallback, timeout_s=300)
    assert len(first.asked) == 2


def test_one_that_failed_rests_and_then_is_the_first_again(clock: Time) -> None:
    first, second = Member("a", away("server")), Member("b", reply("Hi"))
    fallback = Fallback([first, second], clock=clock, rest_s=5, longest_rest_s=15)
    asked: list[int] = []
    for _ in range(40):
        assert answer(fallback) == "Hi"
        asked.append(len(first.asked))
        clock.now += 1
    at = [second for second in range(40) if asked[second] > (asked[second - 1] if second else 0)]
    assert at == [0, 5, 15, 30]  # 5 s, 10 s, 15 s
    first.parts = (reply("back"),)
    clock.now += 15
    assert [answer(fallback), answer(fallback)] == ["back", "back"]


def test_all_that_rest_are_asked_all_the_same(clock: Time) -> None:
    first, second = Member("a", away("server")), Member("b", away("server"))
    fallback = Fallback([first, second], clock=clock)
    for _ in range(2):
        with pytest.raises(ProviderError):
            answer(fallback)
    assert (len(first.asked), len(second.asked)) == (2, 2)
    first.parts = (reply("back"),)
    assert answer(fallback) == "back"


def test_after_a_rest_one_request_tries(clock: Time) -> None:
    rest = Cooldown(5, 60, clock)
    taken = [rest.try_begin(), rest.try_begin()]
    assert taken == [0, 0]
    rest.failed(0)
    rest.failed(0)  # the other one that was under way
    assert (rest.failures, rest.try_begin()) == (1, None)
    clock.now += 5
    assert [rest.try_begin(), rest.try_begin()] == [1, None]
    rest.failed(1)
    assert rest.until == clock.now + 10
    for failures in range(2, 5000):
        rest.failed(failures)
    assert rest.until == clock.now + 60
    rest.reset()
    assert rest.try_begin() == 0


def test_they_nest_and_who_answered_is_named() -> None:
    inner = Fallback([Member("a", away("server")), Member("b", away("server"))], name="cheap")
    outer = Fallback([inner, ScriptedProvider([says("Hi")], name="c")])
    assert outer.generate(request()).answered_by == AnsweredBy(provider="c", model="c")
    inner = Fallback([Member("a", away("server")), Member("b", reply("Hi"))])
    assert Fallback([inner, Member("c")]).generate(request()).answered_by == AnsweredBy(provider="b", model="b")


def test_models_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    fallback = Fallback(["openai:gpt-4.1", "anthropic:claude-x", Member("own", reply("Hi"))])
    assert [f"{provider.name}:{model}" for provider, model in fallback.members] == [
        "openai:gpt-4.1",
        "anthropic:claude-x",
        "own:own",
    ]
    with pytest.raises(SetupError, match=r"anthropic:claude-x: no API key.*; set ANTHROPIC_API_KEY"):
        fallback.check()
    assert resolve_model(fallback) == (fallback, "fallback")


def test_one_that_is_not_set_up_is_passed_by() -> None:
    class Unready(Member):
        def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
            raise SetupError("no API key; set ONE")

    assert answer(Fallback([Unready("a"), Member("b", reply("Hi"))])) == "Hi"


def test_a_stream_without_a_reply() -> None:
    with pytest.raises(ProviderError, match="without a reply"):
        list(Fallback([Member("a", text("Hi")), Member("b", reply("Hi"))]).generate_stream(request()))


@pytest.mark.parametrize(
    ("models", "options", "field"),
    [
        ("openai:gpt-4.1", {}, "models"),
        (["openai:gpt-4.1"], {}, "models"),
        (["openai:gpt-4.1", "nobody:x"], {}, "model"),
        ([None, None], {}, "models"),
        (["openai:a", "openai:b", "openai:a"], {}, "models"),
        (["openai:a", "openai:b"], {"rest_s": 0}, "rest_s"),
        (["openai:a", "openai:b"], {"rest_s": float("nan")}, "rest_s"),
        (["openai:a", "openai:b"], {"patience_s": float("nan")}, "rest_s"),
        (["openai:a", "openai:b"], {"rest_s": 10, "longest_rest_s": 5}, "rest_s"),
    ],
)
def test_what_it_cannot_be_made_of(models: Any, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Fallback(models, **options)
    assert caught.value.field == field


def test_scripted_failures_are_passed_on_in_streams() -> None:
    first = ScriptedProvider([fails("server", after_text="Half ")], name="a")
    stream = Fallback([first, Member("b", reply("Hi"))]).generate_stream(request())
    assert next(stream).text
    with pytest.raises(ProviderError, match="broke off"):
        list(stream)

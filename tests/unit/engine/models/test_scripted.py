from __future__ import annotations

import time

import pytest

from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.engine.models import Provider, ScriptedProvider, calls, fails, says
from brainq.errors import ProviderError
from tests.unit.engine.models.requests import request, user


def test_it_is_a_provider() -> None:
    assert isinstance(ScriptedProvider([]), Provider)


def test_a_step_gets_the_same_reply_every_time() -> None:
    provider = ScriptedProvider([calls(("look", {"at": 1})), says("done")])
    other_process = ScriptedProvider([calls(("look", {"at": 1})), says("done")])
    for step in (2, 1, 2, 1):
        assert provider.generate(request(step=step)) == other_process.generate(request(step=step))
    assert provider.generate(request(step=2, turn_id="another")).text == "done"


def test_calls_are_in_order_and_may_have_text() -> None:
    reply = ScriptedProvider([calls(("a", {"n": 1}), ("b", "{broken"), text="well")]).generate(request())
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("call_0", "a", {"n": 1}),
        ("call_1", "b", "{broken"),
    ]
    assert (reply.text, reply.finish_reason, reply.model) == ("well", "tool_calls", "m")


def test_rules() -> None:
    def echo(asked: ModelRequest) -> ModelReply:
        return says(asked.messages[-1].content.upper())

    assert ScriptedProvider(rules=echo).generate(request(user("hey"))).text == "HEY"


def test_usage_is_estimated_unless_given() -> None:
    given = TokenUsage(input_tokens=1, output_tokens=2)
    provider = ScriptedProvider([says("x" * 40), says("x", usage=given)])
    assert provider.generate(request(step=1)).usage.output_tokens == 10
    assert provider.generate(request(step=2)).usage == given


@pytest.mark.parametrize("text", ["", " ", "one", "  one two\n three  "])
def test_a_stream_is_words_then_the_reply(text: str) -> None:
    provider = ScriptedProvider([says(text)])
    *words, last = provider.generate_stream(request())
    assert "".join(chunk.text for chunk in words) == text
    assert all(chunk.reply is None for chunk in words)
    assert last.reply == provider.generate(request())


def test_a_scripted_failure_ends_with_the_attempt_it_names() -> None:
    provider = ScriptedProvider([fails("rate_limited", attempts=2, then=says("ok"))])
    for attempt in (1, 2):
        with pytest.raises(ProviderError) as caught:
            provider.generate(request(attempt=attempt))
        assert (caught.value.kind, caught.value.retryable) == ("rate_limited", True)
    assert provider.generate(request(attempt=3)).text == "ok"


def test_a_stream_can_break_off() -> None:
    provider = ScriptedProvider([fails("stream", after_text="half an ")])
    stream = provider.generate_stream(request())
    assert [next(stream).text, next(stream).text] == ["half ", "an "]
    with pytest.raises(ProviderError, match="a scripted failure"):
        next(stream)


@pytest.mark.parametrize("step", [0, 2])
def test_a_step_outside_the_script_is_named(step: int) -> None:
    with pytest.raises(ProviderError, match=f"has 1 steps, but the request is for step {step}") as caught:
        ScriptedProvider([says("x")]).generate(request(step=step))
    assert not caught.value.retryable


@pytest.mark.parametrize("streamed", [True, False])
def test_latency_stays_inside_the_time(streamed: bool) -> None:
    provider = ScriptedProvider([says("one two three")], latency_s=30)
    asked = request(timeout_s=0.05)
    began = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        _ = list(provider.generate_stream(asked)) if streamed else provider.generate(asked)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 20


def test_script_or_rules() -> None:
    with pytest.raises(TypeError, match="either"):
        ScriptedProvider()

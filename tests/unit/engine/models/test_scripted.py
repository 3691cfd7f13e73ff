"""The providers without a service: scripted, offline and auxiliary ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.engine.models import Provider, ScriptedProvider, calls, fails, says
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.offline import SELF_DESCRIPTION, read_message, reply
from brainq.engine.models.providers import resolve_model
from brainq.engine.models.scripted import ScriptedProvider as auxiliary_ScriptedProvider
from brainq.engine.models.scripted import says as auxiliary_says
from brainq.engine.tools.tool import make_tool
from brainq.engine.turn.prompt.request_messages import INPUT_FRAME
from brainq.errors import ProviderError
from tests.unit.engine.models.requests import request, user

#


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


# The stand-in model reads calls out of messages, says what they brought, and what it is.


def count(item: str) -> int:
    """How many of an item are in stock."""
    raise NotImplementedError


def restock(item: str, amount: int) -> str:
    """Order more of an item."""
    raise NotImplementedError


def read_note(path: str) -> str:
    """Read one note."""
    raise NotImplementedError


def read_mail(sender: str, limit: int = 5) -> str:
    """Read mail."""
    raise NotImplementedError


def list_open_loops() -> str:
    """All of them."""
    raise NotImplementedError


TOOLS = tuple(make_tool(function).spec for function in (count, restock, read_note, read_mail, list_open_loops))


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("count apples", ["count(item='apples')"]),
        ("Counting the apples, please.", ["count(item='apples')"]),
        ("Restock apples by 5, then count apples!", ["restock(item='apples', amount=5)", "count(item='apples')"]),
        ("restock green pears by five", ["restock(item='green pears', amount=5)"]),
        ("restock 12 'sour cream'", ["restock(item='sour cream', amount=12)"]),
        ('restock(item="green pears", amount=-2)', ["restock(item='green pears', amount=-2)"]),
        ("count('a) b') and count pears", ["count(item='a) b')", "count(item='pears')"]),
        ("count pears and count('a')", ["count(item='pears')", "count(item='a')"]),
        ("read the note inbox", ["read_note(path='inbox')"]),
        ("read mail of ann", ["read_mail(sender='ann')"]),
        ("list loops", ["list_open_loops()"]),
        ("restock apples if we have fewer than", ["restock(item='apples', amount=...)"]),
        ("count", ["count(item=...)"]),
        ("What a day!", []),
        ("", []),
        ("restock nan by infinity", ["restock(item='nan', amount=...)"]),
        ("count(", ["count(item=...)"]),
    ],
)
def test_calls_are_read_out_of_a_message(message: str, wanted: list[str]) -> None:
    assert [str(found) for found in read_message(message, TOOLS)] == wanted


def asked(message: str, *later: Message, **more: Any) -> ModelReply:
    provider, model = resolve_model("offline:rules")
    old = Message(role="user", content="restock apples by 1", turn="t0")
    own = Message(role="user", content=message, turn="t1")
    return provider.generate(
        ModelRequest(model=model, messages=(old, own, *later), tools=TOOLS, timeout_s=5.0, turn_id="t1", step=1, **more)
    )


def result(text: str, *, is_error: bool = False) -> Message:
    return Message(role="tool", content=text, call_id="c", turn="t1", is_error=is_error)


def test_a_turn_calls_first_and_then_says_what_came_and_what_it_is() -> None:
    first = asked("count apples and restock pears by 2")
    assert [(call.name, call.arguments) for call in first.calls] == [
        ("count", {"item": "apples"}),
        ("restock", {"item": "pears", "amount": 2}),
    ]
    last = asked("count apples and restock pears by 2", result("3"), result("no pears", is_error=True))
    assert not last.calls
    assert "count(item='apples') said: 3" in last.text
    assert "restock(item='pears', amount=2) failed: no pears" in last.text
    assert SELF_DESCRIPTION in last.text


def test_what_is_written_into_a_running_turn_is_called_after_it() -> None:
    steered = Message(role="user", content="count pears", turn="t1")
    then = asked("count apples", result("3"), steered)
    assert [call.arguments for call in then.calls] == [{"item": "pears"}]


def test_a_note_of_the_runtime_is_no_message_of_the_users() -> None:
    note = Message(role="user", content="count pears", turn="t1", extra={"note": "reflection"})
    assert not asked("count apples", result("3"), note).calls


def test_a_missing_argument_is_asked_for_and_a_message_without_a_tool_gets_their_names() -> None:
    assert "restock needs amount (integer): write restock(item='apples', amount=...)" in asked("restock apples").text
    said = asked("hello")
    assert "count(item), restock(item, amount), read_note(path)" in said.text
    assert SELF_DESCRIPTION in said.text


def test_input_for_a_live_turn_is_obeyed_and_a_note_of_the_runtime_is_not() -> None:
    steered = Message(role="user", content=f"count pears{INPUT_FRAME}", turn="t1", extra={"input": "m1"})
    note = Message(role="user", content="count notes", turn="t1", extra={"note": "ending"})
    first = Message(role="user", content="count apples", turn="t1")
    asked = reply(
        ModelRequest(messages=(first, steered, note), tools=TOOLS, model="m", timeout_s=1.0, turn_id="t1", step=1)
    )
    assert [call.arguments for call in asked.calls] == [{"item": "apples"}, {"item": "pears"}]


# Model calls beside a turn's steps.


def ask(reply: ModelReply) -> ModelReply:
    return AuxiliaryModel(auxiliary_ScriptedProvider([], auxiliary=lambda _: reply), "m").ask(
        "judge", "Judge.", "it", timeout_s=5
    )


@pytest.mark.parametrize("finish", ["length", "content_filter", "abort"])
def test_a_reply_that_is_not_whole_is_none(finish: str) -> None:
    with pytest.raises(ProviderError, match=f"incomplete: {finish}") as caught:
        ask(auxiliary_says('{"score": 0.9, "reas', finish=finish))
    assert caught.value.kind == "malformed"


def test_a_whole_one_is_given_back() -> None:
    assert ask(auxiliary_says("well")).text == "well"

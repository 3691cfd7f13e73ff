"""Reasoning on both older wires: read in its place, sent back as it came, and to nobody else. Pure."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.models.anthropic import wire as anthropic_wire
from brainq.adapters.models.anthropic.provider import option_parameters
from brainq.adapters.models.anthropic.thinking import is_thinking_rejected
from brainq.adapters.models.openai import chat_wire
from brainq.adapters.models.openai.reasoning import TextSplit, ThinkSplitter
from brainq.contracts.message import Message, Reasoning, ToolCall
from brainq.contracts.model import ModelReply
from brainq.contracts.model_options import ModelOptions
from brainq.runtime.text.estimate import estimate_message
from tests.unit.engine.models.requests import request, result, user

THOUGHT = {"type": "thinking", "thinking": "I look first. 🦊", "signature": "sig-1"}
HIDDEN = {"type": "redacted_thinking", "data": "b3BhcXVl"}
AGAIN = {"type": "thinking", "thinking": "", "signature": "sig-2"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(index: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"c1-{index}", "name": "weather", "input": {"n": index}}


CONTENTS = {
    "one thought": [THOUGHT, text("Let me see."), use(0)],
    "hidden": [THOUGHT, HIDDEN, use(0)],
    "interleaved": [THOUGHT, text("So."), use(0), AGAIN, HIDDEN, use(1)],
    "text first": [text("Let me see."), THOUGHT, use(0)],
    "text between": [THOUGHT, text("One. "), AGAIN, text("Two."), use(0), HIDDEN, text(" Three."), use(1)],
    "no text": [THOUGHT, use(0), AGAIN, use(1)],
}


def stored(reply: ModelReply, **changes: Any) -> Message:
    """As a turn keeps it: under our call ids, and with who thought it."""
    calls = tuple(
        call.model_copy(update={"id": f"c1-{index}", "provider_id": ""}) for index, call in enumerate(reply.calls)
    )
    thoughts = tuple(one.model_copy(update={"model": "m"}) for one in reply.reasoning)
    fields: dict[str, Any] = {
        "role": "assistant",
        "content": reply.text,
        "calls": calls,
        "turn": "t1",
        "reasoning": thoughts,
    }
    made = Message(**(fields | changes))
    return Message.model_validate_json(made.model_dump_json(exclude_defaults=True))


def events_of(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"model": "m", "usage": {}}}]
    for index, block in enumerate(content):
        deltas: list[dict[str, Any]] = []
        begun = dict(block)
        match block["type"]:
            case "thinking":
                begun |= {"thinking": "", "signature": ""}
                said = block["thinking"]
                deltas += [{"type": "thinking_delta", "thinking": part} for part in (said[:5], said[5:]) if part]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                begun["text"] = ""
                deltas += [{"type": "text_delta", "text": char} for char in block["text"]]
            case "tool_use":
                begun["input"] = {}
                deltas.append({"type": "input_json_delta", "partial_json": f'{{"n": {block["input"]["n"]}}}'})
            case _:
                pass
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def claudes(content: list[dict[str, Any]], *, streamed: bool) -> ModelReply:
    if not streamed:
        return anthropic_wire.from_body({"content": content, "stop_reason": "tool_use"})
    stream = anthropic_wire.AnthropicStream()
    told = "".join(chunk.reasoning for event in events_of(content) if (chunk := stream.feed(event)))
    assert told == "".join(block.get("thinking", "") for block in content)
    return stream.reply()


def asked_again(reply: Message, **changes: Any) -> Any:
    """The blocks in which the reply is sent back with its results."""
    results = [result(made.id, "rain") for made in reply.calls]
    asked = request(user("hi"), reply, *results, **({"turn_id": "t1"} | changes))
    return anthropic_wire.to_body(asked, stream=False)["messages"][1]["content"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_thinking_goes_back_as_it_came(content: list[dict[str, Any]], streamed: bool) -> None:
    assert asked_again(stored(claudes(content, streamed=streamed))) == content


def without_thinking(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = "".join(block["text"] for block in content if block["type"] == "text")
    return [*([text(said)] if said else []), *(block for block in content if block["type"] == "tool_use")]


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_it_goes_back_to_nobody_else(content: list[dict[str, Any]]) -> None:
    kept = stored(claudes(content, streamed=False))
    assert asked_again(kept, model="other") == without_thinking(content)
    assert asked_again(kept, turn_id="t2") == without_thinking(content), "an earlier turn's"
    wire = chat_wire.to_messages([kept], model="m")
    assert set(wire[0]) == {"role", "content", "tool_calls"}
    theirs = kept.model_copy(update={"reasoning": (Reasoning(wire="openai", text="x", model="m"),)})
    assert asked_again(theirs) == without_thinking(content)
    refused = anthropic_wire.to_body(request(kept, turn_id="t1"), stream=False, thinking=False)
    assert refused["messages"][0]["content"] == without_thinking(content)


def test_a_reply_that_only_thought_is_not_sent() -> None:
    kept = stored(claudes([THOUGHT], streamed=False))
    asked = request(user("hi"), kept, user("so?"), turn_id="t1")
    (message,) = anthropic_wire.to_body(asked, stream=False)["messages"]
    assert message["content"] == [text("hi"), text("so?")]


def test_a_budget_needs_the_thinking_of_the_call_before() -> None:
    kept = stored(claudes([THOUGHT, use(0)], streamed=False))
    bare = kept.model_copy(update={"reasoning": ()})
    old, effort = {"thinking adaptive: m"}, ModelOptions(reasoning_effort="low")
    for reply, refused, thinks in ((kept, old, True), (bare, old, False), (kept, old | {"earlier reasoning"}, False)):
        asked = request(user("hi"), reply, result("c1-0", "rain"), turn_id="t1", options=effort)
        assert ("thinking" in option_parameters(asked, refused)) is thinks


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", True),
        ("thinking: The block is bound to a different conversation", True),
        ("`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", True),
        ("Expected `thinking` or `redacted_thinking`, but found `tool_use`.", True),
        ("adaptive thinking is not supported on this model", False),
        ("prompt is too long", False),
    ],
)
def test_what_is_not_taken_back(words: str, expected: bool) -> None:
    body = {"error": {"type": "invalid_request_error", "message": words}}
    assert is_thinking_rejected(400, body) is expected
    assert not is_thinking_rejected(500, body)


FIELDS: dict[str, list[dict[str, Any]]] = {
    "deepseek": [{"reasoning_content": "I lo"}, {"reasoning_content": "ok."}],
    "vllm": [{"reasoning": "I lo", "reasoning_content": None}, {"reasoning": "ok."}],
    "both": [{"reasoning": "I look.", "reasoning_content": "I look."}],
}
DETAILS = [
    {"type": "reasoning.text", "index": 0, "text": "I lo", "signature": None},
    {"type": "reasoning.text", "index": 0, "text": "ok.", "signature": "sig"},
    {"type": "reasoning.encrypted", "index": 1, "data": "b3Bh"},
    {"type": "reasoning.encrypted", "index": 1, "data": "cXVl", "id": "r1"},
]
CALL = {"id": "x", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def chat(deltas: list[dict[str, Any]]) -> tuple[ModelReply, str]:
    """A streamed reply that asks for a call, and the reasoning that readers are told."""
    stream = chat_wire.OpenAIStream()
    ends = [{"tool_calls": [CALL | {"index": 0}]}]
    told = [stream.feed({"choices": [{"delta": delta}]}) for delta in [*deltas, *ends]]
    stream.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    return stream.reply(), "".join(chunk.reasoning for chunk in told if chunk)


def sent_back(reply: ModelReply, model: str | None = "m", **changes: Any) -> dict[str, Any]:
    (made,) = chat_wire.to_messages([stored(reply, **changes)], model=model)
    return made


@pytest.mark.parametrize(
    ("deltas", "name"),
    [(FIELDS["deepseek"], "reasoning_content"), (FIELDS["vllm"], "reasoning"), (FIELDS["both"], "reasoning_content")],
    ids=FIELDS,
)
def test_a_servers_own_field_goes_back(deltas: list[dict[str, Any]], name: str) -> None:
    reply, told = chat(deltas)
    assert told == "I look."
    back = sent_back(reply)
    assert {key: back[key] for key in back if "reasoning" in key} == {name: "I look."}
    for other in (sent_back(reply, "other"), sent_back(reply, None)):
        assert not any("reasoning" in key for key in other)
    answer = sent_back(reply, calls=(), content="Done.")
    assert answer == {"role": "assistant", "content": "Done."}, "what was thought before an answer stays here"
    whole = {"content": None, "tool_calls": [CALL], name: "I look."}
    assert chat_wire.from_body({"choices": [{"message": whole}]}).reasoning == reply.reasoning


def test_details_go_back_whole() -> None:
    reply, _ = chat([{"reasoning": "I look.", "reasoning_details": [detail]} for detail in DETAILS])
    assert sent_back(reply)["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "I look.", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "b3BhcXVl", "id": "r1"},
    ]


def test_what_stood_between_tags_is_no_answer_and_goes_back_between_them() -> None:
    reply, told = chat([{"content": "<th"}, {"content": "ink>I look.</think>\n\nLet me see."}])
    assert (reply.text, told) == ("Let me see.", "I look.")
    assert [one.text for one in reply.reasoning] == ["I look."]
    assert sent_back(reply)["content"] == "<think>I look.</think>\n\nLet me see."
    assert sent_back(reply, "other")["content"] == "Let me see."


def test_a_refusal_is_still_told() -> None:
    body = {"choices": [{"message": {"refusal": "I will not."}, "finish_reason": "stop"}]}
    assert chat_wire.from_body(body).text == "I will not."


def test_it_is_counted() -> None:
    plain = Message(role="assistant", content="x", calls=(ToolCall(id="c1-0", name="weather", arguments={}),))
    thought = Reasoning(wire="anthropic", text="a" * 400, block={"type": "thinking", "signature": "s"})
    hidden = Reasoning(wire="anthropic", block={"type": "redacted_thinking", "data": "a" * 400})
    size = estimate_message(plain)
    assert estimate_message(plain.model_copy(update={"reasoning": (thought,)})) == size + 100
    assert estimate_message(plain.model_copy(update={"reasoning": (hidden,)})) > size + 100


def test_a_conversation_for_strict_templates_keeps_it() -> None:
    reply, _ = chat(FIELDS["deepseek"])
    before = Message(role="assistant", content="Hm.")
    merged = chat_wire.to_messages([user("hi"), before, stored(reply), result("c1-0", "r")], model="m")
    assert merged[1]["reasoning_content"] == "I look."


# `<think>...</think>` is split from the answer, however the tags are cut. Pure.


REPLIES = {
    "<think>\nHm.\n</think>\n\nHello.": TextSplit("Hello.", "\nHm.\n"),
    " \n<think>Hm.</think>Hello.": TextSplit("Hello.", "Hm."),
    "<think></think>Hello.": TextSplit("Hello.", ""),
    "<think>Hm": TextSplit("", "Hm"),
    "<think>Hm</thi": TextSplit("", "Hm</thi"),
    "<think>": TextSplit("", ""),
    "<think>a</think>": TextSplit("", "a"),
    "<think>a < b </ c</think> d": TextSplit("d", "a < b </ c"),
    "Hello.": TextSplit("Hello."),
    "": TextSplit(""),
    "  \n": TextSplit("  \n"),
    "<thi": TextSplit("<thi"),
    "<b>Hello</b>": TextSplit("<b>Hello</b>"),
    "The tag <think> begins, </think> ends it.": TextSplit("The tag <think> begins, </think> ends it."),
    "<think>one</think>two<think>three</think>": TextSplit("two<think>three</think>", "one"),
    "Hello.\n</think>\nBye.": TextSplit("Hello.\n</think>\nBye."),
    "<think>🦊</think>😀": TextSplit("😀", "🦊"),
}
UNOPENED = {
    "Hm.\n</think>\n\nHello.": TextSplit("Hello.", "Hm.", is_unopened=True),
    "</think>\n\nHello.": TextSplit("Hello.", "", is_unopened=True),
    "Hm.\n</think>": TextSplit("", "Hm.", is_unopened=True),
    "It ends with </think>, they say.": TextSplit("It ends with </think>, they say."),
    "<think>Hm.</think>a\n</think>\nb": TextSplit("a\n</think>\nb", "Hm."),
    "Hello.": TextSplit("Hello."),
}
OPENED = {
    "Hm.\n</think>\n\nHello.": TextSplit("Hello.", "Hm.\n"),
    "Hm.</think>Hello.": TextSplit("Hello.", "Hm."),
    "Hello, nothing to think.": TextSplit("Hello, nothing to think."),
    "": TextSplit(""),
}


def fed(splitter: ThinkSplitter, pieces: list[str]) -> tuple[TextSplit, TextSplit]:
    """(what readers were told, the whole)."""
    told = [splitter.feed(piece) for piece in pieces]
    return TextSplit("".join(one.text for one in told), "".join(one.reasoning for one in told)), splitter.whole()


def cut(text: str, places: list[int]) -> list[str]:
    bounds = sorted({0, len(text), *(place for place in places if place < len(text))})
    return [text[a:b] for a, b in itertools.pairwise(bounds)]


@pytest.mark.parametrize(("reply", "split"), REPLIES.items())
def test_every_cut_in_two(reply: str, split: TextSplit) -> None:
    for place in range(len(reply) + 1):
        told, whole = fed(ThinkSplitter(), [reply[:place], reply[place:]])
        assert whole == split
        assert split.text.startswith(told.text)
        assert split.reasoning.startswith(told.reasoning)


@given(st.sampled_from(sorted(REPLIES)), st.lists(st.integers(0, 40)))
def test_any_cuts(reply: str, places: list[int]) -> None:
    told, whole = fed(ThinkSplitter(), cut(reply, places))
    assert whole == REPLIES[reply]
    assert whole.text.startswith(told.text)


@given(st.text("ab<>/think \n", max_size=30), st.text("ab<>/think \n", max_size=30), st.lists(st.integers(0, 80)))
def test_whatever_was_thought_and_said(thought: str, said: str, places: list[int]) -> None:
    reply = f"<think>{thought.replace('</think>', '')}</think>{said}"
    once, whole = fed(ThinkSplitter(), [reply])
    told, again = fed(ThinkSplitter(), cut(reply, places))
    assert (told, again) == (once, whole)
    assert once == TextSplit(whole.text, whole.reasoning)


@given(st.sampled_from(sorted(UNOPENED)), st.lists(st.integers(0, 40)))
def test_a_tag_that_the_template_opened(reply: str, places: list[int]) -> None:
    _, whole = fed(ThinkSplitter(may_be_open=True), cut(reply, places))
    assert whole == UNOPENED[reply]


@given(st.sampled_from(sorted(OPENED)), st.lists(st.integers(0, 40)))
def test_a_template_that_is_known_to_open_it(reply: str, places: list[int]) -> None:
    told, whole = fed(ThinkSplitter(is_open=True, may_be_open=True), cut(reply, places))
    assert whole == OPENED[reply]
    assert whole.text.startswith(told.text)
    assert "</think>" not in told.reasoning

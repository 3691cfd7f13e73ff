"""The messages of one model call: their order, and what is left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.message import Message
from brainq.engine.turn.prompt.request_messages import TurnPreparation, TurnPreparer, render_hash
from brainq.engine.turn.prompt.summary import summary_message
from brainq.runtime.text.estimate import estimate_messages, with_sizes
from tests.unit.engine.turn.conversations import TURN, answer, asks, histories, request, result, unhurried, user

TODAY = datetime(2026, 3, 4, tzinfo=UTC)


def prepare(history: list[Message], *, asked: dict[str, Any] | None = None, **given: Any) -> TurnPreparation:
    values: dict[str, Any] = {
        "system_prompt": "Be good.",
        "provider": "openai",
        "model": "gpt-x",
        "today": TODAY,
        "max_context_tokens": 100_000,
    }
    return TurnPreparer().prepare(request(**(asked or {})), with_sizes(history), **(values | given))


OLD = [user("before", "t-0"), answer("then", "t-0")]
OWN = [user("the question"), asks(1, "look"), result(1, 0, "found")]


def words(messages: tuple[Message, ...]) -> list[str]:
    """Each message in a word."""
    return [message.note_kind or message.content.split("\n")[0][:13] or message.role for message in messages]


def test_the_order() -> None:
    prepared = prepare(
        [*OLD, *OWN],
        asked={"skill_context": "Use tools.", "cwd": "/w"},
        memory_text="likes tea",
        pack_json='{"facts":[]}',
    )
    assert words(prepared.messages) == [
        "Be good.",
        "memory",
        "before",
        "then",
        "context",
        "skill",
        "the question",
        "assistant",
        "found",
    ]
    assert prepared.messages[0].content == (
        "Be good.\n\nSession: s1\nProvider: openai\nModel: gpt-x\nDate: Wednesday, 04 March 2026\nWorking directory: /w"
    )
    assert prepared.messages[5].content.endswith("\nUse tools.")
    assert (prepared.memory_text, prepared.context_pack_json) == ("likes tea", '{"facts":[]}')


@pytest.mark.parametrize("blank", ["", " \n"])
def test_what_is_not_there_takes_no_place(blank: str) -> None:
    prepared = prepare(OWN, system_prompt="", memory_text=blank, pack_json=blank)
    assert words(prepared.messages) == ["Session: s1", "the question", "assistant", "found"]
    assert prepare(OWN, pack_json=None).messages[1] == OWN[0]


def test_the_thinking_prefix_stands_between_the_prompt_and_the_rest() -> None:
    rules = prepare(OWN, thinking_prefix="Think hard.").messages[0]
    assert rules.content.startswith("Be good.\n\nThink hard.\n\nSession: s1\n")
    assert prepare(OWN, thinking_prefix="").messages[0].content.startswith("Be good.\n\nSession: s1\n")


def test_one_system_message_begins_the_request_and_no_other_follows() -> None:
    prepared = prepare([*OLD, *OWN], asked={"skill_context": "s"}, memory_text="m", pack_json="{}")
    assert [message.role == "system" for message in prepared.messages] == [True] + [False] * 8


def test_the_hash_is_of_the_system_prompt_and_the_thinking_prefix_alone() -> None:
    one = prepare(OWN)
    assert one.render_hash == render_hash("Be good.") == prepare([*OLD, *OWN], memory_text="m").render_hash
    assert prepare(OWN, system_prompt="Be bad.").render_hash != one.render_hash
    thinking = prepare(OWN, thinking_prefix="Think hard.").render_hash
    assert thinking == render_hash("Be good.", "Think hard.") != one.render_hash
    assert len(render_hash("\ud800")) == 16


def test_the_summary_stays_when_turns_are_left_out() -> None:
    summary = summary_message("what was", [], "model", 400)
    kind = Message(role="system", content="Be kind.")
    long = [user("x" * 4000, "t-0"), answer("y", "t-0"), user("short", "t-1"), answer("z", "t-1")]
    prepared = prepare([summary, kind, *long, *OWN], max_context_tokens=500)
    assert words(prepared.messages)[1:] == ["summary", "Be kind.", "short", "z", "the question", "assistant", "found"]
    assert prepared.left_out == 2
    assert prepared.full_estimate == prepared.estimate + estimate_messages(long[:2])


def test_a_turn_after_a_compaction() -> None:
    summary = summary_message("what was", [], "model", 400)
    prepared = prepare([summary, *OWN], pack_json="{}")
    assert words(prepared.messages)[1:] == ["summary", "context", "the question", "assistant", "found"]


def test_tools_and_dense_text_leave_less_room() -> None:
    history = [user("x" * 800, "t-0"), answer("y", "t-0"), *OWN]
    assert prepare(history, max_context_tokens=400).left_out == 0
    assert prepare(history, max_context_tokens=400, tools_estimate=200).left_out == 2
    assert prepare(history, max_context_tokens=400, ratio=2.0).left_out == 2


def test_memory_and_pack_take_a_part_of_the_context_only() -> None:
    prepared = prepare(OWN, max_context_tokens=2_000, memory_text="m" * 50_000, pack_json='"' + "p" * 90_000)
    assert prepared.fixed_estimate < 1_000


@unhurried
@given(histories(), st.integers(256, 3_000), st.booleans(), st.booleans(), st.booleans())
def test_every_preparation(
    history: list[Message], window: int, has_memory: bool, has_pack: bool, has_skill: bool
) -> None:
    prepared = prepare(
        history,
        asked={"skill_context": "Use tools."} if has_skill else None,
        max_context_tokens=window,
        memory_text="m" * 300 if has_memory else "",
        pack_json='{"a":1}' if has_pack else None,
        tools_estimate=20,
    )
    found = list(prepared.messages)
    begin = next(i for i, message in enumerate(history) if message.turn == TURN)
    own = history[begin:]
    assert found[len(found) - len(own) :] == own, "the turn itself is whole, and last"
    assert found[0].content.startswith("Be good.\n\nSession: s1\nProvider")
    before = found[1 : len(found) - len(own)]
    if has_memory:
        assert before.pop(0).note_kind == "memory"
    if has_skill:
        assert before.pop().note_kind == "skill"
    if has_pack:
        assert before.pop().note_kind == "context"
    pinned = [m for m in history[:begin] if m.role == "system" or m.note_kind == "summary"]
    assert [message for message in before if message in pinned] == pinned
    others = [message for message in before if message not in pinned]
    old = [message for message in history[:begin] if message not in pinned]
    assert others == (old[len(old) - len(others) :] if others else []), "the newest of the older turns"
    assert prepared.left_out == len(old) - len(others)
    assert prepared.estimate == estimate_messages(found)
    assert prepared.full_estimate == prepared.fixed_estimate + estimate_messages(history)
    if others:
        assert prepared.estimate + 20 <= window

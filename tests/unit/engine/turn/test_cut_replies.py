"""Replies that are not whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from brainq.contracts.message import Message
from brainq.contracts.model import FinishKind, ModelReply, TokenUsage
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import calls, says
from brainq.engine.turn.call_plan import CallPlanner
from brainq.engine.turn.decide import End
from brainq.engine.turn.replies import (
    MAX_CUT_REPLIES,
    AskAgain,
    cut_replies,
    judge_finish,
    problem_note,
)
from brainq.runtime.text.estimate import with_sizes
from tests.unit.engine.turn.views import view

CUT = calls(("write", '{"text": "alice,100\\nbob,10'), ("read", {"a": 1}), finish="length")


def cut_before(count: int, turn: str = "t-1") -> TurnView:
    reply = Message(role="assistant", turn=turn, extra={"problem": "length"})
    return replace(view(), history=with_sizes([Message(role="assistant", turn=turn), *[reply] * count]))


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("", FinishKind.WHOLE),
        ("stop", FinishKind.WHOLE),
        ("STOP", FinishKind.WHOLE),
        ("tool_calls", FinishKind.WHOLE),
        ("function_call", FinishKind.WHOLE),
        ("length", FinishKind.LENGTH),
        ("max_tokens", FinishKind.LENGTH),
        ("model_context_window_exceeded", FinishKind.LENGTH),
        ("content_filter", FinishKind.FILTERED),
        ("refusal", FinishKind.FILTERED),
        ("pause_turn", FinishKind.BROKEN),
        ("abort", FinishKind.BROKEN),
        ("malformed_function_call", FinishKind.BROKEN),
        ("never heard of", FinishKind.BROKEN),
    ],
)
def test_what_a_finish_reason_means(word: str, finish: FinishKind) -> None:
    assert ModelReply(finish_reason=word).finish is finish


@pytest.mark.parametrize("reply", [says("hi"), calls(("read", {})), says(""), ModelReply(text="hi")])
def test_a_whole_reply_is_acted_on(reply: ModelReply) -> None:
    assert judge_finish(view(), 2, reply) is None


@pytest.mark.parametrize(
    ("finish", "words"),
    [
        ("length", "Your reply was cut off at 7 tokens; none of its calls ran. Write less at once"),
        ("content_filter", "Your reply was stopped by a content filter; none of its calls ran. Go on another"),
        ("pause_turn", "Your reply broke off (pause_turn); none of its calls ran. Write it again."),
    ],
)
def test_calls_of_a_reply_that_is_not_whole_are_told_why(finish: str, words: str) -> None:
    reply = calls(("read", {}), finish=finish, usage=TokenUsage(output_tokens=7))
    tell = judge_finish(view(), 2, reply)

    assert isinstance(tell, AskAgain)
    assert tell.problem == ModelReply(finish_reason=finish).finish.value
    assert tell.text.startswith(words)


def test_where_no_tokens_were_counted_none_are_named() -> None:
    tell = judge_finish(view(), 2, CUT)

    assert isinstance(tell, AskAgain)
    assert "cut off at its length limit;" in tell.text


@pytest.mark.parametrize(
    ("finish", "stop_reason"), [("length", StopReason.LENGTH), ("content_filter", StopReason.FILTERED)]
)
def test_a_text_that_is_not_whole_ends_the_turn(finish: str, stop_reason: StopReason) -> None:
    end = judge_finish(view(), 2, says("Half an ans", finish=finish))

    assert isinstance(end, End)
    assert (end.ending, end.stop_reason) == (Ending.COMPLETED, stop_reason)
    assert end.text, "stands where the reply has no text at all"


def test_a_reply_without_calls_that_broke_off_is_asked_for_again_with_a_note() -> None:
    tell = judge_finish(view(), 2, says("Hm", finish="abort"))

    assert isinstance(tell, AskAgain)
    note = problem_note(tell, "t-1", 2)
    assert (note.role, note.turn, note.step) == ("user", "t-1", 2)
    assert "not from the user" in note.content
    assert tell.text in note.content


def test_a_turn_that_is_cut_too_often_ends() -> None:
    assert isinstance(judge_finish(cut_before(MAX_CUT_REPLIES - 1), 2, CUT), AskAgain)
    assert isinstance(judge_finish(cut_before(MAX_CUT_REPLIES), 2, CUT), End)
    assert cut_replies(cut_before(2)) == 2
    assert cut_replies(cut_before(2, turn="an earlier one")) == 0


def test_the_last_step_is_not_asked_for_again() -> None:
    last = view().steps_max
    assert isinstance(judge_finish(view(), last - 1, CUT), AskAgain)
    assert isinstance(judge_finish(view(), last, CUT), End)


def test_each_call_gets_its_message_and_none_keeps_half_an_argument() -> None:
    nameless: Any = calls(("", '{"pa')).calls
    reply = CUT.model_copy(update={"calls": (*CUT.calls, *nameless)})
    plan = CallPlanner(Brain("b", "openai:x"), view(), 2, reply).refuse("length", "It was cut.")

    assert [(call.id, call.tool, call.denied, call.wave) for call in plan.calls] == [
        ("c2-0", "write", "cut", 1),
        ("c2-1", "read", "cut", 1),
        ("c2-2", "unnamed", "cut", 1),
    ]
    assert [call.arguments for call in plan.message.calls] == [{}, {"a": 1}, {}]
    messages = [Message.model_validate_json(call.message_json) for call in plan.calls]
    assert [message.call_id for message in messages] == ["c2-0", "c2-1", "c2-2"]
    assert {message.content for message in messages} == {"Not run. It was cut."}
    assert all(message.is_error for message in messages)
    assert cut_replies(replace(view(), history=with_sizes([plan.message]))) == 1

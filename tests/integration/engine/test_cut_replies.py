"""Whole turns whose model is cut off, filtered, or broken off: none of its calls runs, and the ending says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, Effect, ScriptedProvider
from brainq.adapters.models.anthropic.wire import to_messages as to_anthropic
from brainq.adapters.models.openai.chat_wire import to_messages as to_openai
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.engine.models.scripted import calls, says
from tests.support.pump import Pump

HALF = '{"path": "pay.csv", "text": "alice,100\\nbob,10'
WHOLE = {"path": "pay.csv", "text": "alice,100\nbob,1000"}
MEASURED = TokenUsage(input_tokens=50, output_tokens=40)


class Cut:
    """A brain whose model says `replies`, one a step; what its tools ran with, and what its model was shown."""

    def __init__(self, pumps: Callable[..., Pump], *replies: ModelReply, **limits: Any) -> None:
        self.ran: list[tuple[str, str]] = []
        self.seen: list[ModelRequest] = []

        def answer(request: ModelRequest) -> ModelReply:
            self.seen.append(request)
            return replies[request.step - 1]

        brain = Brain("cut", ScriptedProvider(rules=answer), "Be brief.")
        for name, effect in (("note", Effect.LOCAL_WRITE), ("wipe", Effect.DESTRUCTIVE), ("read", Effect.READ_ONLY)):
            brain.tool(effect=effect, name=name)(self._tool(name))
        self.pump = pumps(brain)
        self.handle = self.pump.submit("s1", "Write the list.", limits=limits or None)
        self.result: TurnResult = self.pump.finish(self.handle)

    def _tool(self, name: str) -> Callable[[str, str], str]:
        def work(path: str, text: str = "") -> str:
            self.ran.append((name, text))
            return "ok"

        return work

    def told(self) -> list[tuple[str, str]]:
        """The tool messages that the last step's model was shown."""
        return [(m.call_id, m.content) for m in self.seen[-1].messages if m.role == "tool"]

    def problems(self) -> list[Any]:
        return [
            event.data["problem"]
            for event in self.handle.events()
            if event.kind is EventKind.STEP_ENDED and "problem" in event.data
        ]


@pytest.mark.parametrize("tool", ["note", "wipe", "read"])
def test_no_call_of_a_cut_reply_runs_and_the_model_may_go_on(pumps: Callable[..., Pump], tool: str) -> None:
    cut = Cut(
        pumps,
        calls((tool, WHOLE), (tool, HALF), text="Writing.", finish="length", usage=MEASURED),
        calls((tool, WHOLE)),
        says("Done."),
    )

    assert cut.ran == [(tool, WHOLE["text"])]
    assert (cut.result.ending, cut.result.stop_reason, cut.result.text) == (
        Ending.COMPLETED,
        StopReason.ANSWERED,
        "Done.",
    )
    assert (cut.result.steps, cut.result.tool_calls) == (3, 1)
    said = "Not run. Your reply was cut off at 40 tokens; none of its calls ran. Write less at once"
    assert [(call, text[: len(said)]) for call, text in cut.told()] == [("c1-0", said), ("c1-1", said), ("c2-0", "ok")]
    assert cut.result.warnings == ("1 reply of the model was cut off at the length limit; no call of it ran",)
    assert cut.problems() == ["length"]
    ended = [event.data for event in cut.handle.events() if event.kind is EventKind.CALL_ENDED]
    assert [(data["status"], data["detail"]) for data in ended[:2]] == [("denied", "cut")] * 2


def test_what_both_vendors_are_shown_of_a_cut_reply(pumps: Callable[..., Pump]) -> None:
    nameless = calls(("note", HALF), ("", ""), finish="length")
    cut = Cut(pumps, nameless, says("Never mind."))

    openai = to_openai(cut.seen[-1].messages)
    asked = next(message for message in openai if message.get("tool_calls"))
    assert [call["function"] for call in asked["tool_calls"]] == [
        {"name": "note", "arguments": "{}"},
        {"name": "unnamed", "arguments": "{}"},
    ]
    _, anthropic = to_anthropic(cut.seen[-1].messages)
    assert [message["role"] for message in anthropic] == ["user", "assistant", "user"]
    assert [block["type"] for block in anthropic[1]["content"]] == ["tool_use", "tool_use"]
    assert [block["type"] for block in anthropic[2]["content"]] == ["tool_result", "tool_result"]


def test_no_call_of_a_filtered_reply_runs(pumps: Callable[..., Pump]) -> None:
    cut = Cut(pumps, calls(("wipe", WHOLE), finish="content_filter"), says("I may not."))

    assert cut.ran == []
    assert "stopped by a content filter; none of its calls ran" in cut.told()[0][1]
    assert cut.result.text == "I may not."
    assert cut.problems() == ["filtered"]


@pytest.mark.parametrize(
    ("finish", "stop_reason", "stand_in"),
    [
        ("length", StopReason.LENGTH, "My reply was cut off before its first word."),
        ("content_filter", StopReason.FILTERED, "A content filter stopped my reply."),
    ],
)
def test_text_that_is_not_whole_ends_the_turn_and_the_result_says_so(
    pumps: Callable[..., Pump], finish: str, stop_reason: StopReason, stand_in: str
) -> None:
    cut = Cut(pumps, says("The answer is 4", finish=finish))

    assert (cut.result.ending, cut.result.stop_reason) == (Ending.COMPLETED, stop_reason)
    assert (cut.result.text, cut.result.steps) == ("The answer is 4", 1)
    assert cut.result.last_agent_message is None, "what the model said last is the text"
    row = cut.pump.wiring.store.turns.get(cut.handle.turn_id)
    assert row is not None
    assert row.stop_reason is stop_reason
    closing = next(event for event in cut.handle.events() if event.kind is EventKind.TURN_CLOSING)
    assert closing.data["stop_reason"] == stop_reason.value

    silent = Cut(pumps, says("", finish=finish))
    assert (silent.result.stop_reason, silent.result.text) == (stop_reason, stand_in)


def test_a_turn_that_is_cut_again_and_again_ends(pumps: Callable[..., Pump]) -> None:
    one = calls(("note", HALF), text="I write.", finish="length")
    cut = Cut(pumps, *[one] * 5)

    assert cut.ran == []
    assert (cut.result.stop_reason, cut.result.text, cut.result.steps) == (StopReason.LENGTH, "I write.", 4)
    assert cut.result.warnings == ("3 replies of the model were cut off at the length limit; no call of them ran",)


def test_the_last_step_of_the_budget_ends_as_cut_and_not_as_used_up(pumps: Callable[..., Pump]) -> None:
    cut = Cut(pumps, calls(("note", HALF), text="I write.", finish="length"), max_steps=1)

    assert (cut.result.stop_reason, cut.result.text) == (StopReason.LENGTH, "I write.")
    assert cut.ran == []


def test_a_reply_without_calls_that_broke_off_is_asked_for_again(pumps: Callable[..., Pump]) -> None:
    cut = Cut(pumps, says("Let me s", finish="pause_turn"), says("There it is."))

    assert cut.result.text == "There it is."
    shown = [(message.role, message.content) for message in cut.seen[-1].messages][-2:]
    assert shown[0] == ("assistant", "Let me s")
    assert shown[1][0] == "user"
    assert "Your reply broke off (pause_turn)" in shown[1][1]


@pytest.mark.parametrize("tool", ["note", "wipe"])
def test_broken_arguments_of_a_whole_reply_are_refused_for_a_write_with_the_place(
    pumps: Callable[..., Pump], tool: str
) -> None:
    cut = Cut(pumps, calls((tool, HALF)), says("Well."))

    assert cut.ran == []
    [(_, text)] = cut.told()
    assert f"The arguments of {tool} were refused: they are not JSON (Unterminated string" in text


def test_broken_arguments_of_a_whole_reply_are_mended_for_a_read(pumps: Callable[..., Pump]) -> None:
    cut = Cut(pumps, calls(("read", json.dumps({"path": "a"})[:-1])), says("Well."))

    assert cut.ran == [("read", "")]

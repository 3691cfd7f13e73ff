"""A conversation that was had elsewhere, and that a session's first turn brings along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, Context, InvalidInput
from brainq.contracts.conversation import MAX_HISTORY_MESSAGES, OPENING_PLACEHOLDER
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.testing import ScriptedProvider, says
from tests.support.pump import Pump

ASKED = {"id": "call_x7", "name": "find", "arguments": {"what": "boats"}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Boats?"},
    {"role": "assistant", "content": "", "calls": [ASKED]},
    {"role": "tool", "call_id": "call_x7", "content": "three boats"},
    {"role": "assistant", "content": "Three."},
]


class Seen:
    """A brain, and what its model was shown, without system messages."""

    def __init__(self, **options: Any) -> None:
        self.shown: list[list[tuple[str, str]]] = []
        self.brain = Brain("brought", ScriptedProvider(rules=self._answer), **options)

    def _answer(self, request: ModelRequest) -> ModelReply:
        self.shown.append([(m.role, m.content) for m in request.messages if m.role != "system"])
        return says(f"answer {len(self.shown)}")


def pairs(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


def test_a_session_begins_with_it_and_keeps_it(pumps: Callable[..., Pump]) -> None:
    seen = Seen()
    pump = pumps(seen.brain)
    pump.finish(pump.submit("s1", "Red ones?", history=CHAT))
    assert seen.shown[0] == [*pairs(CHAT), ("user", "Red ones?")]
    again = [{"role": "user", "content": "Of another page."}]
    pump.finish(pump.submit("s1", "How much?", history=again))
    assert seen.shown[1] == [*seen.shown[0], ("assistant", "answer 1"), ("user", "How much?")]

    client: Any = pump.wiring.state.redis
    client.flushall()  # Redis lets the session go: it goes on from SQL
    pump.finish(pump.submit("s1", "Well?"))
    assert seen.shown[2][: len(seen.shown[1])] == seen.shown[1]
    first = pump.client.session("s1").history()[0]
    assert [m.content for m in pump.client.handle(first.turn_id).transcript()] == ["Red ones?", "answer 1"]


def test_what_does_not_fit_is_left_out_turn_by_turn(pumps: Callable[..., Pump]) -> None:
    seen = Seen(context=Context(auto_compact=False))
    pump = pumps(seen.brain)
    long = [
        {"role": role, "content": f"{role} {n} " + "word " * 300} for n in range(20) for role in ("user", "assistant")
    ]
    pump.finish(pump.submit("s1", "Hm?", history=long, limits={"max_context_tokens": 3_000}))
    kept = seen.shown[0]
    assert 3 <= len(kept) < 20
    assert kept[0][1].startswith("user ")
    assert kept[-2][1].startswith("assistant 19")


def test_one_that_the_assistant_opened(pumps: Callable[..., Pump]) -> None:
    seen = Seen()
    pump = pumps(seen.brain)
    pump.finish(pump.submit("s1", "Sails.", history=[{"role": "assistant", "content": "Boats or sails?"}]))
    assert seen.shown[0] == [("user", OPENING_PLACEHOLDER), ("assistant", "Boats or sails?"), ("user", "Sails.")]


def test_redacted_sql_keeps_none_of_it(pumps: Callable[..., Pump]) -> None:
    pump = pumps(Seen(redact_logs=True).brain)
    pump.finish(pump.submit("s1", "Red ones?", history=CHAT))
    first = pump.wiring.store.turns.first("s1")
    assert first is not None
    assert first.history == ()


def test_what_is_no_conversation_is_refused_by_the_message(pumps: Callable[..., Pump]) -> None:
    pump = pumps(Seen().brain)
    user, made, result, said = CHAT
    for messages, field, problem in (
        ([{"role": "system", "content": "Be brief."}], "history[0]", "skill_context"),
        ([user, made], "history", "'call_x7' has no result"),
        ([user, made, said], "history[2]", "'call_x7' before it has no result"),
        ([user, result], "history[1]", "no result is due"),
        ([made, result | {"call_id": "other"}], "history[1]", "the result of 'call_x7' is due"),
        ([user | {"calls": [ASKED]}], "history[0]", "makes no calls"),
        ([made | {"calls": [ASKED, ASKED]}], "history[0]", "have one id"),
        ([user | {"turn": "earlier-1"}], "history[0]", "'turn' is the engine's"),
        ([user | {"content": " "}], "history[0]", "it is empty"),
        ([user | {"content": "\ud83c"}], "history[0]", "surrogate"),
        ([user] * (MAX_HISTORY_MESSAGES + 1), "history", "send the newest 1,000"),
        ([user | {"content": "x" * 600_000}] * 2, "history", "send at most 1,000,000"),
        ([user | {"content": 7}], "history[0].content", "string"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            pump.submit("s1", "Go.", history=messages)
        assert str(refusal.value).startswith(f"{field}: ")
        assert problem in str(refusal.value)
    with pytest.raises(InvalidInput, match="greeting: a turn with a history"):
        pump.submit("s1", "Go.", greeting="Hello", history=CHAT)

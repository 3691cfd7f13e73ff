"""What a turn has read that nobody vouches for, and which calls ask a person after it."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.conversation import EMPTY_CONVERSATION, Conversation
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply
from brainq.contracts.status import Effect
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.tools.tool import make_tool
from brainq.engine.turn.call_plan import CallPlanner
from brainq.engine.turn.prompt.summary import summary_message
from brainq.errors import InvalidInput
from tests.unit.engine.turn.views import view

REASON = "the turn has read results of search, which are not trusted"


def brain_of(**given: Any) -> Brain:
    brain = Brain("office", "openai:x", **given)

    @brain.tool(effect=Effect.READ_ONLY, untrusted=True)
    def search(query: str) -> str:
        return query

    @brain.tool(effect=Effect.READ_ONLY)
    def clock() -> str:
        return "noon"

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def note(text: str) -> None: ...

    @brain.tool(effect=Effect.LOCAL_WRITE, approval=False)
    def scratch(text: str) -> None: ...

    return brain


def result(tool: str, turn: str = "t-1", **given: Any) -> Message:
    return Message(role="tool", content="x", call_id="c1-0", name=tool, turn=turn, step=1, **given)


def conversation(*messages: Message) -> Conversation:
    return EMPTY_CONVERSATION.plus(messages, [1] * len(messages))


def asks(brain: Brain, seen: TurnView, *names: str) -> list[str]:
    """Why each call of a reply asks; "" for one that does not."""
    arguments: dict[str, dict[str, Any]] = {"clock": {}, "search": {"query": "q"}}
    wanted = tuple(
        ToolCall(id=f"p{place}", name=name, arguments=arguments.get(name, {"text": "t"}))
        for place, name in enumerate(names)
    )
    reply = ModelReply(calls=wanted)
    planner = CallPlanner(brain, seen, 2, reply)
    made = planner.plan(planner.judge())
    return [call.ask.reason if call.ask else "" for call in made.calls]


def test_changes_ask_once_an_untrusted_result_is_in_the_turn_and_reads_do_not() -> None:
    brain = brain_of(after_untrusted="ask")
    clean, read = view(history=conversation(result("clock"))), view(history=conversation(result("search")))
    assert asks(brain, clean, "search", "note") == ["", ""]  # what was written before anything was read
    assert asks(brain, read, "clock", "search", "note", "scratch") == ["", "", REASON, ""]
    failed = view(history=conversation(result("search", is_error=True)))
    assert asks(brain, failed, "note") == [REASON]  # an error may be in the words of whoever was asked


def test_without_the_policy_nothing_asks() -> None:
    assert asks(brain_of(), view(history=conversation(result("search"))), "note") == [""]


def test_earlier_turns_count_where_the_session_does() -> None:
    earlier = view(history=conversation(result("search", "t-0"), result("clock")))
    assert asks(brain_of(after_untrusted="ask"), earlier, "note") == [""]
    assert asks(brain_of(after_untrusted="ask_in_session"), earlier, "note") == [REASON]


def test_what_was_compacted_counts_and_so_does_what_the_turn_began_with() -> None:
    brain = brain_of(after_untrusted="ask")
    summarised = "the turn has read results of a summary, which are not trusted"
    assert asks(brain, view(compacted=True), "note") == [summarised]
    assert asks(brain, view(opening={"search": "x"}), "note") == [REASON]
    summary = summary_message("It went on.", (), "model", 100)
    in_session = view(history=conversation(summary))
    assert asks(brain, in_session, "note") == [""]
    assert asks(brain_of(after_untrusted="ask_in_session"), in_session, "note") == [summarised]


def test_tools_that_talk_to_the_network_are_untrusted_unless_they_say_otherwise() -> None:
    def post(text: str) -> None: ...

    assert [make_tool(post, effect=effect).untrusted for effect in Effect] == [
        effect is Effect.NETWORK for effect in Effect
    ]
    assert not make_tool(post, effect=Effect.NETWORK, untrusted=False).untrusted


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match="after_untrusted"):
        brain_of(after_untrusted="deny")

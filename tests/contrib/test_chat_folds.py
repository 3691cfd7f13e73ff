"""Chat wires are pure folds: whoever comes again, from wherever, holds the same whole, and no text twice."""

from __future__ import annotations

import json
from typing import Any

from ag_ui.core import Message
from hypothesis import given, settings
from pydantic import TypeAdapter

from brainq.contracts.event import EventKind
from brainq.contracts.status import Ending
from brainq.contrib.ag_ui import events as ag_ui
from brainq.contrib.ai_sdk import chunks as ai_sdk
from tests.support.chat_clients import AgUiClient, UiMessage
from tests.support.chat_scripts import TURN, Script, scripts

EXAMPLES = settings(max_examples=12, deadline=None, derandomize=True)
ASKED: dict[str, Any] = {"id": "m1", "role": "user", "content": "hello"}
MESSAGES = TypeAdapter(list[Message])


def chunks_of(script: Script) -> list[list[ai_sdk.Chunk]]:
    """What each event is told as."""
    writer = ai_sdk.MessageWriter(TURN)
    return [writer.read(event, more) for event, more in script.whole]


def flat(told: list[list[Any]]) -> list[Any]:
    return [chunk for chunks in told for chunk in chunks]


@EXAMPLES
@given(scripts())
def test_a_message_of_the_ai_sdk_is_the_same_from_wherever_it_is_read_again(script: Script) -> None:
    told = chunks_of(script)
    whole = UiMessage().take(flat(told))
    assert whole.text == "\n".join(script.texts)
    assert whole.reasoning == script.thoughts
    assert (whole.id, whole.metadata["turnId"]) == (TURN, TURN)
    assert not any(part.get("state") == "streaming" for part in whole.parts)
    for seen in range(1, len(told)):
        # A reload, or a resumed stream: all again, in place of what came.
        again = UiMessage().take(flat(told[:seen])).take(flat(told), replay=True)
        assert vars(again) == vars(whole)
        # By the event's number: the rest, of a state that another gateway made of the same events.
        writer = ai_sdk.MessageWriter(TURN)
        for event, more in script.whole[:seen]:
            writer.read(event, more)
        rest = flat([writer.read(event, more) for event, more in script.whole[seen:]])
        assert vars(UiMessage().take(flat(told[:seen])).take(rest)) == vars(whole)


@EXAMPLES
@given(scripts())
def test_an_answer_goes_on_with_the_message_that_asked(script: Script) -> None:
    told = chunks_of(script)
    whole = UiMessage().take(flat(told))
    writer = ai_sdk.MessageWriter(TURN)
    behind = 0  # the step's reply, from which on a client that answers is told
    for seen, (event, more) in enumerate(script.whole, 1):
        writer.read(event, more)
        if event.kind is EventKind.STEP_ENDED:
            behind = seen
        if not writer.chat.waits_for_reader:
            continue
        paused = UiMessage().take([*flat(told[:seen]), *writer.rest()])
        assert paused.finish == "tool-calls"
        states = {part.get("state") for part in paused.parts}
        assert states & {"approval-requested", "input-available"}
        paused.finish = ""
        paused.transient = UiMessage().take(flat(told[:behind])).transient
        assert vars(paused.take([*writer.opening(), *flat(told[behind:])])) == vars(whole)


def run_of(
    script: Script, before: list[dict[str, Any]], takes_back: list[dict[str, Any]]
) -> list[list[dict[str, Any]]]:
    """What each event is told as; the first is what opens the run."""
    held, ours = MESSAGES.validate_python(before), MESSAGES.validate_python(takes_back)
    writer = ag_ui.RunWriter(TURN, "s1", "run1", held, takes_back=ours)
    return [dumped(writer.opening()), *(dumped(writer.read(event, more)) for event, more in script.whole)]


def dumped(events: list[Any]) -> list[dict[str, Any]]:
    return [json.loads(event.model_dump_json(by_alias=True)) for event in events]


@EXAMPLES
@given(scripts())
def test_a_conversation_of_ag_ui_is_the_same_from_wherever_it_is_run_again(script: Script) -> None:
    told = run_of(script, [ASKED], [])
    whole = AgUiClient([ASKED]).run(flat(told))
    assert whole.text == "\n".join(script.texts)
    assert whole.reasoning == script.thoughts
    ending = script.result.ending if script.result else None
    assert (whole.error is not None) == (ending is Ending.FAILED)
    if ending is Ending.CANCELLED:
        assert whole.outcome == {"type": "cancelled"}
    for seen in range(1, len(told)):
        dropped = AgUiClient([ASKED]).run(flat(told[:seen]))
        ours = [message for message in dropped.messages if message["id"].startswith(TURN)]
        opened = run_of(Script(), [ASKED], ours)
        assert dropped.run(flat([*opened, *told[1:]])).messages == whole.messages


@EXAMPLES
@given(scripts())
def test_a_run_that_answers_an_interrupt_goes_on_where_it_stood(script: Script) -> None:
    whole = AgUiClient([ASKED]).run(flat(run_of(script, [ASKED], [])))
    writer = ag_ui.RunWriter(TURN, "s1", "run1", MESSAGES.validate_python([ASKED]))
    told = [dumped(writer.opening())]
    behind = 0
    for seen, (event, more) in enumerate(script.whole, 1):
        told.append(dumped(writer.read(event, more)))
        if event.kind is EventKind.STEP_ENDED:
            behind = seen
        if not writer.chat.waits_for_reader:
            continue
        client = AgUiClient([ASKED]).run([*flat(told), *dumped(writer.rest())])
        assert client.outcome is not None
        wanted = client.outcome.get("interrupts") or client.outcome["pendingToolCallIds"]
        assert {want if isinstance(want, str) else want["id"] for want in wanted} <= set(writer.chat.waiting)
        assert client.run(continued(script, client, behind)).messages == whole.messages


def continued(script: Script, client: AgUiClient, behind: int) -> list[dict[str, Any]]:
    """The events of the run that answers: from the reply on that made the calls."""
    answered = [message["toolCallId"] for message in client.messages if message["role"] == "tool"]
    writer = ag_ui.RunWriter(TURN, "s1", "run2", MESSAGES.validate_python([ASKED]), answered=answered)
    told: list[dict[str, Any]] = []
    for seen, (event, more) in enumerate(script.whole, 1):
        events = writer.read(event, more)
        if seen == behind:
            told = dumped(writer.opening())
        elif seen > behind:
            told += dumped(events)
    return told

"""What a run of AG-UI brings along."""

from __future__ import annotations

from typing import Any

from brainq.contrib.ag_ui.routes import (
    RunBody,
    read_answers,
    read_messages,
    read_question,
    submit_options,
)
from brainq.gateway.wires.chat.requests import ClientResult

TURN = "a" * 26
ASKED: list[dict[str, Any]] = [
    {"id": "m1", "role": "user", "content": "ring"},
    {"id": f"{TURN}-s1", "role": "assistant", "content": "I ring."},
]
RESULT = {"id": "r1", "role": "tool", "toolCallId": f"{TURN}-c1-0", "content": "rang"}
OTHER = {"id": "r2", "role": "tool", "toolCallId": f"{TURN}-c1-1", "content": "rang, too"}
TOLD = {"id": f"{TURN}-c1-2-result", "role": "tool", "toolCallId": f"{TURN}-c1-2", "content": "ours"}


def body(*messages: dict[str, Any], **more: Any) -> RunBody:
    return RunBody.model_validate({"threadId": "s1", "runId": "r1", "messages": [*ASKED, *messages], **more})


def answered(*messages: dict[str, Any]) -> list[str]:
    given = body(*messages)
    answers = read_answers(given, read_messages(given))
    return [answer.call_id for answer in answers if isinstance(answer, ClientResult)]


def test_results_that_come_last_are_answers() -> None:
    assert answered() == []
    assert answered(RESULT) == [f"{TURN}-c1-0"]
    assert sorted(answered(RESULT, OTHER)) == [f"{TURN}-c1-0", f"{TURN}-c1-1"]
    assert answered(RESULT, TOLD, OTHER) == [f"{TURN}-c1-1"], "what we told ends what came last"


def test_results_of_before_are_no_answers_to_a_later_question() -> None:
    later = {"id": "m2", "role": "user", "content": "and now?"}
    for messages in ((RESULT, later), (RESULT, OTHER, {"id": "a2", "role": "assistant", "content": "So."}, later)):
        assert answered(*messages) == []
        assert read_question(read_messages(body(*messages))).text == "and now?"


def test_what_the_model_is_told_counts_of_who_may_configure() -> None:
    given = body(context=[{"description": "Where", "value": "In the shop."}])
    messages = read_messages(given)
    assert submit_options(given, messages, configures=False).get("skill_context") is None
    assert submit_options(given, messages, configures=True).get("skill_context") == "Where: In the shop."

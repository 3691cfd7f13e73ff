"""Chat wires as their own npm clients read them: real pools, a gateway in a process, connections that break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.brains.chatty import STORY, THOUGHT
from tests.support.gateways import GatewayProcess
from tests.support.js_clients import why_not
from tests.support.js_clients.node import Node
from tests.support.world import World

REASON = why_not()
pytestmark = [pytest.mark.needs(REASON is None, REASON), pytest.mark.full]
APP = {"BRAINQ_APP": "tests.support.brains.chatty:brain"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"), environment=APP)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def gateway(world: World) -> Iterator[GatewayProcess]:
    with GatewayProcess(world.directory, world.environment) as gateway:
        yield gateway


@pytest.fixture
def chats(gateway: GatewayProcess) -> Iterator[Node]:
    with Node("ai_sdk.mjs", gateway.url) as node:
        yield node


@pytest.fixture
def agents(gateway: GatewayProcess) -> Iterator[Node]:
    with Node("ag_ui.mjs", gateway.url) as node:
        yield node


def text_of(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def tools_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in message["parts"] if part["type"].startswith("tool-")]


def shown(messages: list[dict[str, Any]]) -> str:
    """The assistant's last message without what differs from turn to turn."""
    last: dict[str, Any] = {**messages[-1], "metadata": {**messages[-1]["metadata"], "elapsedMs": 0, "usage": {}}}
    return json.dumps(last, sort_keys=True).replace(last["id"], "TURN")


def test_usechat_shows_texts_calls_and_how_a_turn_ended(chats: Node) -> None:
    story = chats.ask(do="send", chat="story", text="story")
    assert (story["status"], text_of(story["messages"][-1])) == ("ready", STORY)
    assert chats.ask(do="read", chat="read", text="story")["states"] > 3, "it comes in pieces"
    looked = chats.ask(do="send", chat="look", text="look a b")["messages"][-1]
    states = [(part["state"], part["output"]) for part in tools_of(looked)]
    assert states == [("output-available", {"saw": "a 😀"}), ("output-available", {"saw": "b 😀"})]
    assert text_of(looked).startswith("Let me see. Read: ")
    (failed,) = tools_of(chats.ask(do="send", chat="fail", text="fail x")["messages"][-1])
    assert (failed["state"], "no x" in failed["errorText"]) == ("output-error", True)
    broken = chats.ask(do="send", chat="broken", text="broken")
    assert (broken["status"], broken["error"]["message"]) == ("error", "the model refuses")
    assert broken["messages"][-1]["metadata"]["ending"] == "failed"


def test_usechat_holds_no_text_that_was_taken_back(chats: Node) -> None:
    sent = chats.ask(do="send", chat="again", text="again")
    assert text_of(sent["messages"][-1]) == STORY
    kinds = [part["data"].get("event") for part in sent["data"]]
    assert "step.retried" in kinds, "an attempt was lost"


def test_usechat_resumes_from_wherever_its_connection_broke(chats: Node) -> None:
    whole = chats.ask(do="send", chat="whole", text="think")["messages"]
    reasoning = [part["text"] for part in whole[-1]["parts"] if part["type"] == "reasoning"]
    assert reasoning == [THOUGHT]
    frames = 0
    for frames in range(40):
        chat = f"broke-{frames}"
        sent = chats.ask(do="send", chat=chat, text="think", message="m1", breakAfter=frames)
        if sent["status"] == "ready":
            break
        last = sent["messages"][-1]
        if last["role"] == "user":  # nothing came: it is sent again, and is the same turn
            sent = chats.ask(do="send", chat=chat, text="think", messages=[], message="m1")
        else:
            more = {"turn": last["id"], "messages": sent["messages"]}
            sent = chats.ask(do="resume", chat=chat, **more)
        assert sent["status"] == "ready", sent["error"]
        assert len(sent["messages"]) == 2
        assert shown(sent["messages"]) == shown(whole), frames
    assert frames > 10, "it broke in many places"


def test_usechat_answers_approvals_and_goes_on(chats: Node, world: World) -> None:
    asked = chats.ask(do="send", chat="two", text="two")["messages"][-1]
    first, second = tools_of(asked)
    assert first["state"] == second["state"] == "approval-requested"
    half = chats.ask(do="approve", chat="two", approval=first["approval"]["id"], approved=True)
    assert [part["state"] for part in tools_of(half["messages"][-1])] == ["approval-responded", "approval-requested"]
    done = chats.ask(do="approve", chat="two", approval=second["approval"]["id"], approved=False, reason="no")[
        "messages"
    ]
    assert len(done) == 2, "it is one message still"
    saved, denied = tools_of(done[-1])
    assert (saved["state"], saved["output"]) == ("output-available", "saved a")
    assert denied["state"] == "output-denied"
    assert text_of(done[-1]).startswith("Two of them. Read: Not run: a person refused it: no")
    # Decided elsewhere: a page that comes again is told.
    asked = chats.ask(do="send", chat="elsewhere", text="save c")["messages"][-1]
    (call,) = tools_of(asked)
    world.client.approve(call["approval"]["id"], by="ann")
    world.client.handle(asked["id"]).result(timeout_s=30)
    told = chats.ask(do="resume", chat="elsewhere", turn=asked["id"], messages=[])["messages"]
    assert tools_of(told[-1])[0]["output"] == "saved c"


LOCATE = {"name": "locate", "description": "Where the user is.", "parameters": {"type": "object"}}


def test_tools_of_the_page_are_run_by_its_client(chats: Node, agents: Node) -> None:
    sent = chats.ask(do="send", chat="locate", text="locate", tools=[LOCATE])
    assert (sent["status"], len(sent["messages"])) == ("ready", 2)
    (call,) = tools_of(sent["messages"][-1])
    output = {"ran": "locate", "input": {"exact": True}}
    assert (call["state"], call["output"]) == ("output-available", output)
    assert text_of(sent["messages"][-1]).startswith('Where? Read: {"ran":"locate"')
    asked = agents.ask(do="say", thread="locate", message="m1", text="locate", tools=[LOCATE])
    (pending,) = asked["outcome"]["pendingToolCallIds"]
    done = agents.ask(do="result", thread="locate", id="r1", call=pending, content="Graz")["messages"]
    assert [message["role"] for message in done] == ["user", "assistant", "tool", "assistant"]
    assert (done[2]["content"], done[3]["content"]) == ("Graz", "Read: Graz")


def test_clients_are_told_what_is_refused(world: World, tmp_path: Path) -> None:
    few = {**world.environment, "BRAINQ_HTTP_REQUESTS_S": "0.1"}
    with GatewayProcess(tmp_path, few) as limited:
        with Node("ai_sdk.mjs", limited.url) as chats:
            assert chats.ask(do="send", chat="limited", text="story")["status"] == "ready"
            refused = chats.ask(do="again", chat="limited")
        with Node("ag_ui.mjs", limited.url) as agents:
            failed = agents.ask(do="say", thread="limited", message="m1", text="story")["failed"]
    assert (refused["status"], refused["error"]["status"], failed["status"]) == ("error", 429, 429)
    for told in (refused["error"], failed):
        assert "urn:brainq:problem:too-many-requests" in told["message"]


def test_agents_of_ag_ui_hold_messages_calls_and_outcomes(agents: Node) -> None:
    said = agents.ask(do="say", thread="t1", message="m1", text="look a")
    assert [message["role"] for message in said["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert said["outcome"] == {"type": "success", "pendingToolCallIds": []}
    assert said["messages"][2]["content"] == '{"saw":"a 😀"}'
    again = agents.ask(do="say", thread="t2", message="m1", text="again")
    assert [message.get("content") for message in again["messages"]] == ["again", STORY]
    assert "brainq.step.retried" in again["custom"], "an attempt was lost"
    broken = agents.ask(do="say", thread="t3", message="m1", text="broken")
    assert (broken["runError"]["message"], broken["runError"]["code"]) == ("the model refuses", "model_error")


def test_agents_of_ag_ui_run_again_from_wherever_their_connection_broke(agents: Node) -> None:
    whole = agents.ask(do="say", thread="whole", message="m1", text="think")["messages"]
    assert [message["content"] for message in whole if message["role"] == "reasoning"] == [THOUGHT]
    turn = whole[-1]["id"].rpartition("-")[0]
    events = 0
    for events in range(60):
        thread = f"broke-{events}"
        broken = agents.ask(do="say", thread=thread, message="m1", text="think", breakAfter=events)
        if not broken.get("failed"):
            break
        told = agents.ask(do="run", thread=thread)["messages"]
        other = told[-1]["id"].rpartition("-")[0]
        assert str(told).replace(other, turn) == str(whole), events
    assert events > 10, "it broke in many places"


def test_agents_of_ag_ui_resume_interrupted_runs(agents: Node) -> None:
    asked = agents.ask(do="say", thread="two", message="m1", text="two")
    assert asked["outcome"]["type"] == "interrupt"
    first, second = asked["pending"]
    responses = {
        first["id"]: {"status": "resolved", "payload": {"approved": True, "editedArgs": {"name": "z"}}},
        second["id"]: {"status": "cancelled"},
    }
    done = agents.ask(do="answer", thread="two", responses=responses)
    assert (done["pending"], done["outcome"]["type"]) == ([], "success")
    roles = [message["role"] for message in done["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert done["messages"][2]["content"].endswith("saved z")
    assert done["messages"][3]["content"].startswith("Not run")

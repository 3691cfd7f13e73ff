"""Chat wires over HTTP: streams that are continued, answered and stopped, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import httpx
import pytest

from brainq import Brain, ScriptedProvider, TurnResult
from brainq.app.access import Verb
from brainq.engine.models.scripted import says
from tests.integration.gateway.conftest import make_brain
from tests.integration.gateway.test_door import token
from tests.integration.gateway.test_turns import problem
from tests.support.chat_clients import AgUiClient, UiMessage
from tests.support.gateways import GatewayThread
from tests.support.parts import forget
from tests.support.pump import Pump
from tests.support.pumping import pumping
from tests.support.wait import wait_until

Body = dict[str, Any]


@pytest.fixture
def live(pump: Pump) -> Generator[None]:
    with pumping(pump):
        yield


@pytest.fixture
def two_brains(pumps: Callable[..., Pump]) -> Pump:
    other = Brain("other", ScriptedProvider(rules=lambda request: says("The other one.")))
    return pumps((make_brain(), other))


def test_a_chat_and_an_agent_name_their_brain(two_brains: Pump) -> None:
    said = {"id": "m1", "role": "user", "content": "hello"}
    with GatewayThread(two_brains.settings, two_brains.wiring.brains) as gateway, pumping(two_brains):
        for body, text in (
            (chat(user("hello")), "Read: hello"),
            (chat(user("hello"), brain="other"), "The other one."),
        ):
            assert UiMessage().take(pieces(gateway.http.post("/api/chat", json=body))).text == text
        for path, text in (("/agui/gate", "Read: hello"), ("/agui/other", "The other one.")):
            told = pieces(gateway.http.post(path, json=run(said, thread="s2")))
            assert AgUiClient([said]).run(told).text == text
        refused = gateway.http.post("/agui/nobody", json=run(said, thread="s2"))
        assert problem(refused, 422, "invalid-input")["field"] == "brain"


def user(text: str, message_id: str = "m1") -> Body:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def chat(*messages: Body, chat_id: str = "s1", **more: Any) -> Body:
    return {"id": chat_id, "trigger": "submit-message", "messages": list(messages), **more}


def frames(answer: httpx.Response) -> list[tuple[str, Any]]:
    """The id and the data of each frame of a whole stream."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    found: list[tuple[str, Any]] = []
    for frame in answer.text.removesuffix("\n\n").split("\n\n"):
        if not frame.startswith(":"):
            fields = dict(line.split(": ", 1) for line in frame.split("\n"))
            data = fields["data"]
            found.append((fields.get("id", ""), data if data == "[DONE]" else json.loads(data)))
    return found


def pieces(answer: httpx.Response) -> list[Any]:
    return [data for _, data in frames(answer) if data != "[DONE]"]


def test_a_chat_of_the_ai_sdk_from_question_to_answer(gateway: GatewayThread, pump: Pump, live: None) -> None:
    asked = gateway.http.post("/api/chat", json=chat(user("look")))
    assert asked.headers["x-vercel-ai-ui-message-stream"] == "v1"
    told = frames(asked)
    assert told[-1] == ("", "[DONE]")
    message = UiMessage().take(pieces(asked))
    assert (message.text, message.finish) == ("Read: seen", "stop")
    assert message.tool(f"{message.id}-c1-0")["output"] == "seen"
    assert message.metadata["usage"]["outputTokens"] > 0
    # The same message is the same turn; another of the same words is another.
    again = gateway.http.post("/api/chat", json=chat(user("look")))
    assert frames(again) == told
    other = UiMessage().take(pieces(gateway.http.post("/api/chat", json=chat(user("look", "m2")))))
    assert other.id != message.id
    assert len(pump.client.session("s1").history()) == 2
    # Nothing is live any more; a turn that is named is told all the same, from every piece on.
    assert gateway.http.get("/api/chat/s1/stream").status_code == 204
    url = f"/api/chat/s1/stream?turn={message.id}"
    assert frames(gateway.http.get(url)) == told
    for at, (number, _) in enumerate(told[:-1], 1):
        if number != told[-2][0]:
            rest = gateway.http.get(url, headers={"Last-Event-ID": number})
            assert frames(rest) == told[at:]
    assert gateway.http.get(url, headers={"Last-Event-ID": told[-2][0].split(".")[0]}).status_code == 204
    forget(pump)
    kept = UiMessage().take(pieces(gateway.http.post("/api/chat", json=chat(user("look")))))
    assert (kept.id, kept.text) == (message.id, message.text)


def test_an_approval_is_answered_in_the_chat(gateway: GatewayThread, live: None) -> None:
    message = UiMessage().take(pieces(gateway.http.post("/api/chat", json=chat(user("save")))))
    call = message.tool(f"{message.id}-c1-0")
    assert (message.finish, call["state"]) == ("tool-calls", "approval-requested")
    # A page that was reloaded reads up to here again, and rests.
    assert pieces(gateway.http.get("/api/chat/s1/stream"))[-1]["finishReason"] == "tool-calls"
    decided = {**call, "state": "approval-responded", "approval": {**call["approval"], "approved": True}}
    answered = {"id": message.id, "role": "assistant", "parts": [{"type": "step-start"}, decided]}
    body = chat(user("save"), answered, messageId=message.id)
    message.take(pieces(gateway.http.post("/api/chat", json=body)))
    assert message.tool(call["toolCallId"])["output"] == "saved a"
    assert (message.text, message.finish) == ("Read: saved a", "stop")
    # It is decided: again changes nothing, and the other way is refused.
    again = UiMessage().take(message.parts and [])
    again.parts = [{"type": "step-start"}, dict(decided)]
    again.take(pieces(gateway.http.post("/api/chat", json=body)))
    assert again.text == "Read: saved a"
    decided["approval"] = {**call["approval"], "approved": False}
    problem(gateway.http.post("/api/chat", json=body), 409, "approval-decided")


def test_a_message_beside_an_open_approval_is_refused_and_the_chat_goes_on(
    gateway: GatewayThread, pump: Pump, live: None
) -> None:
    message = UiMessage().take(pieces(gateway.http.post("/api/chat", json=chat(user("save")))))
    refused = gateway.http.post("/api/chat", json=chat(user("save"), user("hello", "m2")))
    told = problem(refused, 409, "session-busy")
    assert told["live_turn_id"] == message.id
    assert "waits for an approval" in told["detail"]
    assert len(pump.client.turns()) == 1, "nothing waits behind it"
    # The page takes its message back, and the SDK sends the decision with the last one, which asked.
    call = message.tool(f"{message.id}-c1-0")
    decided = {**call, "state": "approval-responded", "approval": {**call["approval"], "approved": True}}
    answered = {"id": message.id, "role": "assistant", "parts": [{"type": "step-start"}, decided]}
    message.take(pieces(gateway.http.post("/api/chat", json=chat(user("save"), answered))))
    assert message.text == "Read: saved a"
    later = UiMessage().take(pieces(gateway.http.post("/api/chat", json=chat(user("hello", "m2")))))
    assert later.text == "Read: hello"


def test_a_chat_is_stopped_and_asked_again(gateway: GatewayThread, pump: Pump, live: None) -> None:
    message = UiMessage().take(pieces(gateway.http.post("/api/chat", json=chat(user("save")))))
    problem(gateway.http.post("/api/chat/s2/stop", params={"turn": message.id}), 404, "not-found")
    stopped = gateway.http.post("/api/chat/s1/stop", params={"turn": message.id})
    assert stopped.json() == {"turn_id": message.id}
    wait_until(lambda: pump.client.session("s1").live() is None, "it has ended")
    told = UiMessage().take(pieces(gateway.http.get("/api/chat/s1/stream", params={"turn": message.id})))
    assert (told.finish, told.metadata["ending"]) == ("interrupted", "cancelled")
    assert gateway.http.post("/api/chat/s1/stop").json() == {"turn_id": None}
    again = chat(user("hello"), trigger="regenerate-message")
    ids = [
        UiMessage().take(pieces(gateway.http.post("/api/chat", json={**again, "messageId": message_id}))).id
        for message_id in ("a", "a", "b")
    ]
    assert ids[0] == ids[1] != ids[2]


def run(*messages: Body, thread: str = "s1", run_id: str = "r1", **more: Any) -> Body:
    return {"threadId": thread, "runId": run_id, "messages": list(messages), **more}


def test_runs_of_ag_ui_are_interrupted_and_resumed(gateway: GatewayThread, live: None) -> None:
    said = {"id": "m1", "role": "user", "content": "save"}
    client = AgUiClient([said]).run(pieces(gateway.http.post("/agui", json=run(*[said]))))
    assert client.outcome is not None
    (interrupt,) = client.outcome["interrupts"]
    assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", interrupt["id"])
    # Whoever lost the stream runs it again, with what came: the turn is told in its place.
    before = list(client.messages)
    client.run(pieces(gateway.http.post("/agui", json=run(*client.messages, run_id="r2"))))
    assert client.messages == before
    # Nothing new is begun before it is answered.
    other = {"id": "m2", "role": "user", "content": "hello"}
    problem(gateway.http.post("/agui", json=run(*client.messages, other)), 409, "session-busy")
    answers = [
        {
            "interruptId": interrupt["id"],
            "status": "resolved",
            "payload": {"approved": True, "editedArgs": {"name": "b"}},
        }
    ]
    body = run(*client.messages, run_id="r3", resume=answers)
    client.run(pieces(gateway.http.post("/agui", json=body)))
    assert client.outcome == {"type": "success", "pendingToolCallIds": []}
    assert [message["role"] for message in client.messages] == ["user", "assistant", "tool", "assistant"]
    assert client.text.endswith("saved b")
    assert client.result["turnId"] in interrupt["id"]


RING: Body = {
    "name": "ring",
    "description": "Ring, and say where.",
    "parameters": {"type": "object", "properties": {"exact": {"type": "boolean"}}},
}


def test_tools_of_the_page_run_there(gateway: GatewayThread, live: None) -> None:
    """The model asks for one; the page runs it, and sends what came of it."""
    sent = chat(user("ring"), tools=[RING])
    message = UiMessage().take(pieces(gateway.http.post("/api/chat", json=sent)))
    call = message.tool(f"{message.id}-c1-0")
    assert (message.finish, call["state"], call["providerExecuted"]) == ("tool-calls", "input-available", False)
    output = {**call, "state": "output-available", "output": {"city": "Graz"}}
    body = chat(user("ring"), {"id": message.id, "role": "assistant", "parts": [output]})
    message.take(pieces(gateway.http.post("/api/chat", json=body)))
    assert message.text == 'Read: {"city":"Graz"}'
    again = UiMessage().take(pieces(gateway.http.post("/api/chat", json=sent)))
    assert again.text == message.text

    said = {"id": "m1", "role": "user", "content": "ring"}
    client = AgUiClient([said])
    client.run(pieces(gateway.http.post("/agui", json=run(said, thread="s2", tools=[RING]))))
    assert client.outcome is not None
    (pending,) = client.outcome["pendingToolCallIds"]
    client.messages.append({"id": "x", "role": "tool", "toolCallId": pending, "content": "Linz"})
    body = run(*client.messages, thread="s2", run_id="r2")
    client.run(pieces(gateway.http.post("/agui", json=body)))
    assert [message["role"] for message in client.messages] == ["user", "assistant", "tool", "assistant"]
    assert client.text == "Read: Linz"


@pytest.mark.parametrize("wire", ["/api/chat", "/agui"])
def test_calls_that_a_page_never_answers_end_their_turn(
    wire: str, gateways: Callable[..., GatewayThread], pump: Pump, live: None
) -> None:
    http = gateways(client_tools_s=0.5).http
    said = {"id": "m1", "role": "user", "content": "ring"}
    sent = run(said, tools=[RING]) if wire == "/agui" else chat(user("ring"), tools=[RING])
    assert pieces(http.post(wire, json=sent))
    (handle,) = [pump.client.handle(turn.turn_id) for turn in pump.client.session("s1").history()]

    def result() -> TurnResult | None:
        pump.sweep()
        return pump.wiring.store.turns.result(handle.turn_id)

    ended = wait_until(result, "the turn is over")
    assert ended is not None
    assert (ended.ending, ended.steps) == ("cancelled", 1), "the model was asked for nobody"


def test_a_conversation_that_brainq_does_not_know_comes_along_once(
    gateway: GatewayThread, pump: Pump, live: None
) -> None:
    before: list[Body] = [
        user("Boats?", "m1"),
        {"id": "a", "role": "assistant", "parts": [{"type": "text", "text": "Three."}]},
    ]
    context = [{"description": "The user's city", "value": "Graz"}]
    runs = [
        {"id": message["id"], "role": message["role"], "content": message["parts"][0]["text"]} for message in before
    ]
    said = {"id": "m2", "role": "user", "content": "hello"}
    for path, first, then in (
        ("/api/chat", chat(*before, user("hello", "m2")), chat(*before, user("and", "m3"))),
        (
            "/agui",
            run(*runs, said, thread="s2", context=context, state={"page": 1}),
            run(*runs, {**said, "id": "m3"}, thread="s2"),
        ),
    ):
        for body in (first, first, then):
            gateway.http.post(path, json=body).raise_for_status()
    for session in ("s1", "s2"):
        one, two = pump.client.session(session).history()
        asked = [pump.wiring.store.turns.request(turn.turn_id) for turn in (one, two)]
        assert [[m.content for m in request.history] for request in asked if request] == [["Boats?", "Three."], []]
    assert asked[0] is not None
    assert (asked[0].skill_context, asked[0].metadata) == ("The user's city: Graz", {"state": {"page": 1}})


WRONG: list[tuple[str, Body, str]] = [
    ("/api/chat", chat(), "messages"),
    ("/api/chat", chat(user("x"), chat_id="s 1"), "id"),
    ("/api/chat", chat(user(" ")), "user_message"),
    ("/api/chat", chat({**user("x"), "parts": [{"type": "file", "url": "data:,"}]}), "messages[0].parts[0].url"),
    ("/api/chat", chat({**user("x"), "role": "assistant"}), "messages"),
    ("/api/chat", chat(user("x"), trigger="shout"), "trigger"),
    ("/agui", run(), "messages"),
    ("/agui", run({"id": "m", "role": "nobody", "content": "x"}), "messages[0]"),
    (
        "/agui",
        run(
            {"id": "m", "role": "user", "content": [{"type": "image", "source": {"type": "url", "value": "https://u"}}]}
        ),
        "messages.content[0].source",
    ),
    ("/api/chat", chat(user("x"), tools=[{"name": "look"}]), "client_tools"),
    ("/agui", run(resume=[{"interruptId": "x-c1-0", "status": "resolved"}]), "resume.payload"),
]


def test_what_cannot_be_answered_names_its_field(gateway: GatewayThread, pump: Pump) -> None:
    for path, body, field in WRONG:
        assert problem(gateway.http.post(path, json=body), 422, "invalid-input")["field"] == field
    assert pump.client.session("s1").history() == ()


def test_nobody_speaks_in_chats_of_others_or_without_the_verbs(
    gateways: Callable[..., GatewayThread], pump: Pump
) -> None:
    theirs = token(pump, "acme", "acme:")
    mine = token(pump, "evil", "evil:")
    gateway = gateways()
    with pumping(pump):
        body = chat(user("save"), chat_id="acme:1")
        foreign = UiMessage().take(pieces(gateway.http.post("/api/chat", json=body, headers=theirs)))
    call = foreign.tool(f"{foreign.id}-c1-0")
    decided = {**call, "state": "approval-responded", "approval": {**call["approval"], "approved": True}}
    answered = {"id": foreign.id, "role": "assistant", "parts": [decided]}
    resume = [{"interruptId": call["approval"]["id"], "status": "resolved", "payload": {"approved": True}}]
    said = {"id": "m1", "role": "user", "content": "save"}
    for method, path, sent in (
        ("POST", "/api/chat", body),
        ("POST", "/api/chat", chat(answered, chat_id="acme:1")),
        ("POST", "/api/chat", chat(answered, chat_id="evil:1")),
        ("GET", "/api/chat/acme:1/stream", None),
        ("GET", f"/api/chat/evil:1/stream?turn={foreign.id}", None),
        ("POST", "/api/chat/acme:1/stop", None),
        ("POST", f"/api/chat/evil:1/stop?turn={foreign.id}", None),
        ("POST", "/agui", run(said, thread="acme:1")),
        ("POST", "/agui", run(said, thread="evil:1", resume=resume)),
    ):
        problem(gateway.http.request(method, path, json=sent, headers=mine), 404, "not-found")
    assert pump.client.approval(call["approval"]["id"]).state == "pending"
    # Reading, deciding and stopping need their own verbs.
    only = {verb: token(pump, verb, "acme:", Verb.SUBMIT, verb) for verb in (Verb.SUBMIT, Verb.READ)}
    problem(gateway.http.post("/api/chat", json=body, headers=only[Verb.SUBMIT]), 403, "forbidden")
    problem(gateway.http.post("/agui", json=run(said, thread="acme:1"), headers=only[Verb.SUBMIT]), 403, "forbidden")
    for path, sent in (
        ("/api/chat", chat(answered, chat_id="acme:1")),
        ("/agui", run(said, thread="acme:1", resume=resume)),
        ("/api/chat/acme:1/stop", None),
    ):
        problem(gateway.http.post(path, json=sent, headers=only[Verb.READ]), 403, "forbidden")


def test_streams_of_chats_count_and_end_with_a_word(gateways: Callable[..., GatewayThread], pump: Pump) -> None:
    """They have a place like any other, and one that is cut says so as its wire does."""
    gateway = gateways(streams_a_caller=1, heartbeat_s=0.05)
    said = {"id": "m1", "role": "user", "content": "hello"}
    for path, body, last in (
        ("/api/chat", chat(user("hello")), "error"),
        ("/agui", run(said, thread="s2"), "RUN_ERROR"),
    ):
        with gateway.http.stream("POST", path, json=body) as stream:
            lines = stream.iter_lines()
            while next(lines) != ": alive":
                pass
            refused = gateway.http.post(path, json=body)
            assert problem(refused, 429, "too-many-streams")
            assert refused.headers["retry-after"]
            (place,) = gateway.gateway.streams._open  # pyright: ignore[reportPrivateUsage]
            place.stopping.set()
            told = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
            assert told[-1]["type"] == last
        wait_until(lambda: len(gateway.gateway.streams) == 0, "its place is free")
    assert pump.client.session("s1").live()

"""One suite for every client: the direct one and the one over HTTP, blocking and on an event loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from brainq import (
    ApprovalDecided,
    ApprovalNotFound,
    AsyncClient,
    AsyncHttpClient,
    AttachmentNotFound,
    CallNotFound,
    ClientTool,
    File,
    HttpClient,
    InputNotFound,
    InvalidInput,
    ListedTurn,
    ResultRefused,
    ResultTimeout,
    ScheduleNotFound,
    SessionBusy,
    StaleTurn,
    SubmitConflict,
    TokenRefused,
    TurnFailed,
    TurnNotFound,
    TurnParked,
    WithFiles,
    as_completed,
    gather,
)
from brainq.contracts.typed_events import ResultOut, TextDelta
from tests.integration.gateway.conftest import given
from tests.support.gateways import GatewayThread
from tests.support.on_loop import Driven, Loop
from tests.support.pump import Pump
from tests.support.pumping import pumping

ROOT = Path(__file__).parents[3]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture(params=["direct", "async", "http", "async http"])
def client(request: pytest.FixtureRequest, pump: Pump) -> Iterator[Any]:
    kind: str = request.param
    if kind == "direct":
        yield pump.client
        return
    url = request.getfixturevalue("gateways")(requests_s=10_000).url if "http" in kind else ""
    if kind == "http":
        with HttpClient(url, retry_s=5) as made:
            yield made
        return
    loop = Loop()
    try:
        made = loop.call(AsyncHttpClient, url) if url else loop.call(AsyncClient, pump.settings, pump.wiring.brains)
        with Driven(made, loop) as driven:
            yield driven
    finally:
        loop.close()


def test_a_turn_is_submitted_followed_and_read(client: Any, pump: Pump) -> None:
    with pumping(pump):
        handle = client.submit("s1", "look", metadata={"customer": 42}, prompt_tags=["a"], limits={"max_steps": 5})
        assert handle.created
        events = list(handle.events(timeout_s=60))
        texts = list(handle.text(timeout_s=60))
        result = handle.result(timeout_s=60)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1], ResultOut)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).endswith(result.text)
    assert texts[-1] == result.text == "Read: seen"
    assert list(handle.events(after=events[-2].seq)) == [events[-1]]
    assert list(handle.events(after=events[-1].seq, timeout_s=20)) == []
    assert handle.events_so_far() == tuple(events)
    assert [message.role for message in handle.transcript()] == ["user", "assistant", "tool", "assistant"]
    assert handle.transcript(limit=1, after=2)[0].role == "tool"
    (call,) = handle.calls()
    assert (call.tool, call.status, call.result) == ("look", "completed", "seen")
    assert handle.calls(after=call.id) == ()
    assert handle.timeline().bars
    assert handle.explain()
    assert handle.children() == handle.approvals() == handle.holds() == ()
    pump.settle(handle if not isinstance(handle, Driven) else pump.client.handle(handle.turn_id))
    assert handle.decision().strategy == "tool_assisted"
    same = client.handle(handle.turn_id)
    assert (same.session_id, same.result(timeout_s=0)) == ("s1", result)
    assert client.find(handle.turn_id[:-2]).turn_id == handle.turn_id
    since = datetime(2020, 1, 1, tzinfo=UTC)
    (listed,) = client.turns(metadata={"customer": 42}, prompt_tags=["a"], state="ended", since=since)
    assert isinstance(listed, ListedTurn)
    assert [turn.turn_id for turn in client.iterate_turns(session="s1")] == [listed.turn_id] == [handle.turn_id]
    assert [session.session_id for session in client.sessions()] == ["s1"]
    assert [session.session_id for session in client.iterate_sessions()] == ["s1"]
    assert [turn.turn_id for turn in client.session("s1").history()] == [handle.turn_id]


def test_a_request_key_is_one_turn(client: Any, pump: Pump) -> None:
    first = client.submit("s1", "one", request_key="k1")
    again = client.submit("s1", "one", request_key="k1")
    assert (first.created, again.created, again.turn_id) == (True, False, first.turn_id)
    with pytest.raises(SubmitConflict) as conflict:
        client.submit("s1", "two", request_key="k1")
    assert conflict.value.used_by == first.turn_id
    with pytest.raises(SessionBusy) as busy:
        client.submit("s1", "two", on_busy="reject")
    assert busy.value.live_turn_id == first.turn_id
    joined = client.submit("s1", "more", on_busy="steer")
    assert (joined.turn_id, joined.joined.state) == (first.turn_id, "accepted")


def test_a_wrong_submit_names_the_field(client: Any) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "on_busy": {"on_busy": "wait"},
        "limits.max_steps": {"limits": {"max_steps": 0}},
        "options.temperature": {"options": {"temperature": 9}},
        "brain": {"brain": "nobody"},
        "metadata": {"metadata": {"a": float("nan")}},
        "attachments[0].data": {"attachments": [{"data": "###"}]},
        "request_key": {"request_key": "a b"},
    }
    for field, options in wrong.items():
        with pytest.raises(InvalidInput) as refused:
            client.submit("s1", "one", **options)
        assert refused.value.field == field
        assert str(refused.value) == f"{field}: {refused.value.problem}"
    with pytest.raises(TypeError, match=r"submit\(\) got an unexpected keyword argument 'modle'"):
        client.submit("s1", "one", modle="x")


def test_what_is_not_there_is_the_same_error(client: Any, pump: Pump) -> None:
    handle = client.submit("s1", "ring", client_tools=[ClientTool(name="ring", description="Ring.", parameters={})])
    pump.drain()
    nobody = "01k0000000000000000000"
    for error, ask in (
        (TurnNotFound, lambda: client.handle(nobody)),
        (TurnNotFound, lambda: client.handle("a b")),
        (TurnNotFound, lambda: client.find(nobody)),
        (ApprovalNotFound, lambda: client.approval(f"{handle.turn_id}-c9-9")),
        (InputNotFound, lambda: handle.receipt("never")),
        (AttachmentNotFound, lambda: handle.file("0" * 64)),
        (CallNotFound, lambda: handle.give_result("c9-9", 1)),
        (ScheduleNotFound, lambda: client.find_schedule("never")),
        (ScheduleNotFound, lambda: client.pause_schedule("never")),
        (TokenRefused, lambda: client.complete_call("never", 1)),
        (StaleTurn, lambda: client.session("s1").steer("x", expected_turn_id=nobody)),
    ):
        with pytest.raises(error) as found:
            ask()
        assert type(found.value) is error
    assert client.remove_schedule("never") is False
    assert client.lift("tool", "never") is False
    assert client.send_again(9) is False
    with pytest.raises(InvalidInput, match="session_id"):
        client.session("{x}")


def test_people_decide(client: Any, pump: Pump) -> None:
    with pumping(pump):
        handle = client.submit("s1", "save")
        assert handle.wait(timeout_s=60) == handle.wait("people", 60) == "parked"
        with pytest.raises(ResultTimeout):
            handle.wait("client", timeout_s=0)
        (approval,) = client.approvals()
        assert client.approval(approval.id) == approval == handle.approvals()[0]
        assert [found.id for found in client.iterate_approvals()] == [approval.id]
        edited = client.edit(approval.id, {"name": "b"}, by="ann", args_hash=approval.args_hash)
        assert edited.state == "approved"
        with pytest.raises(ApprovalDecided) as decided:
            client.deny(approval.id, "no", by="bob")
        assert decided.value.state == "approved"
        assert handle.wait(timeout_s=60) == "ended"
        assert handle.result(timeout_s=0).text.endswith("saved b")
        with pytest.raises(TurnParked) as parked:
            client.run("s2", "save", timeout_s=60)
        (waiting,) = parked.value.approvals
        assert client.approve(waiting, by="ann").state == "approved"
        assert client.handle(parked.value.turn_id).result(timeout_s=60).ok
        assert client.run("s3", "Hello", timeout_s=60).text == "Read: Hello"


def test_holds_and_input(client: Any, pump: Pump) -> None:
    session = client.session("s1")
    assert (session.live(), session.waiting(), session.is_paused(), session.unread_flags()) == (None, (), False, ())
    flag = session.readiness("wait", expires_in_s=600)
    assert session.unread_flags() == (flag.id,)
    assert session.flag(flag.id).release() is True
    handle = session.submit("look")
    waiting = client.submit("s1", "later")
    assert session.live() == handle.turn_id
    assert [(turn.turn_id, turn.place) for turn in session.waiting()] == [(waiting.turn_id, 1)]
    assert session.drop(waiting.turn_id) is True
    hold = handle.hold("a look", expires_in_s=600, on_expiry="release")
    assert [(held.id, held.reason, held.on_timeout) for held in handle.holds()] == [(hold.id, "a look", "release")]
    assert (hold.release(), handle.release(hold.id)) == (True, False)
    receipt = handle.steer("The red ones.", client_message_id="m1")
    assert receipt == handle.receipt("m1") == handle.steer("The red ones.", client_message_id="m1")
    assert session.steer("And more.").turn_id == handle.turn_id
    assert session.pause("closed") is True
    assert session.pause("again") is False
    assert session.is_paused()
    assert session.why_paused().endswith("closed")
    assert session.resume() is None
    assert session.interrupt("enough") == handle.turn_id
    assert pump.finish(pump.client.handle(handle.turn_id)).ending == "cancelled"
    assert handle.cancel() == client.cancel("s1", handle.turn_id) == "ended"
    assert session.interrupt() is None
    with pytest.raises(TurnFailed):
        handle.result(timeout_s=0).raise_for_ending()


def test_results_from_outside(client: Any, pump: Pump) -> None:
    with pumping(pump):
        handle = client.submit("s1", "named")
        assert handle.wait("outside", 60) == "parked"
        assert client.complete_call("job/of s1", {"ok": True}) == "settled"
        with pytest.raises(TokenRefused):
            client.complete_call("job/of s1", {"ok": True})
        assert handle.result(timeout_s=60).ok
        given.clear()
        handle = client.submit("s2", "order")
        assert handle.wait("outside", 60) == "parked"
        assert client.fail_call(given[0], "out of stock") == "settled"
        assert handle.result(timeout_s=60).ok


def test_tools_of_the_client_and_files(client: Any, pump: Pump) -> None:
    tool = {"name": "ring", "description": "Ring.", "parameters": {"type": "object", "properties": {}}}
    with pumping(pump):
        handle = client.submit("s1", "ring", client_tools=[tool], attachments=[File(PNG, name="plan.png")])
        assert handle.wait("client", 60) == "parked"
        assert handle.give_result("c1-0", WithFiles({"rang": 1}, [File(PNG + b"1", name="out.png")])) == "settled"
        with pytest.raises(ResultRefused) as refused:
            handle.give_result("c1-0", 2)
        assert refused.value.was_given
        assert handle.result(timeout_s=60).ok
    user, _, answer, _ = handle.transcript()
    for message, data, name in ((user, PNG, "plan.png"), (answer, PNG + b"1", "out.png")):
        (attachment,) = message.attachments
        file = handle.file(attachment.sha256)
        assert (file.data, file.media_type, file.name) == (data, "image/png", name)


def test_an_earlier_conversation_and_a_schema(client: Any, pump: Pump) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    with pumping(pump):
        handle = client.submit("s1", "one", history=history, output_schema=schema, priority="high")
        assert handle.result(timeout_s=60).stop_reason == "invalid_output"
        compact = client.session("s1").compact()
        assert compact.created
        assert compact.result(timeout_s=60).turn_id == compact.turn_id


def test_schedules(client: Any, pump: Pump) -> None:
    made = client.schedule("daily", "s1", "Report.", when="0 9 * * *", zone="Europe/Berlin", priority="low")
    assert made == client.find_schedule("daily")
    assert (made.when, made.zone, made.user_message) == ("0 9 * * *", "Europe/Berlin", "Report.")
    assert client.schedule("often", "s1", "Look.", when=timedelta(seconds=90)).when == "every 90 s"
    soon = client.schedule("soon", "s1", "Look.", in_s=3600)
    assert soon.next_at is not None
    assert timedelta(minutes=50) < soon.next_at - datetime.now(UTC) < timedelta(minutes=70)
    later = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
    assert client.schedule("once", "s1", "Look.", at=later).next_at == later
    assert [schedule.name for schedule in client.schedules()] == ["daily", "often", "once", "soon"]
    assert client.pause_schedule("daily").paused
    assert not client.resume_schedule("daily").paused
    assert client.remove_schedule("daily") is True
    with pytest.raises(InvalidInput) as wrong:
        client.schedule("x", "s1", "Look.")
    assert wrong.value.field == "when"
    with pytest.raises(InvalidInput) as wrong:
        client.schedule("x", "s1", "Look.", when="nonsense")
    assert wrong.value.field == "when"


def test_operators(client: Any, pump: Pump) -> None:
    stop = client.stop("tool", "save", mode="forbid", reason="broken", by="ann", ends_in_s=600)
    (standing,) = client.stops()
    assert (stop.name, standing.mode, standing.reason, standing.by) == ("save", "forbid", "broken", "ann")
    assert client.lift("tool", "save") is True
    assert client.budgets.set("tenant acme:", per="day", usd=5) == ("scripted",)
    assert client.budgets.raise_by("tenant acme:", "day", 2) == 7
    (budget,) = client.budgets.list()
    assert (budget.scope, budget.per, budget.left_usd) == ("tenant acme:", "day", 7)
    assert {act.act for act in client.audit()} >= {"stop", "lift", "set budget", "raise budget"}
    assert client.memories.list("nobody") == client.deliveries() == ()
    assert client.memories.forget_all("nobody") == 0
    assert client.memories.forget(7) is False
    with pytest.raises(InvalidInput) as wrong:
        client.memories.list()
    assert wrong.value.field == "scope"
    assert client.spend(by=["day", "brain"]) == ()
    assert client.fleet().pools
    assert client.activity().minutes
    assert client.cells().cells[0].is_up
    assert client.versions() is not None
    assert client.scale("coordinator", least=2).wanted >= 2
    assert "brainq_up" in client.metrics()
    assert client.brains in (("gate",),) or client.brains() == ("gate",)
    client.ping()


def test_a_bulk(client: Any, pump: Pump) -> None:
    for number in range(3):
        client.submit(f"s{number}", "one")
    report = client.bulk("cancel", "state=accepted", by="ann", reason="enough", rate=1000)
    assert (report.state, report.matched, report.done) == ("done", 3, 3)
    assert client.bulk_report(report.id).id == report.id
    assert client.stop_bulk(report.id) is False
    with pytest.raises(InvalidInput):
        client.bulk("cancel", "colour=red")


def test_pages_join(client: Any, pump: Pump) -> None:
    for number in range(5):
        client.submit(f"s{number}", "one")
    first = client.turns(limit=3)
    rest = client.turns(limit=3, after=first[-1].turn_id)
    assert [turn.session_id for turn in (*first, *rest)] == ["s4", "s3", "s2", "s1", "s0"]


def test_several_turns_are_gathered(client: Any, pump: Pump) -> None:
    if isinstance(client, Driven):
        return  # its handles are gathered on the loop, in a test of their own
    with pumping(pump):
        handles = [client.submit(f"s{number}", f"number {number}") for number in range(4)]
        assert [result.text for result in gather(handles, 60)] == [f"Read: number {number}" for number in range(4)]
        assert {handle.turn_id for handle in as_completed(handles, 60)} == {handle.turn_id for handle in handles}


def test_the_page_runs(pump: Pump, gateway: GatewayThread) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/wires/http.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "http.md", "exec"), names)
    with pumping(pump):
        assert names["answer"](gateway.url, "").text == "Read: count apples"


def test_several_turns_are_gathered_on_a_loop(pump: Pump, gateway: GatewayThread) -> None:
    async def talk() -> None:
        async with AsyncHttpClient(gateway.url) as client:
            handles = [await client.submit(f"s{number}", f"number {number}") for number in range(4)]
            assert [result.text for result in await gather(handles, 60)] == [f"Read: number {n}" for n in range(4)]
            ended = [handle.turn_id async for handle in as_completed(handles, 60)]
            assert sorted(ended) == sorted(handle.turn_id for handle in handles)

    with pumping(pump):
        asyncio.run(talk())

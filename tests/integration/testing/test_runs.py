"""`testing.run`: whole turns of a user's brain in one process, decided and moved in time by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

import brainq
from brainq import Brain, ClientTool, Effect, Pending, RunContext, testing
from brainq.contracts.callbacks import TurnEnd
from brainq.errors import AlreadyRuns, InvalidInput, SetupError, TurnParked
from brainq.testing import Run, ScriptedProvider, calls, fails, says
from brainq.testing.moments import At

FIND = [calls(("find", {"order": "A1"})), says("It cost 120.")]
REFUND = [calls(("refund", {"order": "A1"})), says("Done.")]
PAY = [calls(("pay", {"order": "A1"})), says("Done.")]
ASK = [calls(("ask", {})), says("Done.")]


class Shop:
    """A brain, and what its tools did."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.brain = brain = Brain("shop", "openai:gpt-5")

        @brain.tool(effect=Effect.READ_ONLY)
        def find(order: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Find an order."""
            self.did.append(f"find {order}")
            return f"order {order} cost 120"

        @brain.tool(effect=Effect.NETWORK, approval=True)
        def refund(order: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Refund an order."""
            self.did.append(f"refund {order}")
            return "paid back"

        @brain.tool(effect=Effect.NETWORK)
        def pay(order: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Pay for an order."""
            self.did.append(f"pay {order}")
            return "paid"

        @brain.tool(effect=Effect.NETWORK)
        def ask(context: RunContext) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Ask the shop."""
            return Pending(context.outside_token(), timeout_s=7200)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def statuses(t: Run) -> list[str]:
    return [call.status for call in t.calls]


def test_a_turn_its_calls_and_its_events(shop: Shop) -> None:
    with testing.run(shop.brain, FIND) as t:
        result = t.turn("What did A1 cost?")
        assert (result.ending, result.text) == ("completed", "It cost 120.")
        (call,) = t.calls
        assert (call.tool, call.arguments, call.result) == ("find", {"order": "A1"}, "order A1 cost 120")
        assert [event.seq for event in t.events] == list(range(1, len(t.events) + 1))
        assert t.events[-1].kind == "result"
    assert shop.brain.model == "openai:gpt-5"


def test_each_turn_may_have_its_own_script(shop: Shop) -> None:
    with testing.run(shop.brain, FIND) as t:
        assert t.turn("Hi", script=[says("Hello.")]).text == "Hello."
        assert t.turn("Hi", script=lambda request: says((request.messages[-1].content or "").upper())).text == "HI"
        assert t.turn("Hi", script=[fails("stream", attempts=1, then=says("Second."))]).text == "Second."
        assert t.turn("What did A1 cost?").text == "It cost 120."
        assert len(t.client.turns()) == 4


def test_a_script_that_is_too_short_says_so(shop: Shop) -> None:
    with testing.run(shop.brain, FIND[:1]) as t:
        assert "the script has 1 steps, but the request is for step 2" in (t.turn("Hi").error or "")


def test_every_step_after_the_result_is_done(shop: Shop) -> None:
    ended: list[str] = []

    @shop.brain.on_turn_end
    def end(turn: TurnEnd) -> None:  # pyright: ignore[reportUnusedFunction]
        ended.append(turn.turn_id)
        if len(ended) < 3:
            raise OSError("away")

    with testing.run(shop.brain, FIND) as t:
        turn_id = t.turn("Hi").turn_id
        assert ended[:1] == [turn_id]
        t.advance(hours=1)
    assert ended == [turn_id] * 3


def test_runs_are_empty(shop: Shop) -> None:
    for _ in range(2):
        with testing.run(shop.brain, FIND) as t:
            assert t.client.turns() == ()
            t.turn("Hi", request_key="once")


def test_a_person_decides(shop: Shop) -> None:
    with testing.run(shop.brain, REFUND) as t:
        with pytest.raises(TurnParked):
            t.turn("Refund A1")
        t.approve(by="ann")
        assert (t.result().text, statuses(t)) == ("Done.", ["completed"])
        t.start("Refund A1")
        t.deny("too late")
        assert (t.result().text, statuses(t)) == ("Done.", ["denied"])
        with pytest.raises(SetupError, match="no call of the newest turn waits for an approval"):
            t.approve()
    assert shop.did == ["refund A1"]


def test_an_approval_expires(shop: Shop) -> None:
    with testing.run(shop.brain, REFUND) as t:
        handle = t.start("Refund A1")
        t.advance(minutes=1)
        assert handle.wait("people", 60) == "parked"
        t.advance(days=30)
        assert (t.result().text, statuses(t), shop.did) == ("Done.", ["denied"], [])


def test_a_result_from_outside_comes_or_does_not(shop: Shop) -> None:
    with testing.run(shop.brain, ASK) as t:
        t.start("Ask")
        t.complete("yes")
        assert (t.result().text, t.calls[0].result) == ("Done.", "yes")
        t.start("Ask")
        t.complete(error="no answer")
        assert (t.result().text, t.calls[0].status) == ("Done.", "failed")
        t.start("Ask")
        t.advance(hours=3)
        assert (t.result().text, statuses(t)) == ("Done.", ["timed_out"])
        with pytest.raises(SetupError, match="waits for a result from outside"):
            t.complete("late")


def test_a_client_tool_is_completed(shop: Shop) -> None:
    where = ClientTool(name="where", description="Where the user is.", parameters={"type": "object", "properties": {}})
    with testing.run(shop.brain, [calls(("where", {})), says("Near.")]) as t:
        t.start("Where am I?", client_tools=[where])
        t.complete({"city": "Bonn"})
        assert (t.result().text, "Bonn" in str(t.calls[0].result)) == ("Near.", True)


def test_input_comes_during_a_tool(shop: Shop) -> None:
    heard: list[str] = []

    def reply(request: brainq.ModelRequest) -> object:
        heard[:] = [str(message.content) for message in request.messages if message.role == "user"]
        return FIND[request.step - 1]

    with testing.run(shop.brain, reply) as t:  # pyright: ignore[reportArgumentType]
        t.steer("And B2?", during="find")
        t.turn("What did A1 cost?")
    assert "And B2?" in heard[-1]


@pytest.mark.parametrize(("at", "did"), [("start", []), ("end", ["pay A1"])])
def test_a_worker_dies_in_a_write(shop: Shop, at: At, did: list[str]) -> None:
    with testing.run(shop.brain, PAY) as t:
        t.kill(during="pay", at=at)
        assert (t.turn("Pay").text, statuses(t), shop.did) == ("Done.", ["unknown"], did)
        assert (t.turn("Pay again").text, statuses(t)) == ("Done.", ["completed"])


def test_a_read_of_a_dead_worker_runs_again(shop: Shop) -> None:
    with testing.run(shop.brain, FIND) as t:
        t.kill(during="find", at="end")
        assert (t.turn("Find").text, statuses(t)) == ("It cost 120.", ["completed"])
        assert (shop.did, t.calls[0].attempt) == (["find A1", "find A1"], 2)


def test_a_fault_that_never_happened_fails_the_test(shop: Shop) -> None:
    run = testing.run(shop.brain, FIND).__enter__()
    run.kill(during="pay")
    run.turn("Find")
    with pytest.raises(AssertionError, match="pay never came to its start: a kill did not happen"):
        run.__exit__(None)
    with testing.run(shop.brain, FIND) as t, pytest.raises(InvalidInput, match="the brain has no tool 'payy'"):
        t.kill(during="payy")


def test_schedules_run_when_their_time_comes(shop: Shop) -> None:
    with testing.run(shop.brain, [says("Good morning.")]) as t:
        t.client.schedule("hourly", "hourly", "Tick", when=timedelta(hours=1))
        t.client.schedule("once", "once", "Ring", in_s=1800)
        t.advance(minutes=59)
        assert [turn.session_id for turn in t.client.turns()] == ["once"]
        t.advance(hours=3)
        assert [turn.session_id for turn in t.client.turns()] == ["hourly"] * 3 + ["once"]
        assert {turn.state for turn in t.client.turns()} == {"completed"}
        with pytest.raises(InvalidInput, match="forward only"):
            t.advance(seconds=-1)


def test_a_deadline_ends_a_turn_whose_time_is_over(shop: Shop) -> None:
    begun, over = threading.Event(), threading.Event()

    @shop.brain.tool(effect=Effect.READ_ONLY)
    def hang() -> str:  # pyright: ignore[reportUnusedFunction]
        """Hang."""
        begun.set()
        over.wait(60)
        return "late"

    with testing.run(shop.brain, [calls(("hang", {})), says("Done.")]) as t:
        handle = t.client.submit("s", "Hang", limits={"timeout_s": 1.0})
        assert begun.wait(60)
        assert handle.result(60).ending in ("completed", "timed_out")
        over.set()


def test_results_take_the_place_of_tools(shop: Shop) -> None:
    results = {"pay": ["paid twice", brainq.ToolError("no money")]}
    with testing.run(shop.brain, PAY, results=results) as t:
        t.turn("Pay")
        assert (statuses(t), t.calls[0].result) == (["completed"], "paid twice")
        t.turn("Pay")
        assert (statuses(t), t.calls[0].result) == (["failed"], "no money")
        t.turn("Pay")
        assert "pay was called 3 times, and has 2 results" in str(t.calls[0].result)
    assert shop.did == []


def test_tools_of_all_kinds_run_here(shop: Shop) -> None:
    @shop.brain.tool(effect=Effect.READ_ONLY)
    async def later() -> str:  # pyright: ignore[reportUnusedFunction]
        """Answer later."""
        return "later"

    @shop.brain.tool(effect=Effect.READ_ONLY, isolation="process")
    def alone() -> str:  # pyright: ignore[reportUnusedFunction]
        """Run alone."""
        shop.did.append("alone")
        return "alone"

    script = [calls(("later", {}), ("alone", {})), says("Done.")]
    for _ in range(2):
        with testing.run(shop.brain, script) as t:
            t.turn("Go")
            assert [call.result for call in t.calls] == ["later", "alone"]
    assert shop.did == ["alone"] * 2


def test_several_brains_and_settings(shop: Shop) -> None:
    other = Brain("other", ScriptedProvider([says("unused")]))
    with testing.run([shop.brain, other], [says("Hello.")], max_live_turns=3) as t:
        assert t.turn("Hi", brain="other").text == "Hello."
        assert t.client.brains == ("shop", "other")


def test_without_a_script_the_brain_asks_its_own_model() -> None:
    with testing.run(Brain("desk", ScriptedProvider([says("My own.")]))) as t:
        assert t.turn("Hi").text == "My own."


def test_one_run_at_a_time(shop: Shop) -> None:
    with testing.run(shop.brain, FIND), pytest.raises(AlreadyRuns):
        testing.run(shop.brain, FIND).__enter__()
    with testing.run(shop.brain, FIND) as t:
        assert t.turn("Hi").text == "It cost 120."
        with pytest.raises(AlreadyRuns):
            brainq.local(shop.brain, dir=None)


def test_before_a_turn_there_is_none(shop: Shop) -> None:
    with testing.run(shop.brain, FIND) as t, pytest.raises(SetupError, match=r"call turn\(message\)"):
        t.result()


def test_the_fixtures(brainq_run: Callable[..., Run], brainq_context: RunContext, shop: Shop) -> None:
    assert brainq_run(shop.brain, FIND).turn("Hi").text == "It cost 120."
    assert brainq_run(shop.brain, [says("Hello.")]).turn("Hi").text == "Hello."
    assert (brainq_context.session_id, brainq_context.token.is_expired) == ("test", False)

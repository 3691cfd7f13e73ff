"""Outside results: a call that waits for somebody outside holds no worker, and is completed once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.call import new_outside_token
from brainq.contracts.claim import CallClaim, CallRef, NoClaim
from brainq.contracts.file import File
from brainq.contracts.status import Effect, Ending
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from brainq.errors import AttachmentNotFound, InvalidInput, TokenRefused
from tests.support.brains import diary
from tests.support.people import Pumps, Watched, awaits, history, statuses, swept_until, take_call, time_is_up, working
from tests.support.pump import Pump
from tests.support.wait import wait_until


class Outside:
    """A brain whose tools wait for somebody outside, and the tokens they gave away."""

    def __init__(self, *wanted: tuple[str, dict[str, Any]], **options: Any) -> None:
        self.model = Watched(calls(*(wanted or [("order", {"what": "a"})])), says("done"))
        self.brain = Brain("outside", self.model, **options)
        self.tokens: dict[str, str] = {}
        self.given, self.go = threading.Event(), threading.Event()
        self.go.set()

        def wait_for(context: RunContext, what: str) -> Pending:
            self.tokens[what] = context.outside_token()
            context.cite_web(f"https://shop.example/{what}")
            self.given.set()
            self.go.wait(30.0)
            return Pending(self.tokens[what])

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def order(context: RunContext, what: str) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Order."""
            return wait_for(context, what)

        @self.brain.tool(effect=Effect.READ_ONLY)
        def ask(context: RunContext, what: str) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Ask."""
            return wait_for(context, what)

        @self.brain.tool(effect=Effect.READ_ONLY)
        def look(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Look."""
            return f"saw {what}"

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def job(number: str, urgent: bool = False) -> Pending:  # pyright: ignore[reportUnusedFunction]
            """Start a job of a name of its own."""
            return Pending(f"job-{number}")


def parked(pumps: Pumps, outside: Outside) -> tuple[Pump, TurnHandle]:
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert awaits(handle) == "parked outside"
    return pump, handle


def outcome(pump: Pump, handle: TurnHandle) -> tuple[str, str | None, bool]:
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    return row.state, row.outcome_kind, row.late


def test_a_result_comes_from_another_process(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    assert outcome(pump, handle) == ("intent", None, False)
    assert not pump.waiting()
    other = pumps(outside.brain, owner="two")
    assert other.client.complete_call(outside.tokens["a"], {"order": 7}) == "settled"
    result = pump.finish(handle)
    assert (result.ending, result.text) == (Ending.COMPLETED, "done")
    assert outside.model.results(2) == ['{"order":7}']
    assert outcome(pump, handle) == ("done", "success", False)
    assert [c.source for c in result.web_citations] == ["https://shop.example/a"]
    assert result.parked_ms > 0


def test_a_name_of_the_tools_own(pumps: Pumps) -> None:
    outside = Outside(("job", {"number": "7"}))
    pump, handle = parked(pumps, outside)
    with pytest.raises(TokenRefused):
        pump.client.complete_call("job-8", "other")
    assert pump.client.complete_call("job-7", "ready") == "settled"
    pump.finish(handle)
    assert outside.model.results(2) == ["ready"]
    with pytest.raises(TokenRefused, match="used before"):
        pump.client.complete_call("job-7", "ready")


def test_two_calls_cannot_wait_for_one_name(pumps: Pumps) -> None:
    outside = Outside(("job", {"number": "7"}), ("job", {"number": "7", "urgent": True}))
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain()
    pump.client.complete_call("job-7", "ready")
    pump.finish(handle)
    first, second = outside.model.results(2)
    assert first == "ready"
    assert second.startswith("The tool failed: the token is in use by another call")


def test_a_failure_from_outside(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    assert pump.client.fail_call(outside.tokens["a"], "sold out") == "settled"
    pump.finish(handle)
    assert outside.model.results(2) == ["The tool failed: sold out."]
    assert statuses(pump, handle) == {"c1-0": "failed"}
    assert outcome(pump, handle) == ("done", "failure", False)


def test_a_call_is_completed_once(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    token = outside.tokens["a"]
    pump.client.complete_call(token, "one")
    for again in (lambda: pump.client.complete_call(token, "two"), lambda: pump.client.fail_call(token, "no")):
        with pytest.raises(TokenRefused, match="used before"):
            again()
    pump.finish(handle)
    with pytest.raises(TokenRefused, match="used before"):
        pump.client.complete_call(token, "three")
    assert outside.model.results(2) == ["one"]


def test_tokens_that_are_none(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    token = outside.tokens["a"]
    other = RunContext(session_id="s1", turn_id=handle.turn_id, call_id="c1-0", token=None).outside_token()  # pyright: ignore[reportArgumentType]
    assert other != token
    for bad in (other, "nothing", token[:-4], token + "x"):
        with pytest.raises(TokenRefused) as refused:
            pump.client.complete_call(bad, "x")
        assert bad not in str(refused.value)
    for wrong in ("", "x" * 600):
        with pytest.raises(InvalidInput):
            pump.client.complete_call(wrong, "x")
    with pytest.raises(InvalidInput):
        pump.client.complete_call(token, object())
    with pytest.raises(InvalidInput):
        pump.client.complete_call(token, "x" * 300_000)
    assert pump.client.complete_call(token, "x") == "settled"


@pytest.mark.parametrize("tool", ["order", "ask"])
def test_a_result_that_is_there_before_the_tool_has_returned(pumps: Pumps, tool: str) -> None:
    outside = Outside((tool, {"what": "a"}))
    outside.go.clear()
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    with working(pump):
        assert outside.given.wait(60)
        assert pump.client.complete_call(outside.tokens["a"], "early") == "early"
        with pytest.raises(TokenRefused):
            pump.client.complete_call(outside.tokens["a"], "twice")
        outside.go.set()
    result = pump.finish(handle)
    assert outside.model.results(2) == ["early"]
    assert (result.parked_ms, len(result.web_citations)) == (0, 1)
    if tool == "order":
        assert outcome(pump, handle) == ("done", "success", False)


def test_a_token_that_somebody_made_up_is_refused_while_the_tool_runs(pumps: Pumps) -> None:
    """Whoever knows the ids of a call can write a token for it; only the one it gave away is taken."""
    outside = Outside()
    outside.go.clear()
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    with working(pump):
        assert outside.given.wait(60)
        made_up = new_outside_token(CallRef("s1", handle.turn_id, "c1-0"))
        with pytest.raises(TokenRefused):
            pump.client.complete_call(made_up, "forged")
        assert outcome(pump, handle) == ("intent", None, False)
        assert pump.client.complete_call(outside.tokens["a"], "true") == "early"
        outside.go.set()
    pump.finish(handle)
    assert outside.model.results(2) == ["true"]
    assert outcome(pump, handle) == ("done", "success", False)


def test_a_worker_that_dies_after_an_early_result(pumps: Pumps) -> None:
    """Somebody outside did it all: what SQL recorded is the call's end, and it does not run again."""
    outside = Outside()
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    ref, token = die_running(pump, handle)
    assert pump.client.complete_call(token, "early") == "early"
    swept_until(pump, lambda: statuses(pump, handle)["c1-0"] != "running", "it was rescued")
    assert statuses(pump, handle) == {"c1-0": "completed"}
    pump.finish(handle)
    assert outside.model.results(2) == ["early"]
    assert outside.tokens == {}
    assert ref.call_id == "c1-0"


def die_running(pump: Pump, handle: TurnHandle) -> tuple[CallRef, str]:
    """A worker that has given its token away, and dies before it parks."""
    take_call(pump)
    ref = CallRef("s1", handle.turn_id, "c1-0")
    claim = pump.wiring.state.calls.claim(ref, 1, "dead")
    assert isinstance(claim, CallClaim)
    pump.wiring.store.calls.start(
        turn_id=handle.turn_id,
        call_id="c1-0",
        attempt=1,
        session_id="s1",
        tool="order",
        effect=Effect.LOCAL_WRITE,
        args_hash="",
        args_json="{}",
        idempotency_key="",
        owner="dead",
    )
    assert pump.wiring.state.calls.start(claim) == "OK"
    return ref, pump.wiring.state.calls.give_token(claim, new_outside_token(ref))


def test_a_worker_killed_between_the_return_and_the_parking(pumps: Pumps) -> None:
    """A write that began is unknown; the result that comes after all is evidence, and told to the model."""
    outside = Outside()
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    _, token = die_running(pump, handle)
    swept_until(pump, lambda: statuses(pump, handle)["c1-0"] == "unknown", "it was rescued")
    with pytest.raises(TokenRefused):
        pump.client.complete_call(new_outside_token(CallRef("s1", handle.turn_id, "c1-0")), "made up")
    assert pump.client.complete_call(token, "after all") == "late"
    with pytest.raises(TokenRefused):
        pump.client.complete_call(token, "again")
    assert outcome(pump, handle) == ("done", "success", True)
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert any("after all" in text for role, text in outside.model.shown(2) if role == "user")


def test_whoever_was_told_of_the_first_attempt_may_answer_the_next(pumps: Pumps) -> None:
    outside = Outside(("ask", {"what": "a"}))
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    take_call(pump)
    ref = CallRef("s1", handle.turn_id, "c1-0")
    claim = pump.wiring.state.calls.claim(ref, 1, "dead")
    assert isinstance(claim, CallClaim)
    token = pump.wiring.state.calls.give_token(claim, new_outside_token(ref))
    swept_until(pump, lambda: pump.drain() or outside.tokens, "another worker ran it")
    assert outside.tokens == {"a": token}
    assert pump.client.complete_call(token, "answer") == "settled"
    pump.finish(handle)
    assert outside.model.results(2) == ["answer"]


process_brain = Brain("process", Watched(calls(("ask", {})), says("done")))


@process_brain.tool(effect=Effect.READ_ONLY, isolation="process")
def ask(context: RunContext) -> Pending:
    """Ask somebody, from a process of its own."""
    diary.note("token", token=context.outside_token())
    diary.pass_gate("return")
    return Pending(context.outside_token())


def test_a_token_that_a_tool_process_gives_away(pumps: Pumps) -> None:
    pump = pumps(process_brain, app="tests.integration.people.test_people_outside:process_brain")
    handle = pump.submit("s1", "Go.")
    with working(pump):
        wait_until(lambda: diary.notes("token"), "it was given away", timeout_s=60)
        (row,) = diary.notes("token")
        assert pump.client.complete_call(row["token"], "early") == "early"
        diary.open_gate("return")
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert statuses(pump, handle) == {"c1-0": "completed"}


def test_a_read_whose_worker_was_killed_before_it_parked_asks_again(pumps: Pumps) -> None:
    outside = Outside(("ask", {"what": "a"}))
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    take_call(pump)
    ref = CallRef("s1", handle.turn_id, "c1-0")
    assert not isinstance(pump.wiring.state.calls.claim(ref, 1, "dead"), NoClaim)
    swept_until(pump, lambda: pump.drain() or "a" in outside.tokens, "another worker ran it")
    assert awaits(handle) == "parked outside"
    pump.client.complete_call(outside.tokens["a"], "answer")
    pump.finish(handle)
    assert outside.model.results(2) == ["answer"]


def test_nobody_answers_in_time(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    time_is_up(pump, handle)
    assert pump.finish(handle).ending is Ending.COMPLETED
    assert statuses(pump, handle) == {"c1-0": "timed_out"}
    assert outside.model.results(2)[0].startswith("No result came from outside within ")


def test_a_late_result_of_a_write_is_evidence_and_told_to_the_next_turn(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    time_is_up(pump, handle)
    pump.finish(handle)
    token = outside.tokens["a"]
    assert pump.client.complete_call(token, "sent after all") == "late"
    with pytest.raises(TokenRefused):
        pump.client.complete_call(token, "again")
    assert statuses(pump, handle) == {"c1-0": "timed_out_late"}
    assert outcome(pump, handle)[1:] == ("success", True)
    pump.finish(pump.submit("s1", "And now?"))
    (notice,) = [m.content for m in history(pump) if "sent after all" in m.content]
    assert notice.startswith("[Notice from the runtime: a result came from outside after all")
    assert '"what": "a"' in notice


def test_a_late_result_of_a_read_tells_nobody(pumps: Pumps) -> None:
    outside = Outside(("ask", {"what": "a"}))
    pump, handle = parked(pumps, outside)
    time_is_up(pump, handle)
    pump.finish(handle)
    assert pump.client.complete_call(outside.tokens["a"], "late") == "late"
    pump.finish(pump.submit("s1", "And now?"))
    assert not any("late" in m.content for m in history(pump) if m.role == "user")


def test_a_result_after_a_cancel_is_late(pumps: Pumps) -> None:
    outside = Outside()
    pump, handle = parked(pumps, outside)
    handle.cancel()
    assert pump.finish(handle).ending is Ending.CANCELLED
    assert statuses(pump, handle) == {"c1-0": "unknown"}
    assert pump.client.complete_call(outside.tokens["a"], "sent after all") == "late"
    assert outcome(pump, handle)[1:] == ("success", True)
    pump.finish(pump.submit("s1", "And now?"))
    assert any("sent after all" in m.content for m in history(pump))


def test_several_calls_of_one_wave_wait_side_by_side(pumps: Pumps) -> None:
    outside = Outside(("ask", {"what": "a"}), ("look", {"what": "x"}), ("ask", {"what": "b"}))
    pump, handle = parked(pumps, outside)
    assert statuses(pump, handle) == {"c1-0": "parked", "c1-1": "completed", "c1-2": "parked"}
    pump.client.complete_call(outside.tokens["b"], "B")
    pump.drain()
    assert awaits(handle) == "parked outside"
    pump.client.complete_call(outside.tokens["a"], "A")
    pump.finish(handle)
    assert outside.model.results(2) == ["A", "saw x", "B"]


def test_the_time_of_a_turn_runs_while_anything_in_it_runs(pumps: Pumps) -> None:
    """It is parked only once everything open in it waits for somebody."""
    outside = Outside(("ask", {"what": "a"}), ("look", {"what": "x"}))
    pump = pumps(outside.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    one, two = pump.waiting()
    for bell in (one, two):
        assert pump.take() == bell
    assert pump.answer(one) == "parked"
    assert awaits(handle) == "active calls"
    pump.answer(two)
    assert awaits(handle) == "parked outside"


def test_a_parked_write_frees_its_lane_for_its_sessions_next_writes(pumps: Pumps) -> None:
    """Its function has ended; what follows in its own turn waits all the same."""
    outside = Outside(("job", {"number": "1"}))
    pump, handle = parked(pumps, outside)
    lanes: Any = pump.wiring.state.redis
    wait_until(lambda: not lanes.zcard(pump.wiring.state.keys.lane_leases), "nobody holds a lane")
    pump.client.complete_call("job-1", "ok")
    pump.finish(handle)


def test_a_result_wakes_what_waits_behind_the_call(pumps: Pumps) -> None:
    outside = Outside(("order", {"what": "a"}), ("look", {"what": "x"}))
    pump, handle = parked(pumps, outside)
    assert statuses(pump, handle)["c1-1"] == "planned"
    pump.client.complete_call(outside.tokens["a"], "A")
    pump.finish(handle)
    assert outside.model.results(2) == ["A", "saw x"]


def test_files_of_a_result_that_nobody_waits_for_are_not_kept(pumps: Pumps) -> None:
    outside = Outside(("order", {"what": "a"}), ("order", {"what": "b"}))
    pump, handle = parked(pumps, outside)
    first, second, late = File(b"first"), File(b"second"), File(b"late")
    assert pump.client.complete_call(outside.tokens["a"], first) == "settled"
    with pytest.raises(TokenRefused):
        pump.client.complete_call(outside.tokens["a"], second)
    pump.drain()
    assert awaits(handle) == "parked outside"
    handle.cancel()
    pump.finish(handle)
    assert pump.client.complete_call(outside.tokens["b"], late) == "late"
    assert handle.file(first.attachment.sha256) == first
    for refused in (second, late):
        with pytest.raises(AttachmentNotFound, match="no file"):
            handle.file(refused.attachment.sha256)
    (_, row) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert "nobody waits for this result" in (row.outcome_json or "")


def test_redacted_sql_keeps_no_result_from_outside(pumps: Pumps) -> None:
    outside = Outside(redact_logs=True)
    pump, handle = parked(pumps, outside)
    pump.client.complete_call(outside.tokens["a"], "secret result")
    pump.finish(handle)
    (row,) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (row.args_json, row.outcome_kind) == (None, "success")
    assert "secret" not in (row.outcome_json or "")

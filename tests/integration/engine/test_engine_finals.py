"""P9: the result goes out whatever fails, each step is retried by itself, SQL effects happen once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.claim import FinalStepClaim, NoClaim
from brainq.contracts.event import EventKind
from brainq.engine.finalize import result as result_module
from brainq.engine.finalize.step_order import StepOrder
from brainq.engine.finalize.steps import SendResult, StepContext
from brainq.engine.jobs import SOON, Backoff
from tests.support.brains.diary import notes, open_gate, order
from tests.support.brains.obedient import script
from tests.support.pump import Pump
from tests.support.stand_in import stand_in
from tests.support.wait import wait_until

CHAIN = ["citations", "usage", "log", "result", "decision", "extra", "end"]


@pytest.fixture
def decision_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log does not write the decision's row, as after a failure of an earlier step: that step does all of it."""

    def nothing(_order: StepOrder, _context: StepContext) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(StepOrder, "beside", nothing)


class FailingRecords:
    """Records whose `failing` method raises the first `times`, before or after its effect."""

    def __init__(self, records: Any, failing: str, times: int, *, after: bool = False) -> None:
        self._records = records
        self._failing = failing
        self._after = after
        self.left = times

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._records, name)
        if name != self._failing:
            return found

        def call(*args: Any) -> Any:
            if self.left > 0:
                self.left -= 1
                if self._after:
                    found(*args)
                raise OSError("the disk is full")
            return found(*args)

        return call


def wrap(pump: Pump, failing: str, times: int, *, after: bool = False) -> FailingRecords:
    finalizer: Any = pump.wiring.finalizer
    records = FailingRecords(finalizer.late.records, failing, times, after=after)
    finalizer.late.records = records
    return records


def result_events(handle: TurnHandle) -> int:
    kinds = [event.kind for event in handle.events(timeout_s=60)]
    assert kinds[-1] is EventKind.RESULT
    return kinds.count(EventKind.RESULT)


def once_in_sql(pump: Pump, handle: TurnHandle) -> None:
    store = pump.wiring.store
    states = {step.step: step.state for step in store.steps.of_turn(handle.turn_id)}
    assert states.keys() >= {"log", "decision"}
    assert set(states.values()) == {"done"}
    with store.engine.connect() as connection:
        for table, expected in (("messages", 2), ("decisions", 1)):
            query = f"SELECT count(*) FROM {table} WHERE turn_id = '{handle.turn_id}'"
            assert connection.exec_driver_sql(query).scalar() == expected, table


def test_the_chain_runs_in_its_order(pump: Pump) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"})]))
    pump.finish(handle)
    steps = [bell.args[2] for bell, _ in pump.bells if bell.queue == "brainq.finalize"]
    assert steps == CHAIN
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


@pytest.mark.parametrize("callback", ["usage", "extra", "turn_end"])
def test_a_callback_that_fails_is_tried_again_with_its_key(pump: Pump, callback: str) -> None:
    order(f"{callback}.raise", "2")
    handle = pump.submit("s1", script())
    result = pump.finish(handle)
    assert result.text == "done"
    rows = notes(callback, turn=handle.turn_id)
    assert len(rows) == 3
    assert len({row["key"] for row in rows}) == 1
    assert len(notes(f"{callback}.end")) == 1
    assert result_events(handle) == 1
    assert bool(result.warnings) == (callback == "usage"), "two retries take longer than 0.3 s"


@pytest.mark.usefixtures("decision_alone")
@pytest.mark.parametrize("failing", ["record_answer", "record_decision"])
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
def test_sql_that_fails_is_tried_again_and_written_once(pump: Pump, failing: str, after: bool) -> None:
    records = wrap(pump, failing, 2, after=after)
    handle = pump.submit("s1", script())
    result = pump.finish(handle)
    assert records.left == 0
    assert result.text == "done"
    once_in_sql(pump, handle)
    assert result_events(handle) == 1
    assert Counter(row["what"] for row in notes())["turn_end"] == 1


def test_a_step_that_fails_under_the_claim_of_another_is_claimed_and_has_failed_once(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    sends = SendResult.run

    def run(step: SendResult, context: StepContext) -> None:
        runs.append(context.claim.tries)
        if len(runs) == 1:
            raise OSError("not yet")
        sends(step, context)

    monkeypatch.setattr(SendResult, "run", run)
    handle = pump.submit("s1", script())
    pump.finish(handle)
    said = [(bell.args[2], word) for bell, word in pump.bells if bell.queue == "brainq.finalize"]
    assert said[:6] == [
        ("citations", "next"),
        ("usage", "next"),
        ("log", "next"),
        ("decision", "next"),
        ("result", "failed"),
        ("result", "next"),
    ]
    assert runs == [1, 2]
    rows = {step.step: (step.state, step.tries) for step in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert (rows["log"], rows["result"]) == (("done", 1), ("done", 2))
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


def test_the_result_goes_out_while_the_log_keeps_failing(pump: Pump) -> None:
    records = wrap(pump, "record_answer", 1000)
    handle = pump.submit("s1", script())
    pump.drain()
    assert records.left < 1000, "the step did not fail"

    def is_out() -> bool:
        pump.sweep()
        pump.drain()
        return out(pump, handle)

    wait_until(is_out, "the result went out")
    result = handle.result(timeout_s=0)
    assert (result.text, len(result.warnings)) == ("done", 1)
    assert "log: OSError" in result.warnings[0]
    row: Any = pump.wiring.state.redis.hmget(
        pump.wiring.state.keys.turn("s1", handle.turn_id), "closing_at", "result_at"
    )
    assert int(row[1]) - int(row[0]) >= 300
    assert not notes("turn_end"), "it needs the result of a chain that SQL knows"
    records.left = 0
    pump.settle(handle)
    assert handle.result(timeout_s=0) == result
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


def test_a_callback_that_keeps_failing_holds_up_neither_the_result_nor_what_follows(pump: Pump) -> None:
    order("usage.raise", "1000")
    handle = pump.submit("s1", script())
    pump.drain()  # no sweep: nothing is tried twice
    assert len(notes("usage")) == 1
    result = handle.result(timeout_s=0)
    assert result.warnings == ("sent before the finalizer was done: usage: RuntimeError",)
    assert len(notes("turn_end.end")) == 1
    states = {step.step: step.state for step in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert states == {"usage": "failed", "log": "done", "decision": "done"}
    order("usage.raise", "")
    pump.settle(handle)
    assert [len(notes(name)) for name in ("usage.end", "turn_end", "extra")] == [1, 1, 1]
    assert handle.result(timeout_s=0) == result
    assert pump.wiring.store.turns.result(handle.turn_id) == result
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


def out(pump: Pump, handle: TurnHandle) -> bool:
    return pump.wiring.state.events.result(handle.session_id, handle.turn_id) is not None


def test_the_sweeper_looks_as_soon_as_the_failing_time_is_up(pumps: Callable[..., Pump]) -> None:
    """Also when the next retry is a long way off."""
    pump = pumps(rering_s=600.0, result_after_failing_s=0.3)
    records = wrap(pump, "record_answer", 1000)
    handle = pump.submit("s1", script())
    pump.drain()
    assert records.left < 1000
    claim = FinalStepClaim("s1", handle.turn_id, "log", "pump", 3, 1)
    # The finalizer has given it back.
    assert pump.wiring.state.finals.retry(claim, 25.0, "log: late") == "LOST"
    wait_until(lambda: pump.wiring.sweeper.sweep() or out(pump, handle), "the result went out", timeout_s=60)


def test_the_result_goes_out_when_nobody_serves_the_finalizer(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.app.wiring.state.UNSERVED_S", 0.3)
    handle = pump.submit("s1", script())
    pump.drain("brainq.turns")
    wait_until(lambda: pump.sweep() or out(pump, handle), "the result went out")
    assert "no finalizer worker" in handle.result(timeout_s=0).warnings[0]
    pump.settle(handle)
    once_in_sql(pump, handle)


@pytest.mark.parametrize("step", CHAIN)
@pytest.mark.parametrize("effect", [False, True], ids=["before its effect", "after its effect"])
def test_a_finalizer_that_dies_at_a_step_is_followed_by_another(
    pumps: Callable[..., Pump], step: str, effect: bool
) -> None:
    pump, dead = pumps(lease_s=60.0), pumps(owner="dead", lease_s=60.0)
    pump.ring_each_step()
    handle = pump.submit("s1", script([("read", {"name": "a"})]), show_citations=True)
    while (bell := pump.take()) and bell.args[2:] != (step,):
        pump.answer(bell)
    assert bell is not None, f"{step} was never rung for"
    claim = dead.wiring.state.finals.claim("s1", handle.turn_id, step, "dead")
    assert isinstance(claim, FinalStepClaim)
    if effect:
        machine: Any = dead.wiring.finalizer
        found = machine._brains.default.order.get(step)
        turn = dead.wiring.state.finals.ended("s1", handle.turn_id)
        assert turn is not None
        found.run(
            StepContext(
                claim, lambda: turn, dead.wiring.state.finals, machine.late.records, machine._brains.default.brain
            )
        )
    assert pump.answer(bell) == "dropped: held"
    dead.wiring.state.redis.hset(dead.wiring.state.keys.turn("s1", handle.turn_id), "fin_lease", 0)  # it lapses
    pump.settle(handle)
    result = handle.result(timeout_s=0)
    assert result.text == "done\n\nSources:\n- a.txt"
    once_in_sql(pump, handle)
    assert result_events(handle) == 1
    for name in ("usage", "extra", "turn_end"):
        keys = [row["key"] for row in notes(name)]
        chain_name = "end" if name == "turn_end" else name
        assert len(keys) == 1 + (effect and step == chain_name)
        assert set(keys) == {f"{handle.turn_id}:{chain_name}"}


class DiesBefore:
    """Dies when a visit has taken `step` and has not begun it; fits `runtime.observe.work_events.WorkEvents`."""

    def __init__(self, step: str) -> None:
        self._step = step
        self.went_on_with: list[str] = []

    def began(self, claim: FinalStepClaim) -> None:
        self.went_on_with.append(claim.step)
        if claim.step == self._step:
            raise SystemExit

    def ended(self, claim: FinalStepClaim, did: str, took_s: float) -> None:
        return None


@pytest.mark.parametrize("step", CHAIN[1:])
def test_a_finalizer_that_dies_between_two_steps_of_a_visit_is_followed_by_another(
    pumps: Callable[..., Pump], step: str
) -> None:
    pump, dead = pumps(lease_s=60.0), pumps(owner="dead", lease_s=60.0)
    handle = pump.submit("s1", script([("read", {"name": "a"})]), show_citations=True)
    while (bell := pump.take()) and bell.args[2:] != (CHAIN[0],):
        pump.answer(bell)
    assert bell is not None
    fault = DiesBefore(step)
    cast(Any, dead.wiring.finalizer).visit_s = 600.0  # however slow the machine is
    with pytest.raises(SystemExit):
        dead.wiring.finalizer.run("s1", handle.turn_id, CHAIN[0], stand_in(fault))
    # The result and the decision are done under the log's claim: until they are, the log is the step that is at work.
    at_work = "log" if step in ("result", "decision") else step
    assert fault.went_on_with == CHAIN[1 : CHAIN.index(step) + 1]
    beats: Any = dead.wiring.beats
    beats.stop()
    beats._thread.stop(60.0)  # a beat that is on its way would renew the lease that lapses below
    assert pump.drain() == 0, "nobody was rung: the step was taken without it"
    assert pump.wiring.state.finals.claim("s1", handle.turn_id, at_work, "pump") == NoClaim("held")
    dead.wiring.state.redis.hset(dead.wiring.state.keys.turn("s1", handle.turn_id), "fin_lease", 0)  # it lapses
    pump.settle(handle)
    assert handle.result(timeout_s=0).text == "done\n\nSources:\n- a.txt"
    assert next(bell.args[2] for bell, _ in pump.bells if bell.queue == "brainq.finalize") == at_work
    once_in_sql(pump, handle)
    assert result_events(handle) == 1
    for name in ("usage", "extra", "turn_end"):
        assert len(notes(name)) == 1


def test_a_step_that_fails_lets_others_go_ahead_and_is_tried_again_alone(pump: Pump) -> None:
    order("extra.raise", "2")
    handle = pump.submit("s1", script())
    pump.finish(handle)
    said = [(bell.args[2], word) for bell, word in pump.bells if bell.queue == "brainq.finalize"]
    assert said[:5] == [(step, "next") for step in CHAIN[:5]]
    assert said[5:] == [("extra", "failed"), ("end", "finished"), ("extra", "failed"), ("extra", "done")]
    rows = {step.step: step.tries for step in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert (rows["log"], rows["extra"]) == (1, 3)


@pytest.mark.usefixtures("decision_alone")
def test_steps_behind_one_that_failed_are_rung_for_after_a_long_visit(pump: Pump) -> None:
    """And a second one that fails is tried again, too; both keep their own count of tries."""
    pump.ring_each_step()
    order("extra.raise", "1")
    records = wrap(pump, "record_decision", 2)
    handle = pump.submit("s1", script())
    pump.settle(handle)
    assert records.left == 0
    said = [(bell.args[2], word) for bell, word in pump.bells if bell.queue == "brainq.finalize"]
    decision = [word for step, word in said if step == "decision"]
    assert decision == ["failed", "failed", "done"]
    rows = {step.step: (step.state, step.tries) for step in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert (rows["decision"], rows["extra"]) == (("done", 3), ("done", 2))
    assert len(notes("turn_end.end")) == 1


@pytest.mark.usefixtures("decision_alone")
@pytest.mark.parametrize("dies_at", ["extra", "decision"])
def test_a_step_that_kills_its_workers_holds_up_only_itself(pump: Pump, dies_at: str) -> None:
    finalizer = quickly(pump, max_tries=4)
    steps = finalizer.late.steps
    died: list[str] = []

    def dies(step: Any, context: StepContext, **how: bool) -> None:
        if context.claim.step == dies_at:
            died.append("turn_end" if notes("turn_end.end") else "before")
            raise SystemExit
        if context.claim.step == "decision" and context.claim.tries < 3:
            raise OSError("not yet")
        steps.run(step, context, **how)

    finalizer.late.steps = SimpleNamespace(run=dies)
    handle = pump.submit("s1", script())
    while True:
        try:
            pump.settle(handle)
            break
        except SystemExit:
            continue
    assert died == ["before", "turn_end", "turn_end", "turn_end"]
    states = {step.step: step.state for step in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert states[dies_at] == "dead"
    assert {state for step, state in states.items() if step != dies_at} == {"done"}
    assert len(notes("turn_end.end")) == 1


def test_a_visit_that_has_lasted_long_rings_for_the_next_step(pump: Pump) -> None:
    pump.ring_each_step()
    handle = pump.submit("s1", script())
    while bell := pump.take():
        pump.answer(bell)
        steps = [bell.args[2] for bell in pump.waiting() if bell.queue == "brainq.finalize"]
        assert len(steps) <= 1
        if bell.args[2:] == ("log",):
            assert steps == ["result"]
    assert out(pump, handle)


def test_a_step_this_release_does_not_know_is_passed_over(pump: Pump) -> None:
    """A rolling deploy that took a callback out: SQL still learns how the turn ended."""
    handle = pump.submit("s1", script())
    pump.drain("brainq.turns")
    pump.take()
    pump.wiring.state.redis.hset(pump.wiring.state.keys.turn("s1", handle.turn_id), "fin_step", "gone-in-this-release")
    pump.settle(handle)
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


def test_retries_back_off_to_a_minute() -> None:
    assert [SOON.after_s(tries, 0.999) for tries in (1, 2, 3, 9)] == pytest.approx([0.5, 1, 2, 60], rel=0.01)
    assert SOON.after_s(1, 0.0) == 0.25


def quickly(pump: Pump, **changed: Any) -> Any:
    """The pump's finalizer, trying again at once."""
    finalizer: Any = pump.wiring.finalizer
    finalizer.late.jobs.backoff = Backoff(0.005, 1.0, 1.0, (1.0, 1.0))
    for name, value in changed.items():
        setattr(finalizer.late.jobs, name, value)
    return finalizer


class Away:
    """Records of a database that is away: everything raises until it is back."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.away = True
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            if self.away:
                self.asked += 1
                raise OSError("SQL is away")
            return getattr(self._records, name)(*args)

        return call


def test_a_step_is_not_given_up_where_nobody_could_see_it(pump: Pump) -> None:
    """SQL is away for longer than a step's tries take: once it is back, everything is written."""
    finalizer = quickly(pump, max_tries=3)
    handle = pump.submit("s1", script())
    pump.drain("brainq.turns")
    away = finalizer.late.records = Away(finalizer.late.records)

    def tried_enough() -> bool:
        pump.drain()
        pump.sweep()
        return away.asked > 10

    wait_until(tried_enough, "the step was tried more often than it may be")
    away.away = False
    pump.settle(handle)
    once_in_sql(pump, handle)


@pytest.mark.usefixtures("decision_alone")
def test_a_step_whose_worker_dies_each_time_is_given_up(pump: Pump) -> None:
    """Nothing is raised, as after SIGKILL: the tries alone say so, and what follows runs."""
    finalizer = quickly(pump, max_tries=3)
    steps = finalizer.late.steps
    died: list[int] = []

    def dies(step: Any, context: StepContext, **how: bool) -> None:
        if context.claim.step == "decision":
            died.append(context.claim.tries)
            raise SystemExit
        steps.run(step, context, **how)

    finalizer.late.steps = SimpleNamespace(run=dies)
    handle = pump.submit("s1", script())
    while True:
        try:
            pump.settle(handle)
            break
        except SystemExit:
            continue
    assert died == [1, 2, 3]
    states = {step.step: step for step in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert states["decision"].state == "dead"
    assert "its worker died" in str(states["decision"].error)
    assert len(notes("turn_end.end", turn=handle.turn_id)) == 1


def test_a_callback_that_hangs_stops_no_other_turn(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.engine.finalize.steps.LIMIT_S", 0.05)
    quickly(pump, max_tries=2)
    order("usage.gate", "hung")
    hung = pump.submit("s1", script())
    pump.settle(hung)
    order("usage.gate", "")
    open_gate("hung")
    states = {step.step: step for step in pump.wiring.store.steps.of_turn(hung.turn_id)}
    assert states["usage"].state == "dead"
    assert "did not return within 0.05 s" in str(states["usage"].error)
    assert states["log"].state == "done"
    assert hung.result(timeout_s=1).text == "done"


def left_behind(pump: Pump) -> TurnHandle:
    """A turn whose `on_usage` waits at a gate. Its worker has answered the doorbell, and waits for nothing."""
    order("usage.gate", "usage")
    handle = pump.submit("s1", script([("read", {"name": "a"})]))
    pump.drain()
    assert [word for bell, word in pump.bells if bell.args[2] == "usage"] == ["behind"]
    return handle


def end_behind(pump: Pump, handle: TurnHandle) -> None:
    open_gate("usage")
    pump.settle(handle)
    assert len(notes("usage.end", turn=handle.turn_id)) == 1
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


def test_the_result_does_not_wait_for_a_callback_longer_than_a_second(pumps: Callable[..., Pump]) -> None:
    """It is recorded and goes out without a warning, its worker is free for others, and the callback ends behind it."""
    pump = pumps(lease_s=30.0)
    handle = left_behind(pump)
    result = handle.result(timeout_s=30)
    assert (result.text, result.warnings) == ("done", ())
    assert pump.wiring.store.turns.result(handle.turn_id) == result
    assert notes("usage.end") == []
    held_until = job_due_at(pump)
    wait_until(lambda: job_due_at(pump) != held_until, "its lease is renewed")
    order("usage.gate", "")
    assert pump.finish(pump.submit("s2", script())).warnings == ()
    assert len(notes("usage", turn=handle.turn_id)) == 1
    end_behind(pump, handle)
    assert [len(notes(name, turn=handle.turn_id)) for name in ("usage", "extra", "turn_end")] == [1, 1, 1]


def test_a_callback_that_fails_behind_its_result_is_called_again(pumps: Callable[..., Pump]) -> None:
    pump = pumps(lease_s=30.0)
    order("usage.raise", "1")
    handle = left_behind(pump)
    assert handle.result(timeout_s=30).warnings == ()
    end_behind(pump, handle)
    assert len(notes("usage", turn=handle.turn_id)) == 2


def test_where_sql_is_away_the_result_goes_out_with_a_warning_while_a_callback_runs(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch
) -> None:
    pump = pumps(lease_s=30.0, result_after_failing_s=0.3)
    with monkeypatch.context() as away:
        away.setattr(pump.wiring.store.step_jobs, "open", raise_disk_full)
        away.setattr(pump.wiring.store.steps, "note_failure", raise_disk_full)
        order("usage.gate", "usage")
        handle = pump.submit("s1", script())
        pump.drain()
        wait_until(lambda: pump.sweep() or out(pump, handle), "the result went out")
    assert handle.result(timeout_s=0).warnings == ("sent before the finalizer was done: usage: OSError",)
    order("usage.gate", "")
    open_gate("usage")
    pump.settle(handle)
    assert len(notes("usage.end", turn=handle.turn_id)) == 2, "at least once, with one key"
    once_in_sql(pump, handle)
    assert result_events(handle) == 1


def raise_disk_full(*_: Any, **__: Any) -> None:
    raise OSError("the disk is full")


def job_due_at(pump: Pump) -> Any:
    with pump.wiring.store.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT due_at FROM step_jobs").scalar()


def test_without_a_place_behind_the_worker_itself_waits_for_the_callback(pumps: Callable[..., Pump]) -> None:
    pump = pumps(lease_s=30.0)
    finalizer: Any = pump.wiring.finalizer
    finalizer.background = result_module.BackgroundCallbacks(max_threads=0)
    order("usage.gate", "usage")
    handle = pump.submit("s1", script())
    opener = threading.Thread(target=lambda: (handle.result(timeout_s=60), open_gate("usage")))
    opener.start()
    pump.drain()
    opener.join()
    assert [word for bell, word in pump.bells if bell.args[2] == "usage"] == ["behind"]
    assert len(notes("usage.end")) == 1

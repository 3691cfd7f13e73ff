"""One doorbell of brainq.judges: claimed, judged, settled; whatever the judge does, the row says how it went."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.build import FORMATS_READ
from brainq.contracts.evaluation import JudgeCase, Judgement
from brainq.contracts.memory import RecordedTurn
from brainq.contracts.model import ModelReply, ModelRequest, Spend
from brainq.contracts.status import WorkFailure
from brainq.contracts.stop import Stop
from brainq.engine.jobs import MAX_TRIES, JobKey, JobRunner
from brainq.engine.memory.judge_runner import UNSERVED_AGAIN_S, JudgeRunner, JudgeRuntime
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.models.scripted import fails, says
from brainq.runtime.leases import LeaseRenewer
from tests.support.only import only
from tests.support.stand_in import stand_in
from tests.unit.engine.finalize.support import OwnJudge, auxiliary, recorded, talk


@dataclass
class Job:
    """The one row of a judgement, in memory."""

    state: str = "pending"
    tries: int = 0
    held: bool = False
    judgement: Judgement | None = None
    error: str = ""
    waits: list[float | None] = field(default_factory=list[float | None])
    beaten: threading.Event = field(default_factory=threading.Event)

    def take(self, key: JobKey, lease_s: float) -> Any:
        if self.state != "pending" or self.held:
            return None
        self.held = True
        self.tries += 1
        return {"tries": self.tries}

    def hold(self, key: JobKey, tries: int, lease_s: float) -> bool:
        self.beaten.set()
        return tries == self.tries

    def settle(self, turn_id: str, judge: str, judgement: Judgement, spends: Sequence[Spend] = ()) -> bool:
        self.state, self.judgement = "done", judgement
        return True

    def fail(self, key: JobKey, tries: int, error: str, again_after_s: float | None) -> None:
        assert tries == self.tries
        self.state, self.error, self.held = "dead" if again_after_s is None else "pending", error, False
        self.waits.append(again_after_s)

    def postpone(self, key: JobKey, tries: int, why: str, again_after_s: float) -> None:
        assert tries == self.tries
        self.tries, self.error, self.held = tries - 1, why, False
        self.waits.append(again_after_s)


@dataclass
class Kept:
    """Fits `Conversations`."""

    turn: RecordedTurn | None

    def recorded(self, session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        return self.turn and self.turn.model_copy(update={"step_key": step_key})


@dataclass
class Bells:
    """Fits `JudgeBells`: where the other build's workers are. `left`: whether the row was free when it was rung for."""

    word: str = "PASSED"
    released: str = ""
    left: list[bool] = field(default_factory=list[bool])
    job: Job = field(default_factory=Job)

    def may_finish(self, turn: RecordedTurn) -> bool:
        return turn.format in FORMATS_READ and turn.pin in ("", self.released)

    def pass_judge(self, session_id: str, turn_id: str, judge: str) -> Any:
        self.left.append(not self.job.held)
        return self.word


TURN = recorded("Where?", "In the shed.", messages=talk(("user", "Where?"), ("tool", "in the shed")))


def runner(
    job: Job,
    judge: Any = None,
    turn: RecordedTurn | None = TURN,
    *,
    auxiliary: Any = None,
    redact: bool = False,
    **options: Any,
) -> JudgeRunner:
    own = () if judge is None else (judge,)
    given: dict[str, Any] = {
        "brains": only(JudgeRuntime(own, auxiliary, redact)),
        "brain_of": lambda turn_id: None,  # pyright: ignore[reportUnknownLambdaType]
        "rows": job,
        "recorded": Kept(turn).recorded,
        "bells": Bells(),
        **options,
    }
    beats, max_tries = given.pop("beats", LeaseRenewer(60.0)), given.pop("max_tries", MAX_TRIES)
    jobs = JobRunner(
        rows=stand_in(job), lease_s=10.0, failure=WorkFailure.JUDGE_FAILED, beats=beats, max_tries=max_tries
    )
    return JudgeRunner(jobs=jobs, **given)


def test_a_judgement_is_settled_once() -> None:
    job, judge = Job(), OwnJudge()
    machine = runner(job, judge)
    assert machine.run("s1", "turn-1", "tone") == "judged"
    assert job.judgement == Judgement(score=0.5, reason="so so")
    assert machine.run("s1", "turn-1", "tone") == "dropped"
    (case,) = judge.cases
    assert (case.answer, case.transcript) == ("In the shed.", "[user] Where?\n[tool] in the shed")


def test_a_row_that_another_worker_holds_is_dropped() -> None:
    job, judge = Job(held=True), OwnJudge()
    assert runner(job, judge).run("s1", "turn-1", "tone") == "dropped"
    assert not judge.cases


def test_the_lease_is_renewed_while_it_judges() -> None:
    job, beats = Job(), LeaseRenewer(0.01)

    class Slow:
        name = "own"

        def judge(self, case: JudgeCase) -> Judgement:
            assert job.beaten.wait(60)
            return Judgement(score=1, reason="")

    try:
        assert runner(job, Slow(), beats=beats).run("s1", "turn-1", "own") == "judged"
    finally:
        beats.stop()


@pytest.mark.parametrize(
    ("judge", "error"),
    [
        (OwnJudge(raises=OSError("no disk")), "OSError: no disk"),
        (OwnJudge(raises=SystemExit(3)), "UserCodeExit: judge 'tone' raised SystemExit: 3"),
        (OwnJudge(returns=None), "TypeError: judge 'tone' returned a NoneType; it must return a Judgement"),
        (OwnJudge(returns=0.5), "TypeError: judge 'tone' returned a float; it must return a Judgement"),
        (OwnJudge(returns=Judgement.model_construct(score=7, reason="")), "ValidationError"),
    ],
    ids=["raises", "exits", "returns nothing", "returns a number", "returns a score of 7"],
)
def test_a_judge_that_fails_is_tried_again_and_then_dead(judge: OwnJudge, error: str) -> None:
    job = Job()
    machine = runner(job, judge, max_tries=3)
    assert [machine.run("s1", "turn-1", "tone") for _ in range(4)] == ["failed", "failed", "dead", "dropped"]
    assert job.error.startswith(error)
    first, second, last = job.waits
    assert 0.25 <= (first or 0) <= 0.5 <= (second or 0) <= 1.0
    assert last is None


def test_by_default_a_judge_has_eight_tries() -> None:
    job = Job()
    machine = runner(job, OwnJudge(raises=ValueError("no")))
    assert [machine.run("s1", "turn-1", "tone") for _ in range(8)] == ["failed"] * 7 + ["dead"]


def test_a_judge_that_hangs_is_abandoned() -> None:
    release, job = threading.Event(), Job()
    try:
        assert runner(job, OwnJudge(hangs_until=release), limit_s=0.05).run("s1", "turn-1", "tone") == "failed"
        assert job.error == "TimeoutError: judge 'tone' did not return within 0.05 s and was abandoned"
    finally:
        release.set()


def test_a_model_that_fails_is_no_failure_of_the_judgement() -> None:
    job = Job()
    assert runner(job, auxiliary=auxiliary(fails("server"))).run("s1", "turn-1", "faithfulness") == "judged"
    assert job.judgement is not None
    assert job.judgement.method == "rules"


@dataclass
class Stopped:
    """Fits `StopsInForce`."""

    stops: tuple[Stop, ...] = ()

    def in_force(self) -> tuple[Stop, ...]:
        return self.stops


def stopped(kind: Any, name: str, mode: Any = "pause") -> Stopped:
    return Stopped((Stop(kind=kind, name=name, mode=mode, by="ann", reason="unpaid"),))


def test_a_paused_tenant_is_not_judged_and_no_try_is_counted() -> None:
    job, judge, stops = Job(), OwnJudge(), stopped("tenant", "acme:")
    machine = runner(job, judge, max_tries=1, stops=stops)
    assert [machine.run("acme:s1", "turn-1", "tone") for _ in range(2)] == ["paused", "paused"]
    assert (job.tries, job.waits, job.error) == (0, [30.0, 30.0], "tenant acme is paused by ann: unpaid")
    stops.stops = ()
    assert (machine.run("acme:s1", "turn-1", "tone"), len(judge.cases)) == ("judged", 1)


def test_a_forbidden_tenant_is_not_judged_and_is_told_how_it_may_be() -> None:
    job, judge = Job(), OwnJudge()
    machine = runner(job, judge, stops=stopped("tenant", "acme:", "forbid"))
    assert (machine.run("acme:s1", "turn-1", "tone"), judge.cases) == ("dead", [])
    assert "forbidden by ann: unpaid; once it is lifted `brainq finalize retry turn-1 judge:tone`" in job.error
    assert runner(Job(), judge, stops=stopped("tenant", "acme:")).run("bolt:s1", "turn-1", "tone") == "judged"


@pytest.mark.parametrize(("mode", "did"), [("pause", "paused"), ("forbid", "judged")])
def test_a_stopped_model_judges_nothing(mode: str, did: str) -> None:
    """Paused, its judgement waits; forbidden, rules judge."""
    asked: list[str] = []

    def answer(request: ModelRequest) -> ModelReply:
        asked.append(request.turn_id)
        return says("{}")

    limits: Any = SimpleNamespace(is_limited=lambda name: False, any_limited=False)  # pyright: ignore[reportUnknownLambdaType]
    held: dict[str, Any] = {"permits": PermitPolicy(limits), "stops": stopped("model", "small-model", mode)}
    job = Job()
    machine = runner(job, auxiliary=replace(auxiliary(answer), **held))
    assert machine.run("s1", "turn-1", "faithfulness") == did
    assert (asked, job.tries) == ([], int(did == "judged"))


def test_an_unknown_judge_is_dead_at_once_with_the_remedy() -> None:
    job = Job()
    assert runner(job).run("s1", "turn-1", "nobody") == "dead"
    assert "known are faithfulness, relevance" in job.error
    assert job.tries == 1


def test_a_turn_whose_content_is_gone_is_dead_with_the_reason() -> None:
    job = Job()
    assert runner(job, OwnJudge(), turn=None).run("s1", "turn-1", "tone") == "dead"
    assert "redact_logs" in job.error


def test_a_redacting_brain_keeps_scores_and_no_words() -> None:
    job = Job()
    runner(job, OwnJudge(), redact=True).run("s1", "turn-1", "tone")
    assert job.judgement == Judgement(score=0.5, reason="")
    job = Job()
    runner(job, OwnJudge(raises=ValueError("In the shed.")), redact=True).run("s1", "turn-1", "tone")
    assert job.error == "ValueError"


def test_a_turn_that_cannot_be_read_is_tried_again() -> None:
    def away(session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        raise ConnectionError("no Redis")

    job = Job()
    assert runner(job, OwnJudge(), recorded=away).run("s1", "turn-1", "tone") == "failed"
    assert (job.state, job.held, job.error) == ("pending", False, "ConnectionError: no Redis")


def test_a_judge_whose_worker_dies_each_time_is_given_up() -> None:
    job = Job(tries=8)
    assert runner(job, OwnJudge()).run("s1", "turn-1", "tone") == "dead"
    assert "died or lost its connection in each of 8 tries" in job.error


def test_no_more_judges_at_once_than_places() -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow:
        name = "tone"

        def judge(self, case: JudgeCase) -> Judgement:
            inside.set()
            assert go_on.wait(60)
            return Judgement(score=1, reason="")

    made = runner(Job(), Slow(), places=1)
    first = threading.Thread(target=made.run, args=("s1", "turn-1", "tone"))
    first.start()
    assert inside.wait(60)
    assert made.run("s1", "turn-2", "tone") == "later"
    go_on.set()
    first.join(60)


PINNED = TURN.model_copy(update={"pin": "d01d"})


@pytest.mark.parametrize("turn", [PINNED, TURN.model_copy(update={"format": 2})], ids=["pinned", "of a later format"])
def test_a_turn_of_another_build_is_passed_on_and_costs_no_try(turn: RecordedTurn) -> None:
    job, judge = Job(), OwnJudge()
    bells = Bells(job=job)
    machine = runner(job, judge, turn, bells=bells)
    for _ in range(20):
        assert machine.run("s1", "turn-1", "unknown-here") == "passed"
    assert (job.state, job.tries, job.held, set(job.waits)) == ("pending", 0, False, {0.0})
    assert (judge.cases, set(bells.left)) == ([], {True})


def test_where_its_build_is_gone_it_is_looked_for_again_later() -> None:
    job = Job()
    assert runner(job, OwnJudge(), PINNED, bells=Bells("UNSERVED")).run("s1", "t", "tone") == "passed"
    assert (job.state, job.tries, job.held, job.waits) == ("pending", 0, False, [0.0, UNSERVED_AGAIN_S])


def test_a_build_that_may_finish_the_turn_judges_it() -> None:
    released = Bells(released="d01d")
    assert runner(Job(), OwnJudge(), PINNED, bells=released).run("s1", "turn-1", "tone") == "judged"

"""`StepRetrier`: what may be run again, and what running it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.contracts.conversation import EarlierTurn
from brainq.contracts.evaluation import Judgement, RuntimeDecisionRecord
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.turn import CONTENT_NOT_STORED, TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn
from brainq.engine.finalize.late_steps import LateSteps
from brainq.engine.finalize.recall import Recall
from brainq.engine.finalize.rerun import Retried, StepRerunner
from brainq.engine.finalize.step_order import FinalizerRuntime, StepOrder
from brainq.engine.finalize.steps import AppendCitations, FinalStepRunner, SendResult, StepContext
from brainq.engine.jobs import JobKey, JobRunner
from brainq.engine.memory.judge_runner import JudgeRunner, JudgeRuntime
from brainq.errors import InvalidInput, TurnNotFound
from tests.support.only import only
from tests.support.stand_in import stand_in
from tests.unit.engine.finalize.support import REQUEST, RESULT, LiveChain, OwnJudge, Rows, brain_with, ended, talk


@dataclass
class Row:
    step: str
    state: str
    tries: int = 8


@dataclass
class Judging:
    """The judgements of one turn: rows and jobs."""

    states: dict[str, str] = field(default_factory=dict[str, str])
    errors: dict[str, str] = field(default_factory=dict[str, str])

    def of_turn(self, turn_id: str) -> list[Any]:
        return [PlannedRow(name, state, self.errors.get(name)) for name, state in self.states.items()]

    def revive_job(self, key: JobKey) -> bool:
        self.states[str(key["by"])] = "pending"
        return True

    def take(self, key: JobKey, lease_s: float) -> Any:
        return {"tries": 1} if self.states[str(key["by"])] == "pending" else None

    def hold(self, key: JobKey, tries: int, lease_s: float) -> bool:
        return True

    def settle(self, turn_id: str, judge: str, judgement: Judgement, spends: Sequence[Spend] = ()) -> bool:
        self.states[judge] = "done"
        return True

    def fail(self, key: JobKey, tries: int, error: str, again_after_s: float | None) -> None:
        judge = str(key["by"])
        self.states[judge], self.errors[judge] = "dead" if again_after_s is None else "pending", error


@dataclass
class PlannedRow:
    judge: str
    state: str
    error: str | None


@dataclass
class Sql:
    """What SQL keeps of turn turn-1."""

    tried: list[Any] = field(default_factory=list[Any])
    kept_result: TurnResult | None = RESULT
    redacted: bool = False

    def of_turn(self, turn_id: str) -> Any:
        return self.tried

    def request(self, turn_id: str) -> TurnRequest | None:
        return REQUEST.model_copy(update={"user_message": CONTENT_NOT_STORED}) if self.redacted else REQUEST

    def result(self, turn_id: str) -> TurnResult | None:
        return self.kept_result

    def number(self, turn_id: str) -> int:
        return 4

    def history(self, session_id: str, before_turn_id: str, limit_turns: int) -> tuple[EarlierTurn, ...]:
        return ()


@dataclass
class NoDecision:
    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        return None


class Empty:
    def of_turn(self, turn_id: str) -> tuple[Any, ...]:
        return ()


@dataclass
class OneStep:
    """A step that raises where it is told to."""

    name: str = "own"
    raises: Exception | None = None
    seen: list[StepContext] = field(default_factory=list[StepContext])

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        self.seen.append(context)
        assert context.turn.request.turn_id == "turn-1"
        if self.raises is not None:
            raise self.raises


@dataclass
class Stage:
    """A retrier over doubles. `live` is the turn as Redis has it: by default it has let it go."""

    step: Any = field(default_factory=OneStep)
    tried: list[Any] = field(default_factory=list[Any])
    live: EndedTurn | None = None
    result: TurnResult | None = RESULT
    out: TurnResult | None = None
    judgements: Judging = field(default_factory=Judging)
    judges: tuple[Any, ...] = ()
    rows: Rows = field(default_factory=Rows)
    redacted: bool = False
    ended_jobs: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.chain = LiveChain(self.live, out=self.out)
        sql = Sql(self.tried, self.result, self.redacted)
        said = Conversation(talk(("user", "Where?")))
        recall = Recall(
            stand_in(self.chain), stand_in(sql), said.of_turn, Empty().of_turn, NoDecision().get, lambda turn: ""
        )
        brains = only(FinalizerRuntime(brain_with(show_citations=False), StepOrder([OneStep("first"), self.step])))
        late: Any = LateSteps(
            brains=brains,
            rows=stand_in(SimpleNamespace(remove=self.ended_jobs.append)),
            records=stand_in(self.rows),
            recall=recall,
            steps=FinalStepRunner(),
            jobs=JobRunner(rows=stand_in(SimpleNamespace()), lease_s=10.0),
        )
        self.step_rerunner = StepRerunner(
            late=late,
            brain_of=lambda turn_id: None,
            steps=sql.of_turn,
            judgements=stand_in(self.judgements),
            judges=JudgeRunner(
                brains=only(JudgeRuntime(self.judges, None)),
                brain_of=lambda turn_id: None,
                bells=stand_in(self.chain),
                rows=stand_in(self.judgements),
                recorded=recall.recorded,
                jobs=JobRunner(rows=stand_in(self.judgements), lease_s=10.0, max_tries=1),
            ),
        )

    def run(self, name: str = "own") -> Retried:
        return self.step_rerunner.run("s1", "turn-1", name)


@dataclass
class Conversation:
    messages: tuple[Message, ...]

    def of_turn(self, turn_id: str) -> tuple[Message, ...]:
        return self.messages


# -- what may be run again ----------------------------------------------------------------------------------------


def test_all_that_is_dead_in_the_chains_order() -> None:
    stage = Stage(
        tried=[Row("own", "dead"), Row("first", "dead"), Row("gone", "dead")],
        judgements=Judging({"tone": "dead", "relevance": "done", "late": "pending"}),
    )
    assert stage.step_rerunner.steps_to_run("turn-1", None) == ["first", "own", "judge:tone"]


def test_nothing_is_dead() -> None:
    assert Stage(tried=[Row("own", "failed"), Row("first", "done")]).step_rerunner.steps_to_run("turn-1", None) == []


@pytest.mark.parametrize("state", ["dead", "failed"])
def test_a_step_that_failed_may_be_named(state: str) -> None:
    assert Stage(tried=[Row("own", state)]).step_rerunner.steps_to_run("turn-1", "own") == ["own"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("memroy", "no step 'memroy'; its steps are first, own"),
        ("own", "the turn has not reached it yet"),
        ("first", "'first' is done"),
        ("judge:nobody", "the turn has no 'judge:nobody'; its judgements are judge:late, judge:relevance"),
        ("judge:relevance", "has its score"),
        ("judge:late", "is pending"),
        ("judges", "no step 'judges'"),
    ],
)
def test_what_needs_no_retry_is_refused_with_a_sentence(name: str, said: str) -> None:
    stage = Stage(tried=[Row("first", "done")], judgements=Judging({"relevance": "done", "late": "pending"}))
    with pytest.raises(InvalidInput, match="STEP") as refused:
        stage.step_rerunner.steps_to_run("turn-1", name)
    assert said in str(refused.value)


def test_judges_means_the_step_and_every_dead_judgement() -> None:
    stage = Stage(OneStep("judges"), [Row("judges", "dead")], judgements=Judging({"tone": "dead", "b": "dead"}))
    assert stage.step_rerunner.steps_to_run("turn-1", "judges") == ["judges", "judge:tone", "judge:b"]
    stage = Stage(OneStep("judges"), [Row("judges", "done")], judgements=Judging({"tone": "dead"}))
    assert stage.step_rerunner.steps_to_run("turn-1", "judges") == ["judge:tone"]
    stage = Stage(OneStep("judges"), [Row("judges", "dead")])
    assert stage.step_rerunner.steps_to_run("turn-1", "judges") == ["judges"]


# -- running it ---------------------------------------------------------------------------------------------------


def test_a_dead_step_is_done_with_the_key_it_had_before() -> None:
    stage = Stage(tried=[Row("own", "dead", tries=8)])
    assert stage.run() == Retried("own", "done")
    (seen,) = stage.step.seen
    assert (seen.claim.step_key, seen.claim.tries) == ("turn-1:own", 9)
    assert "own" in stage.rows.done


@pytest.mark.parametrize(("state", "dead"), [("dead", True), ("failed", False)])
def test_a_step_that_fails_again_stays_as_it_was(state: str, dead: bool) -> None:
    stage = Stage(OneStep(raises=OSError("still\naway")), [Row("own", state, tries=8)])
    assert stage.run() == Retried("own", "failed", "OSError: still away")
    assert stage.rows.failures == [("own", 9, "OSError: still away", dead)]
    assert not stage.rows.done


def test_a_turn_that_redis_still_has_is_read_from_there() -> None:
    stage = Stage(tried=[Row("own", "dead")], live=ended(text="from Redis"))
    stage.run()
    assert stage.step.seen[0].turn.text == "from Redis"


def test_a_turn_that_redis_has_let_go_is_read_from_sql() -> None:
    stage = Stage(tried=[Row("own", "dead")])
    stage.run()
    turn = stage.step.seen[0].turn
    assert (turn.text, turn.turn_number, turn.request) == ("In the shed.", 4, REQUEST)


def test_a_turn_that_has_not_ended_is_refused() -> None:
    with pytest.raises(TurnNotFound, match="has not ended"):
        Stage(result=None, tried=[Row("own", "failed")]).run()


LIVE = ended(request={"show_citations": True}, sources=({"kind": "local", "source": "a.md"},))


@pytest.mark.parametrize("live", [None, LIVE], ids=["gone from Redis", "in Redis"])
def test_what_went_out_is_not_sent_or_changed_again(live: EndedTurn | None) -> None:
    stage = Stage(SendResult(), [Row("result", "failed")], live=live, out=RESULT)
    assert stage.run("result") == Retried("result", "done")
    assert stage.chain.sent == []
    stage = Stage(AppendCitations(), [Row("citations", "dead")], live=live, out=RESULT)
    assert stage.run("citations") == Retried("citations", "done")
    assert stage.chain.texts == []


def test_a_result_that_sql_has_and_no_caller_is_sent_as_sql_has_it() -> None:
    stage = Stage(SendResult(), [Row("result", "failed")], live=LIVE)
    assert stage.run("result") == Retried("result", "done")
    assert stage.chain.sent == [RESULT]


def test_before_the_result_went_out_its_text_may_change() -> None:
    stage = Stage(AppendCitations(), [Row("citations", "failed")], live=LIVE, result=None)
    stage.run("citations")
    assert stage.chain.texts == ["All is well.\n\nSources:\n- a.md"]


REDACTED = RESULT.model_copy(update={"text": "", "context_pack_json": None})


@pytest.mark.parametrize("name", ["own", "judge:tone"])
def test_a_turn_whose_content_is_nowhere_is_refused(name: str) -> None:
    stage = Stage(tried=[Row("own", "dead")], result=REDACTED, redacted=True, judgements=Judging({"tone": "dead"}))
    with pytest.raises(InvalidInput, match=r"SQL keeps none of its content \(redact_logs\)"):
        stage.run(name)
    assert stage.step.seen == []
    assert stage.rows.failures == []
    assert stage.judgements.states == {"tone": "dead"}


def test_a_redacted_turn_that_redis_still_has_is_run_and_sent_as_it_was() -> None:
    stage = Stage(tried=[Row("own", "dead")], live=LIVE, result=REDACTED, redacted=True)
    assert stage.run() == Retried("own", "done")
    stage = Stage(SendResult(), [Row("result", "failed")], live=LIVE, result=REDACTED, redacted=True)
    assert stage.run("result") == Retried("result", "done")
    assert [sent.text for sent in stage.chain.sent] == ["All is well."]


def test_a_dead_judgement_is_judged() -> None:
    stage = Stage(judgements=Judging({"tone": "dead"}), judges=(OwnJudge(),))
    assert stage.run("judge:tone") == Retried("judge:tone", "done")
    assert stage.judgements.states == {"tone": "done"}


def test_a_judgement_that_fails_again_is_dead_again() -> None:
    stage = Stage(judgements=Judging({"tone": "dead"}), judges=(OwnJudge(raises=OSError("away")),))
    assert stage.run("judge:tone") == Retried("judge:tone", "failed", "OSError: away")
    assert stage.judgements.states == {"tone": "dead"}


def test_a_judgement_that_a_worker_took_meanwhile_is_left_to_it() -> None:
    class Taken(Judging):
        def revive_job(self, key: JobKey) -> bool:
            self.states["tone"] = "held"
            return True

    assert Stage(judgements=Taken({"tone": "dead"})).run("judge:tone") == Retried("judge:tone", "taken")

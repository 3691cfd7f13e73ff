"""Judgements as jobs: planned, claimed by one, settled once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.store import Store
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.evaluation import Judgement
from brainq.contracts.model import Spend
from brainq.contracts.rows import JudgementRow
from brainq.engine.jobs import job_key
from tests.integration.adapters.sql.examples import at_once

GOOD = Judgement(score=0.9, reason="It follows from the notes.", model="m")
BAD = Judgement(score=0.1, reason="It does not.", method="rules")
LONG_S = 3600.0
TONE = job_key("turn-1", "tone")


def plan(store: Store, *names: str, turn_id: str = "turn-1") -> None:
    with store.database.transaction() as connection:
        store.judgements.plan(connection, "s1", turn_id, names)


def claim(store: Store, judge: str, turn_id: str = "turn-1") -> int | None:
    found = store.judgements.take(job_key(turn_id, judge), LONG_S)
    return None if found is None else found["tries"]


def lapse(store: Store) -> None:
    """All leases and waits are over."""
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE judgements SET due_at = created_at"))


def only(store: Store) -> JudgementRow:
    (row,) = store.judgements.of_turn("turn-1")
    return row


def test_a_planned_judgement_is_pending_and_due(store: Store) -> None:
    plan(store, "faithfulness", "relevance")
    plan(store, "relevance", "tone")

    assert [(row.judge, row.state, row.tries) for row in store.judgements.of_turn("turn-1")] == [
        (name, "pending", 0) for name in ("faithfulness", "relevance", "tone")
    ]
    assert sorted(store.judgements.due(0, 9)) == [
        ("s1", "turn-1", name) for name in ("faithfulness", "relevance", "tone")
    ]
    assert len(store.judgements.due(0, 2)) == 2
    assert store.judgements.due(60, 9) == []
    assert abs(store.judgements.of_turn("turn-1")[0].created_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_planning_is_recorded_once_a_step(store: Store) -> None:
    records, claim = SqlRecords(store), FinalStepClaim("s1", "turn-1", "judges", "me", 1, 1)

    def record(names: Sequence[str]) -> bool:
        return records.record_judges(claim, "s1", "turn-1", names)

    assert [record(["relevance"]), record(["tone"])] == [True, False]
    assert [row.judge for row in store.judgements.of_turn("turn-1")] == ["relevance"]
    assert records.record_judges(FinalStepClaim("s1", "turn-2", "judges", "me", 1, 1), "s1", "turn-2", ()) is True


def test_a_claim_holds_until_its_lease_is_over(store: Store) -> None:
    plan(store, "tone")

    assert claim(store, "tone") == 1
    assert claim(store, "tone") is None
    assert store.judgements.due(0, 9) == []
    assert only(store).due_at > datetime.now(UTC) + timedelta(seconds=LONG_S / 2)
    lapse(store)
    assert store.judgements.due(0, 9) == [("s1", "turn-1", "tone")]
    assert claim(store, "tone") == 2


def test_what_is_unknown_cannot_be_claimed_or_settled(store: Store) -> None:
    plan(store, "tone")

    assert claim(store, "other") is None
    assert claim(store, "tone", "turn-2") is None
    assert store.judgements.settle("turn-2", "tone", GOOD) is False
    assert store.judgements.fail(job_key("turn-2", "tone"), 1, "x", 0) is False
    assert store.judgements.of_turn("turn-2") == []


def test_of_many_one_claims(store: Store) -> None:
    for number in range(8):
        plan(store, f"judge-{number}")

        answers = at_once([lambda n=number: claim(store, f"judge-{n}")] * 8)

        assert sorted(answers, key=str) == [1, *[None] * 7]


def test_of_many_one_takes_over_a_lapsed_lease(store: Store) -> None:
    plan(store, "tone")
    for tries in range(1, 9):
        answers = at_once([lambda: claim(store, "tone")] * 6)

        assert sorted(answers, key=str) == [tries, *[None] * 5]
        lapse(store)


def test_a_judgement_brings_its_own_tokens(store: Store) -> None:
    plan(store, "tone")
    claim(store, "tone")
    store.judgements.settle("turn-1", "tone", GOOD.model_copy(update={"input_tokens": 90, "output_tokens": 8}))
    row = only(store)
    assert (row.input_tokens, row.output_tokens, row.cost_usd) == (90, 8, None)


def test_the_first_score_stays(store: Store) -> None:
    plan(store, "tone")
    claim(store, "tone")

    asked = Spend(kind="judge", step=0, model="m", input_tokens=100, output_tokens=7, cost_usd=0.002)
    assert store.judgements.settle("turn-1", "tone", GOOD, [asked]) is True
    assert store.judgements.settle("turn-1", "tone", BAD, [asked]) is False
    assert store.spends.of_turn("turn-1") == [asked], "with the score that stays, once"
    assert store.judgements.fail(TONE, 1, "late", None) is False
    assert claim(store, "tone") is None
    row = only(store)
    assert (row.state, row.score, row.reason, row.method, row.model) == ("done", 0.9, GOOD.reason, "model", "m")
    assert (row.input_tokens, row.output_tokens, row.cost_usd, row.error) == (100, 7, 0.002, None)
    assert store.judgements.due(-9e6, 9) == []


def test_a_score_that_comes_after_anothers_changes_nothing(store: Store) -> None:
    plan(store, "tone")
    assert claim(store, "tone") == 1
    lapse(store)
    assert claim(store, "tone") == 2

    assert store.judgements.settle("turn-1", "tone", GOOD) is True
    assert store.judgements.settle("turn-1", "tone", BAD) is False
    assert only(store).score == 0.9


def test_of_many_one_settles(store: Store) -> None:
    plan(store, "tone")
    scores = [Judgement(score=number / 10, reason=str(number)) for number in range(8)]

    answers = at_once([lambda score=score: store.judgements.settle("turn-1", "tone", score) for score in scores])

    assert sum(answers) == 1
    assert only(store).score == scores[answers.index(True)].score


def test_a_failed_try_waits_for_the_next(store: Store) -> None:
    plan(store, "tone")
    claim(store, "tone")

    assert store.judgements.fail(TONE, 1, "no \ud800 model", LONG_S) is True
    assert (only(store).state, only(store).error) == ("pending", "no \ufffd model")
    assert claim(store, "tone") is None
    lapse(store)
    assert claim(store, "tone") == 2
    assert store.judgements.fail(TONE, 2, "again", 0) is True
    assert claim(store, "tone") == 3
    store.judgements.settle("turn-1", "tone", GOOD)
    assert only(store).error is None


def test_a_try_that_was_not_made_does_not_count(store: Store) -> None:
    plan(store, "tone")
    claim(store, "tone")
    assert store.judgements.postpone(TONE, 1, "acme is paused", LONG_S) is True
    assert (only(store).tries, only(store).error, claim(store, "tone")) == (0, "acme is paused", None)
    lapse(store)
    assert claim(store, "tone") == 1
    assert store.judgements.postpone(TONE, 2, "acme is paused", 0) is False


def test_a_try_without_its_lease_does_not_end_anothers(store: Store) -> None:
    plan(store, "tone")
    claim(store, "tone")
    lapse(store)
    claim(store, "tone")

    assert store.judgements.fail(TONE, 1, "late", None) is False
    assert (only(store).state, store.judgements.due(0, 9)) == ("pending", [])


def test_a_dead_judgement_can_be_revived(store: Store) -> None:
    plan(store, "tone")
    claim(store, "tone")
    assert store.judgements.revive_job(TONE) is False
    store.judgements.fail(TONE, 1, "refused", None)

    assert (only(store).state, store.judgements.due(0, 9)) == ("dead", [])
    assert claim(store, "tone") is None
    assert store.judgements.settle("turn-1", "tone", GOOD) is False
    assert store.judgements.revive_job(TONE) is True
    assert claim(store, "tone") == 1


@pytest.mark.parametrize("state", ["pending", "done"])
def test_the_sweepers_read_uses_its_index(store: Store, state: str) -> None:
    sqlite = store.engine.dialect.name == "sqlite"
    query = "SELECT turn_id FROM judgements WHERE state = 'pending' AND due_at <= CURRENT_TIMESTAMP ORDER BY due_at"
    with store.engine.connect() as connection:
        connection.execute(text("SELECT 1" if sqlite else "SET enable_seqscan = off"))
        plan = connection.execute(
            text(f"EXPLAIN {'QUERY PLAN' if sqlite else ''} {query.replace('pending', state)}")
        ).all()

    assert ("ix_judgements_pending" in str(plan)) is (state == "pending")

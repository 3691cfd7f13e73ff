"""Finalizer steps as jobs: opened with their failure, claimed by one, ended with the step's own row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.store import Store
from brainq.contracts.claim import FinalStepClaim
from brainq.contrib.cells.tenant_rows import TenantRows
from brainq.engine.jobs import JobLost, job_key
from tests.integration.adapters.sql.examples import at_once

LONG_S = 3600.0
MEMORY = job_key("turn-1", "memory")


def claim_of(step: str = "memory", lost: int = 0) -> FinalStepClaim:
    return FinalStepClaim("s1", "turn-1", step, "me", 1, 1, lost=lost)


def lapse(store: Store) -> None:
    """All leases and waits are over."""
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE step_jobs SET due_at = created_at"))


def row_of(store: Store, step: str = "memory") -> tuple[str, int, str | None] | None:
    return next(((row.state, row.tries, row.error) for row in store.steps.of_turn("turn-1") if row.step == step), None)


def test_before_a_step_has_failed_there_is_nothing_to_look_at(store: Store) -> None:
    assert (store.step_jobs.is_there, store.step_jobs.take(MEMORY, LONG_S), store.step_jobs.steps_of("turn-1")) == (
        False,
        None,
        (),
    )
    store.step_jobs.remove(MEMORY)


def test_a_job_is_opened_with_the_failure_of_its_step(store: Store) -> None:
    store.step_jobs.open(claim_of(), 1, due_s=LONG_S, error="OSError: no model")
    assert row_of(store) == ("failed", 1, "OSError: no model")
    assert store.step_jobs.take(MEMORY, LONG_S) is None, "its next try is not due yet"
    assert store.step_jobs.due(0.0, 9) == []
    lapse(store)
    assert store.step_jobs.due(0.0, 9) == [("s1", "turn-1", "memory")]
    job = store.step_jobs.take(MEMORY, LONG_S)
    assert job is not None
    assert (job["tries"], job["lost"]) == (2, 1), "this try is not over"


def test_of_many_one_claims_and_a_lost_try_is_counted(store: Store) -> None:
    store.step_jobs.open(claim_of(lost=1), 0, due_s=0.0)
    store.step_jobs.open(claim_of(lost=1), 0, due_s=0.0)
    for tries in range(1, 4):
        found = [job for job in at_once([lambda: store.step_jobs.take(MEMORY, LONG_S)] * 4) if job is not None]
        assert [(job["tries"], job["lost"]) for job in found] == [(tries, tries + 1)], "each worker before it died"
        lapse(store)


def test_a_failed_try_waits_and_the_last_one_leaves_a_dead_step(store: Store) -> None:
    store.step_jobs.open(claim_of(), 1, due_s=0.0, error="once")
    assert store.step_jobs.take(MEMORY, LONG_S) is not None
    assert store.step_jobs.fail(MEMORY, 2, "twice", 0.0) is True
    assert row_of(store) == ("failed", 2, "twice")
    job = store.step_jobs.take(MEMORY, LONG_S)
    assert job is not None
    assert (job["tries"], job["lost"]) == (3, 1), "a try that reported its end is not lost"
    assert store.step_jobs.fail(MEMORY, 2, "late", None) is False
    assert store.step_jobs.fail(MEMORY, 3, "for good", None) is True
    assert (row_of(store), store.step_jobs.steps_of("turn-1")) == (("dead", 3, "for good"), [])


def test_a_try_that_was_not_made_counts_neither_as_one_nor_as_lost(store: Store) -> None:
    store.step_jobs.open(claim_of(), 0, due_s=0.0)
    for _ in range(2):
        job = store.step_jobs.take(MEMORY, LONG_S)
        assert job is not None
        assert (job["tries"], job["lost"]) == (1, 1)
        assert store.step_jobs.postpone(MEMORY, 1, "another build is to run it", 0.0) is True
    assert row_of(store) is None


def test_jobs_go_with_their_tenant(store: Store) -> None:
    store.step_jobs.open(claim_of(), 1, due_s=0.0, error="once")
    assert TenantRows(store.database).counts("s1")["step_jobs"] == 1
    TenantRows(store.database).remove_rest("s1")
    assert store.step_jobs.steps_of("turn-1") == []


def test_a_try_whose_job_was_erased_or_moved_writes_nothing(store: Store) -> None:
    store.step_jobs.open(claim_of(), 0, due_s=0.0)
    assert store.step_jobs.take(MEMORY, LONG_S) is not None
    records, claim = SqlRecords(store), replace(claim_of(), is_job=True)
    TenantRows(store.database).remove_rest("s1")
    with pytest.raises(JobLost):
        records.record_observations(claim, "s1", "chat_message:1", [])
    assert row_of(store) is None, "not even that it is done"
    store.step_jobs.open(claim_of(), 0, due_s=0.0)
    assert store.step_jobs.take(MEMORY, LONG_S) is not None
    assert records.record_observations(claim, "s1", "chat_message:1", []) is True
    assert row_of(store) == ("done", 1, None)

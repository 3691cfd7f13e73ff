"""The table of finalizer steps that are tried outside their turn's chain.

It is created when a step first becomes a job. A build that does not know it finds each turn's chain continued, and
leaves the jobs to a build that does.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, Table

from brainq.adapters.sql.tables.on_demand import OnDemandTables
from brainq.adapters.sql.tables.types import IdText, SafeText, UtcTimestamp, utc_now

JOB_TABLES = OnDemandTables()

# A row leaves with the step's end; what became of the step is in `finalizer_steps`.
step_jobs = Table(
    "step_jobs",
    JOB_TABLES.metadata,
    Column("turn_id", IdText, nullable=False),
    Column("step", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("state", IdText, nullable=False),  # pending
    Column("tries", Integer, nullable=False),
    Column("lost", Integer, nullable=False),  # tries whose worker did not report their end
    # Not to be taken before this: a claim sets it to the end of its lease, a failure to the next try.
    Column("due_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("error", SafeText),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("updated_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    PrimaryKeyConstraint("turn_id", "step"),
)

Index("ix_step_jobs_due", step_jobs.c.due_at)

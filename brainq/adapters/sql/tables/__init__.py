"""The tables. Importing this package fills `metadata`.

There are no foreign keys: after a power cut SQL may lack its last rows while Redis still has the turn, which must be
able to start calls and finish nevertheless.
"""

from __future__ import annotations

from brainq.adapters.sql.tables.people_tables import (
    approvals,
    attachments,
    blobs,
    brakes,
    deliveries,
    inputs,
    schedules,
    tokens,
)
from brainq.adapters.sql.tables.turn_tables import (
    calls,
    decisions,
    finalizer_steps,
    judgements,
    memories,
    messages,
    observations,
    pruned_sessions,
    spends,
    traces,
    transcripts,
    turns,
)
from brainq.adapters.sql.tables.types import metadata

__all__ = [
    "approvals",
    "attachments",
    "blobs",
    "brakes",
    "calls",
    "decisions",
    "deliveries",
    "finalizer_steps",
    "inputs",
    "judgements",
    "memories",
    "messages",
    "metadata",
    "observations",
    "pruned_sessions",
    "schedules",
    "spends",
    "tokens",
    "traces",
    "transcripts",
    "turns",
]

"""One table a file; importing this package fills `metadata`.

No foreign keys: a power cut may cost SQL its last rows while Redis still has the turn, and that turn must be
able to start calls and finish all the same.
"""

from __future__ import annotations

from brainq.store.tables.people_tables import (
    approvals,
    attachments,
    blobs,
    brakes,
    deliveries,
    inputs,
    schedules,
    tokens,
)
from brainq.store.tables.turn_tables import (
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
from brainq.store.tables.types import metadata

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

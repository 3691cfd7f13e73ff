"""One table a file; importing this package fills `metadata`.

No foreign keys: a power cut may cost SQL its last rows while Redis still has the turn, and that turn must be
able to start calls and finish all the same.
"""

from __future__ import annotations

from brainq.store.tables.approvals import approvals
from brainq.store.tables.base import metadata
from brainq.store.tables.blobs import attachments, blobs
from brainq.store.tables.brakes import brakes
from brainq.store.tables.calls import calls
from brainq.store.tables.decisions import decisions
from brainq.store.tables.deliveries import deliveries
from brainq.store.tables.finalizer_steps import finalizer_steps
from brainq.store.tables.inputs import inputs
from brainq.store.tables.judgements import judgements
from brainq.store.tables.memories import memories
from brainq.store.tables.messages import messages
from brainq.store.tables.observations import observations
from brainq.store.tables.pruned_sessions import pruned_sessions
from brainq.store.tables.schedules import schedules
from brainq.store.tables.spends import spends
from brainq.store.tables.tokens import tokens
from brainq.store.tables.traces import traces
from brainq.store.tables.transcripts import transcripts
from brainq.store.tables.turns import turns

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

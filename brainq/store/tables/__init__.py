"""One table a file; importing this package fills `metadata`.

No foreign keys: a power cut may cost SQL its last rows while Redis still has the turn, and that turn must be
able to start calls and finish all the same.
"""

from __future__ import annotations

from brainq.store.tables.base import metadata
from brainq.store.tables.calls import calls
from brainq.store.tables.decisions import decisions
from brainq.store.tables.finalizer_steps import finalizer_steps
from brainq.store.tables.messages import messages
from brainq.store.tables.turns import turns

__all__ = ["calls", "decisions", "finalizer_steps", "messages", "metadata", "turns"]

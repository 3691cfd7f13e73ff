"""Write to the audit log."""

from __future__ import annotations

from brainq.adapters.sql.store import Store
from brainq.contracts.act import NewAct
from brainq.contracts.actor import current_actor
from brainq.runtime.observe.logs import logger

log = logger("brainq.store")
MAX_REASON_CHARS = 500
MAX_NAME_CHARS = 200


def record_act(store: Store, act: NewAct) -> None:
    """Record an act that has been carried out. A failure to write the row is logged and does not undo the act."""
    actor = current_actor()
    try:
        store.acts.add(
            who=(act.by or actor.name)[:MAX_NAME_CHARS],
            source=actor.source,
            act=act.act,
            session_id=act.session_id,
            turn_id=act.turn_id,
            subject=act.subject[:MAX_REASON_CHARS],
            reason=act.reason[:MAX_REASON_CHARS],
        )
    except Exception as failure:
        log.error("audit log not written, but the act itself was carried out", act=act.act, failure=failure)

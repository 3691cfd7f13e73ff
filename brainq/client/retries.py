"""Retries of dead finalizer steps and judgements, in this process."""

from __future__ import annotations

from brainq.client.connection import Connection
from brainq.contracts.act import NewAct
from brainq.engine.finalize.rerun import Retried


def steps_to_run(connection: Connection, turn_id: str, step: str = "") -> list[str]:
    """See `Operator.given_up`."""
    return connection.read(
        lambda wiring: wiring.step_rerunner.steps_to_run(turn_id, step or None),
        find=lambda cells: cells.of_turn(turn_id),
    )


def retry_step(connection: Connection, session_id: str, turn_id: str, step: str) -> Retried:
    """See `Operator.retry`."""
    return connection.do(
        lambda wiring: wiring.step_rerunner.run(session_id, turn_id, step),
        NewAct("retry step", step, session_id=session_id, turn_id=turn_id),
        session=session_id,
    )

"""Postgres failed over to its standby, with a worker killed beside it."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from lab.faults.fault import Fault, Pace, wait_turns_end
from lab.faults.load import Submitted
from lab.faults.stage import Stage, no_postgres
from lab.faults.table.kills import KillWrite

if TYPE_CHECKING:
    from tests.support.postgres_pair import PostgresPair

BEHIND_S = 0.5
"""How long the log does not reach the standby before the primary is killed."""


class PostgresPromoted(KillWrite):
    name = "postgres-promoted"
    title = "SIGKILL: Postgres' primary and a worker in a write; a synchronous standby is promoted"
    kind = "synchronous pair"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.is_other = False

    @classmethod
    def why_not(cls) -> str:
        return no_postgres()

    def inject(self, stage: Stage) -> None:
        pair = _pair(stage)
        old = pair.primary
        self.fail_over(pair)
        self.is_other = pair.primary is not old
        super().inject(stage)

    def fail_over(self, pair: PostgresPair) -> None:
        pair.fail_over()

    def heal(self, stage: Stage) -> None:
        """Go on without a standby for a while, then make one of the new primary."""
        super().heal(stage)
        wait_turns_end(stage, 3)
        pair = _pair(stage)
        if pair.standby.process is None:
            pair.follow()

    def fired(self, stage: Stage) -> int:
        return super().fired(stage) if self.is_other else 0

    def recovery_s(self, stage: Stage) -> list[float]:
        return Fault.recovery_s(self, stage)


class PostgresSwitched(PostgresPromoted):
    name = "postgres-switched"
    title = "Postgres' primary stopped, its standby promoted; SIGKILL: a worker in a write"

    def fail_over(self, pair: PostgresPair) -> None:
        pair.switch()


class PostgresBehind(PostgresPromoted):
    name = "postgres-promoted-async"
    title = "the same, asynchronous, half a second behind"
    kind = "asynchronous pair"

    def fail_over(self, pair: PostgresPair) -> None:
        old = pair.primary
        old.wal.freeze()
        time.sleep(BEHIND_S)
        pair.fail_over()
        old.wal.thaw()

    @classmethod
    def losses(cls, stage: Stage, submitted: Submitted) -> Counter[str]:
        """Turns without a row, which are submitted again as their producers do."""
        rows = {row.turn_id for row in stage.wiring.store.turns.rows(list(submitted.sent))}
        missing = sorted(submitted.sent.keys() - rows)
        for turn in missing:
            session, message = submitted.sent[turn]
            stage.producer.submit(message, session, turn)
        stage.producer.take()
        return Counter({"row lost": len(missing)} if missing else {})


def _pair(stage: Stage) -> PostgresPair:
    assert stage.servers.postgres_pair is not None
    return stage.servers.postgres_pair

"""Stops: operators pause or forbid a brain, tool, model, MCP server or tenant by name, and lift the stop later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.stop import Stop
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.stops import RedisStops
    from brainq.adapters.sql.repositories.stops import Stops

log = logger("brainq.people")


@dataclass(eq=False)
class StopDesk:
    """The desk that sets and lifts stops. SQL's rows are the truth: they are written first and removed first."""

    rows: Stops
    switch: RedisStops

    def stop(self, stop: Stop) -> None:
        """Set a stop. Once this returns, nothing that the stop covers is claimed. If Redis is unavailable, the sweeper
        brings the stop from SQL later."""
        self.rows.put(stop)
        self.switch.put([stop])
        log.info("stop set", stop=stop.subject, mode=stop.mode)

    def lift(self, stop: Stop) -> bool:
        """Lift a stop. What waited for it continues. Returns False if the stop did not exist."""
        stood = self.rows.lift(stop)
        if self.switch.drop(stop.field) or stood:
            self.switch.hasten()
            log.info("stop lifted", stop=stop.subject)
            return True
        return False

    def standing(self) -> tuple[Stop, ...]:
        """Return the stops in force in SQL, by kind and name."""
        return tuple(self.rows.standing())

    def heal(self) -> int:
        """Copy SQL's stops to Redis, and remove those that SQL no longer has. Returns how many were removed.

        Redis is read first. A stop that is set meanwhile is in SQL before it is in Redis, so it is not removed.
        """
        met = self.switch.fields()
        standing = self.rows.standing()
        self.switch.put(standing)
        over = met - {stop.field for stop in standing}
        for field in sorted(over):
            self.switch.drop(field)
        if over:
            self.rows.forget_ended()
            self.switch.hasten()
        return len(over)

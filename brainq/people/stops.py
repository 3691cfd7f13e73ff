"""Stops: operators pause or forbid a brain, tool, model, MCP server or tenant by name, and lift that again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from brainq.contracts.stop import Stop
from brainq.observe.logs import logger

if TYPE_CHECKING:
    from brainq.state.stops import RedisStops
    from brainq.store.repositories.stops import Stops

log = logger("brainq.people")


@dataclass(eq=False)
class StopDesk:
    """Every stop goes into SQL first and out of it first: SQL's rows hold, and outlive Redis."""

    rows: Stops
    switch: RedisStops

    def stop(self, stop: Stop) -> None:
        """From when this returns nothing that it meets is claimed. Where Redis is away, SQL has it all the same, and a
        sweeper brings it when Redis is back."""
        self.rows.put(stop)
        self.switch.put([stop])
        log.info("operators have stopped something", stop=stop.subject, mode=stop.mode)

    def lift(self, stop: Stop) -> bool:
        """What waited for it goes on; False where it did not stand."""
        stood = self.rows.lift(stop)
        if self.switch.drop(stop.field) or stood:
            self.switch.hasten()
            log.info("operators have lifted a stop", stop=stop.subject)
            return True
        return False

    def standing(self) -> tuple[Stop, ...]:
        """Those in force, by kind and name, as SQL has them."""
        return tuple(self.rows.standing())

    def heal(self) -> int:
        """Bring Redis what it lacks of SQL's stops, and take out of it what SQL has no more; how many were lifted so.

        Redis is read first: a stop that comes meanwhile is in SQL before it is in Redis, so it is not taken out.
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

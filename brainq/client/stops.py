"""The client's verbs that pause or forbid brains, tools, models, MCP servers and tenants by name."""

from __future__ import annotations

from brainq.client import checks
from brainq.client.connection import Connection
from brainq.contracts.act import NewAct
from brainq.contracts.answers import listed
from brainq.contracts.stop import MAX_STOP_S, Stop, StopKind, StopMode, checked_stop
from brainq.errors import InvalidInput


class StopVerbs:
    """The part of `Client` that sets, lifts and lists stops."""

    _connection: Connection

    def stop(
        self,
        kind: StopKind,
        name: str,
        *,
        mode: StopMode = "pause",
        reason: str = "",
        by: str = "",
        tenant: str = "",
        ends_in_s: float | None = None,
    ) -> Stop:
        """Pause or forbid something by name, for every worker at once. It replaces an earlier stop of the same name.

        kind: brain, tool, model, server (all tools of an MCP server) or tenant.
        name: the name. For a model `provider:model`, or its name at any provider; for a tenant its sessions' prefix.
        mode: `pause`: work that meets the stop waits, for a day at most, and continues when the stop is lifted; a
            turn's time does not run meanwhile. `forbid`: a call is denied and the model reads why, a submit raises
            TurnForbidden, and a live turn is cancelled at its next step.
        reason: shown with `by` to everybody whose work meets the stop.
        tenant: stop it only for turns of this tenant.
        ends_in_s: seconds after which the stop ends. None keeps it until it is lifted.

        Calls and model calls that have begun continue. When this returns, SQL and Redis of every cell have the stop.
        Raises InvalidInput naming the field, and Unreachable. If Redis was unreachable, the stop takes effect once it
        is back; the other cells have it already.
        """
        if ends_in_s is not None and not 0 < ends_in_s <= MAX_STOP_S:
            raise InvalidInput("ends_in_s", f"{ends_in_s!r} must be above 0 and at most a year, or None")
        named = checked_stop(kind, name, tenant, mode)
        why = {"reason": checks.text("reason", reason, checks.MAX_REASON_CHARS), "by": checks.name(by)}
        stop = named.model_copy(update={**why, "ends_in_s": ends_in_s})
        subject = " ".join(filter(None, (kind, name, tenant, "" if mode == "pause" else mode)))
        self._connection.do_in_each(
            lambda wiring: wiring.people.stops.stop(stop), NewAct("stop", subject, stop.by, stop.reason)
        )
        return stop

    def lift(self, kind: StopKind, name: str, *, tenant: str = "") -> bool:
        """Lift a stop, so that waiting work continues. Returns False if there is no such stop. Raises InvalidInput."""
        stop = checked_stop(kind, name, tenant)
        return self._connection.do_in_all(
            lambda cells: any(cells.do_in_each(lambda wiring: wiring.people.stops.lift(stop))),
            NewAct("lift", " ".join(filter(None, (kind, name, tenant)))),
        )

    def stops(self) -> tuple[Stop, ...]:
        """List the stops in force by kind and name, with their reason and author."""
        asked = self._connection.ask(lambda wiring: wiring.store.stops.standing())
        found = {stop.field: stop for standing in asked.values for stop in standing}
        return listed((found[field] for field in sorted(found)), asked)

"""The verbs of a client by which operators stop brains, tools, models, MCP servers and tenants by name."""

from __future__ import annotations

from brainq.client import checks
from brainq.client.connection import Connection
from brainq.contracts.act import NewAct
from brainq.contracts.answers import listed
from brainq.contracts.stop import MAX_STOP_S, Stop, StopKind, StopMode, checked_stop
from brainq.errors import InvalidInput


class StopVerbs:
    """The part of `Client` that stops by name, lifts that, and lists it."""

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
        """Pause or forbid something by name, for every worker at once. The same name again takes the first one's place.

        kind       brain, tool, model, server (an MCP server: all of its tools), tenant
        name       of a model `provider:model`, or its name at any provider; of a tenant what its sessions begin with
        mode       `pause`: what meets it waits, for a day at most, and goes on when that is lifted; a turn's time does
                   not run. `forbid`: a call is denied, and the model reads why; a submit raises TurnForbidden, and a
                   live turn is cancelled at its next step
        reason     shown to everybody whom it meets, with `by`
        tenant     only of this tenant's turns
        ends_in_s  then it is lifted by itself; None: it holds until it is lifted

        What runs already goes on: a call that has begun, a model call. When this returns SQL and Redis of every cell
        have it. Raises InvalidInput naming the field; Unreachable: where that is Redis, it is met once Redis is back.
        The other cells have it then.
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
        """Let go on what waits for it. False where it does not stand. Raises InvalidInput."""
        stop = checked_stop(kind, name, tenant)
        return self._connection.do_in_all(
            lambda cells: any(cells.do_in_each(lambda wiring: wiring.people.stops.lift(stop))),
            NewAct("lift", " ".join(filter(None, (kind, name, tenant)))),
        )

    def stops(self) -> tuple[Stop, ...]:
        """What is stopped now, by kind and name, with who did it and why."""
        asked = self._connection.ask(lambda wiring: wiring.store.stops.standing())
        found = {stop.field: stop for standing in asked.values for stop in standing}
        return listed((found[field] for field in sorted(found)), asked)

"""Stops: what operators have paused or forbidden by name, and which parts of a turn a stop concerns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, get_args

from brainq.contracts.base import Wire
from brainq.contracts.ids import PREFIX_BOUNDARY, tenant_of
from brainq.errors import InvalidInput

StopKind = Literal["brain", "tool", "model", "server", "tenant"]
"""`server`: an MCP server, with all of its tools."""
StopMode = Literal["pause", "forbid"]
"""`pause`: the concerned work waits until the stop is lifted. `forbid`: it is refused."""
STOP_KINDS: tuple[StopKind, ...] = get_args(StopKind)
STOP_MODES: tuple[StopMode, ...] = get_args(StopMode)
MAX_STOP_S = 366 * 86_400.0
MAX_PAUSED_S = 86_400.0
"""How long a turn or a call waits for a pause to end. Then the turn ends, and the call is denied."""
PAUSED_BY = " is paused by "
_NAME = re.compile(r"[^\s{}]{1,200}")


class Stop(Wire):
    """One stop.

    name: the name of the brain, tool, model (`provider:model`, or its name alone), MCP server or tenant (`acme:`).
    tenant: the prefix of the tenant whose turns it concerns, such as `acme:`, or "" for all.
    by, reason: who stopped it, and why. Both are shown to everybody whose work it concerns.
    since: when it was stopped.
    ends_in_s: when it ends by itself, or None if somebody must lift it.
    """

    kind: StopKind
    name: str
    tenant: str = ""
    mode: StopMode
    by: str = ""
    reason: str = ""
    since: datetime | None = None
    ends_in_s: float | None = None

    @property
    def field(self) -> str:
        """The field under which scripts find it."""
        return stop_field(self.kind, self.name, self.tenant)

    @property
    def subject(self) -> str:
        """What is stopped, such as `tool send_email of tenant acme`."""
        of = f" of tenant {self.tenant.removesuffix(PREFIX_BOUNDARY)}" if self.tenant and self.kind != "tenant" else ""
        return f"{self.kind} {self.name.removesuffix(PREFIX_BOUNDARY)}{of}"

    def describe(self) -> str:
        """Return one sentence without a full stop: `tool send_email is paused by ann: wrong prices`."""
        how = "paused" if self.mode == "pause" else "forbidden"
        return f"{self.subject} is {how} by {self.by or 'an operator'}{f': {self.reason}' if self.reason else ''}"

    @property
    def remedy(self) -> str:
        """The command that lifts it."""
        name = self.name.removesuffix(PREFIX_BOUNDARY)
        of = f" --tenant {self.tenant.removesuffix(PREFIX_BOUNDARY)}" if self.tenant and self.kind != "tenant" else ""
        return f"`brainq lift {self.kind} {name}{of}`"

    def is_for(self, session_id: str) -> bool:
        """Return whether it concerns turns of this session's tenant."""
        return self.tenant in ("", tenant_of(session_id))


def stop_field(kind: str, name: str, tenant: str = "") -> str:
    return f"{kind} {name} {tenant}"


def checked_stop(kind: object, name: object, tenant: str = "", mode: object = "pause") -> Stop:
    """Return a checked stop. A tenant may be named without its colon. Raises InvalidInput naming the field."""
    if kind not in STOP_KINDS:
        raise InvalidInput("kind", f"{kind!r} cannot be stopped; name one of {', '.join(STOP_KINDS)}")
    if mode not in STOP_MODES:
        raise InvalidInput("mode", f"{mode!r} is not known; use pause or forbid")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput("name", f"{name!r} is not the name of a {kind}; give 1 to 200 characters without blanks")
    if kind == "tenant":
        return Stop(kind=kind, name=_checked_tenant("name", name), mode=mode)
    return Stop(kind=kind, name=name, tenant=_checked_tenant("tenant", tenant) if tenant else "", mode=mode)


def _checked_tenant(field: str, tenant: str) -> str:
    bare = tenant.removesuffix(PREFIX_BOUNDARY)
    if PREFIX_BOUNDARY in bare or not _NAME.fullmatch(tenant):
        raise InvalidInput(field, f"{tenant!r} is not a tenant; give what its sessions begin with, such as 'acme'")
    return bare + PREFIX_BOUNDARY


def stop_json(stop: Stop) -> str:
    """Return the JSON text that scripts keep, with a sentence for people under `says`."""
    return json.dumps({**stop.model_dump(mode="json", exclude={"ends_in_s"}), "says": stop.describe()})


def read_stops(text: str) -> tuple[Stop, ...]:
    """Return the stops in a claim: a JSON array of `MODE ENDS JSON`."""
    return tuple(Stop.from_stored(each.split(" ", 2)[2]) for each in json.loads(text))


def fields_of_submit(session_id: str, brain: str) -> tuple[str, ...]:
    """Return the fields of stops that may forbid a turn of this session and brain."""
    tenant = tenant_of(session_id)
    return (stop_field("brain", brain), stop_field("brain", brain, tenant), stop_field("tenant", tenant))


def stop_of_turn(stops: Iterable[Stop], session_id: str, brain: str) -> Stop | None:
    """Return the stop that concerns the next step of a turn, or None. A stop that forbids comes first."""
    fields = fields_of_submit(session_id, brain)
    return _strictest(stop for stop in stops if stop.field in fields)


def stops_of_models(stops: Iterable[Stop], session_id: str) -> tuple[Stop, ...]:
    """Return the stops of models that concern a turn of this session."""
    return tuple(stop for stop in stops if stop.kind == "model" and stop.is_for(session_id))


def stop_of_model(stops: Iterable[Stop], provider: str, model: str) -> Stop | None:
    """Return the stop that concerns a request to this model, or None."""
    return _strictest(stop for stop in stops if stop.name in (model, f"{provider}:{model}"))


def _strictest(stops: Iterator[Stop]) -> Stop | None:
    return min(stops, key=lambda stop: stop.mode != "forbid", default=None)

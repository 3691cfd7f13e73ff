"""Stops: what operators have paused or forbidden by name, and what of a turn meets one. Decisions are pure."""

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
"""`pause`: what is met waits until the stop is lifted; `forbid`: it is refused."""
STOP_KINDS: tuple[StopKind, ...] = get_args(StopKind)
STOP_MODES: tuple[StopMode, ...] = get_args(StopMode)
MAX_STOP_S = 366 * 86_400.0
MAX_PAUSED_S = 86_400.0
"""So long a turn or a call waits for one that pauses it: then the turn ends, and the call is denied."""
PAUSED_BY = " is paused by "
_NAME = re.compile(r"[^\s{}]{1,200}")


class Stop(Wire):
    """One of them.

    name         of the brain, tool, model (`provider:model`, or its name alone), MCP server or tenant (`acme:`)
    tenant       of its turns alone, such as `acme:`; "" for those of all
    by, reason   who stopped it, and why; shown to everybody whom it meets
    since        when it was stopped
    ends_in_s    then it is lifted by itself; None: somebody lifts it
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
        """By which scripts find it."""
        return stop_field(self.kind, self.name, self.tenant)

    @property
    def subject(self) -> str:
        """Such as `tool send_email of tenant acme`."""
        of = f" of tenant {self.tenant.removesuffix(PREFIX_BOUNDARY)}" if self.tenant and self.kind != "tenant" else ""
        return f"{self.kind} {self.name.removesuffix(PREFIX_BOUNDARY)}{of}"

    def describe(self) -> str:
        """One sentence without a full stop: `tool send_email is paused by ann: wrong prices`."""
        how = "paused" if self.mode == "pause" else "forbidden"
        return f"{self.subject} is {how} by {self.by or 'an operator'}{f': {self.reason}' if self.reason else ''}"

    @property
    def remedy(self) -> str:
        """How it is lifted."""
        name = self.name.removesuffix(PREFIX_BOUNDARY)
        of = f" --tenant {self.tenant.removesuffix(PREFIX_BOUNDARY)}" if self.tenant and self.kind != "tenant" else ""
        return f"`brainq lift {self.kind} {name}{of}`"

    def is_for(self, session_id: str) -> bool:
        """Whether it is about turns of this session's tenant."""
        return self.tenant in ("", tenant_of(session_id))


def stop_field(kind: str, name: str, tenant: str = "") -> str:
    return f"{kind} {name} {tenant}"


def checked_stop(kind: object, name: object, tenant: str = "", mode: object = "pause") -> Stop:
    """What is to be stopped, or is. A tenant may be named without its colon. Raises InvalidInput naming the field."""
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
    """As scripts keep it, with what it `says` in words."""
    return json.dumps({**stop.model_dump(mode="json", exclude={"ends_in_s"}), "says": stop.describe()})


def read_stop(text: str) -> Stop:
    """Reads `stop_json`."""
    return Stop.model_validate({name: value for name, value in json.loads(text).items() if name != "says"})


def read_stops(text: str) -> tuple[Stop, ...]:
    """What a claim says is stopped: a JSON array of `MODE ENDS JSON`."""
    return tuple(read_stop(each.split(" ", 2)[2]) for each in json.loads(text))


def fields_of_submit(session_id: str, brain: str) -> tuple[str, ...]:
    """What may forbid a turn of this session and brain."""
    tenant = tenant_of(session_id)
    return (stop_field("brain", brain), stop_field("brain", brain, tenant), stop_field("tenant", tenant))


def stop_of_turn(stops: Iterable[Stop], session_id: str, brain: str) -> Stop | None:
    """The stop that the next step of a turn meets: one that forbids before one that pauses."""
    fields = fields_of_submit(session_id, brain)
    return _strictest(stop for stop in stops if stop.field in fields)


def stops_of_models(stops: Iterable[Stop], session_id: str) -> tuple[Stop, ...]:
    """Those of models that a turn of this session heeds."""
    return tuple(stop for stop in stops if stop.kind == "model" and stop.is_for(session_id))


def stop_of_model(stops: Iterable[Stop], provider: str, model: str) -> Stop | None:
    """The stop that a request to this model meets."""
    return _strictest(stop for stop in stops if stop.name in (model, f"{provider}:{model}"))


def _strictest(stops: Iterator[Stop]) -> Stop | None:
    return min(stops, key=lambda stop: stop.mode != "forbid", default=None)

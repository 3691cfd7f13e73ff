"""The limits of a model's service in requests and tokens per minute: as operators set them, and as answers report
them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, Self

RateLimitKind = Literal["requests", "tokens", "stop", "count"]
"""What a request waits for.

requests, tokens: a place among the requests, or the tokens, of a minute.
stop: the end of a pause that the service demanded.
count: the fleet's own counter, which cannot be reached.
"""
_RATE_PART = re.compile(r"(\d{1,12})(?:\s+(tokens|requests))?\s*/\s*min(?:ute)?")
_RATE_FORM = "write `openai:gpt-5=60/min,200000 tokens/min`; separate models with `;`, and use `none` for no limit"


@dataclass(frozen=True, slots=True)
class Rate:
    """The most requests and tokens in any minute. None means no limit."""

    requests: int | None = None
    tokens: int | None = None


NO_RATE = Rate()


@dataclass(frozen=True, slots=True)
class RateWait:
    """A wait for a place. `most` is the limit per minute that is reached, or 0 for a stop. `is_late` means that the
    place would come too late."""

    wait_s: float
    what: RateLimitKind
    most: int = 0
    is_late: bool = False

    def describe(self, model: str) -> str:
        """Return the reason for people, such as `openai:gpt-5: 60 requests a minute`."""
        match self.what:
            case "requests" | "tokens":
                return f"{model}: {self.most} {self.what} a minute"
            case "stop":
                return f"{model}: its service asked to wait"
            case "count":
                return f"{model}: its count cannot be reached"


@dataclass(frozen=True, slots=True)
class QueueTicket:
    """The ticket of a request in the queue of a limited model. Its stored text has the two parts on two lines.

    queue: `provider:model`, and ` #` with a word for the account if there is one.
    holder: `SESSION TURN STEP PURPOSE`, or a unique word for a request without a turn.
    """

    queue: str
    holder: str

    @classmethod
    def of_step(cls, queue: str, session_id: str, turn_id: str, step: int, purpose: str) -> Self:
        """Return the ticket of a step's request. It is the same for each try of the step."""
        return cls(queue, f"{session_id} {turn_id} {step} {purpose}")

    @classmethod
    def parse(cls, text: str) -> Self:
        queue, _, holder = text.partition("\n")
        return cls(queue, holder)

    def __str__(self) -> str:
        return f"{self.queue}\n{self.holder}"

    @property
    def step(self) -> int:
        """The step of the request. Raises ValueError if the request belongs to no turn."""
        return int(self.holder.rsplit(" ", 2)[-2])


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The tokens that a request used. Its service `counted` this many for the `estimated` ones."""

    used: int
    estimated: int
    counted: int


@dataclass(frozen=True, slots=True)
class RateReport:
    """The limits per minute in one answer of a service, and how many seconds the service accepts no requests (0 if it
    does)."""

    requests: int | None = None
    tokens: int | None = None
    stop_s: float = 0.0


EMPTY_RATE_REPORT = RateReport()


@dataclass(frozen=True, slots=True)
class RateRules:
    """The configured limits by `provider:model`, in which `*` matches any letters. Of several matching names the
    longest one applies. Each model has its own count, even if one name matches several."""

    by_name: tuple[tuple[str, Rate | None], ...] = ()

    def for_model(self, model: str) -> Rate | Literal["unknown"] | None:
        """Return the limits of `provider:model`: None if it has no limit, and `unknown` if nothing is configured."""
        fitting = [(len(name), rate) for name, rate in self.by_name if fnmatchcase(model, name)]
        return max(fitting, key=lambda each: each[0])[1] if fitting else "unknown"


def parse_rates(text: str) -> RateRules:
    """Return the limits of BRAINQ_RATES. Raises ValueError, which shows the problem and the format."""
    found: dict[str, Rate | None] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        name, sign, limits = (part.strip() for part in entry.partition("="))
        if not sign or ":" not in name:
            raise ValueError(f"{entry!r} is not a `provider:model` with its limits; {_RATE_FORM}")
        if name in found:
            raise ValueError(f"{name!r} is repeated; put its limits into one entry")
        found[name] = None if limits == "none" else _parse_rate(limits)
    return RateRules(tuple(found.items()))


def _parse_rate(limits: str) -> Rate:
    counts: dict[str, int] = {}
    for part in (part.strip() for part in limits.split(",")):
        fit = _RATE_PART.fullmatch(part)
        if fit is None or int(fit[1]) < 1:
            raise ValueError(f"{part!r} is not a limit; {_RATE_FORM}")
        kind = fit[2] or "requests"
        if kind in counts:
            raise ValueError(f"{limits!r} limits {kind} twice")
        counts[kind] = int(fit[1])
    return Rate(**counts)

"""How many requests and tokens a minute a model's service takes: what an operator sets, and what its answers say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, Self

RateLimitKind = Literal["requests", "tokens", "stop", "count"]
"""What is waited for: a place among the requests, or tokens, of a minute; the end of a stop that the service asked for;
or the fleet's count, which cannot be reached."""
_RATE_PART = re.compile(r"(\d{1,12})(?:\s+(tokens|requests))?\s*/\s*min(?:ute)?")
_RATE_FORM = "write `openai:gpt-5=60/min,200000 tokens/min`; models are parted by `;`, `none` holds one to no limit"


@dataclass(frozen=True, slots=True)
class Rate:
    """At most so many requests, and tokens, in any minute; None: no limit."""

    requests: int | None = None
    tokens: int | None = None


NO_RATE = Rate()


@dataclass(frozen=True, slots=True)
class RateWait:
    """No place yet. `most` is the limit that is reached, a minute; 0 for a stop. `is_late`: it would come too late."""

    wait_s: float
    what: RateLimitKind
    most: int = 0
    is_late: bool = False

    def describe(self, model: str) -> str:
        """For people, such as `openai:gpt-5: 60 requests a minute`."""
        match self.what:
            case "requests" | "tokens":
                return f"{model}: {self.most} {self.what} a minute"
            case "stop":
                return f"{model}: its service asked to wait"
            case "count":
                return f"{model}: its count cannot be reached"


@dataclass(frozen=True, slots=True)
class QueueTicket:
    """What a request waits with for its place at a limited model. Its text, which is kept, has both parts on two lines.

    queue    `provider:model`, and ` #` with a word for the account where there is one
    holder   who waits there: `SESSION TURN STEP PURPOSE`; for a request of no turn a word of its own
    """

    queue: str
    holder: str

    @classmethod
    def of_step(cls, queue: str, session_id: str, turn_id: str, step: int, purpose: str) -> Self:
        """The ticket of a step's request. It is the same for each try of the step."""
        return cls(queue, f"{session_id} {turn_id} {step} {purpose}")

    @classmethod
    def parse(cls, text: str) -> Self:
        queue, _, holder = text.partition("\n")
        return cls(queue, holder)

    def __str__(self) -> str:
        return f"{self.queue}\n{self.holder}"

    @property
    def step(self) -> int:
        """The step whose request it is. Raises ValueError for a request of no turn."""
        return int(self.holder.rsplit(" ", 2)[-2])


@dataclass(frozen=True, slots=True)
class TokenCount:
    """What a request used, as its service counted it; of that it `counted` so many for those that were `estimated`."""

    used: int
    estimated: int
    counted: int


@dataclass(frozen=True, slots=True)
class RateReport:
    """What one answer of a service says: its limits a minute, and for how long it takes nothing (0: it does)."""

    requests: int | None = None
    tokens: int | None = None
    stop_s: float = 0.0


EMPTY_RATE_REPORT = RateReport()


@dataclass(frozen=True, slots=True)
class RateRules:
    """The limits that are set, by `provider:model`; a `*` fits any letters. Of several that fit the longest name
    counts. Each model has its own count, also where one name fits several."""

    by_name: tuple[tuple[str, Rate | None], ...] = ()

    def for_model(self, model: str) -> Rate | Literal["unknown"] | None:
        """The limits of `provider:model`: None where it is to be held to none, `unknown` where nothing is set."""
        fitting = [(len(name), rate) for name, rate in self.by_name if fnmatchcase(model, name)]
        return max(fitting, key=lambda each: each[0])[1] if fitting else "unknown"


def parse_rates(text: str) -> RateRules:
    """The limits of BRAINQ_RATES. Raises ValueError, which says what is wrong and how it is written."""
    found: dict[str, Rate | None] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        name, sign, limits = (part.strip() for part in entry.partition("="))
        if not sign or ":" not in name:
            raise ValueError(f"{entry!r} names no `provider:model` and its limits; {_RATE_FORM}")
        if name in found:
            raise ValueError(f"{name!r} is there twice; put its limits into one entry")
        found[name] = None if limits == "none" else _parse_rate(limits)
    return RateRules(tuple(found.items()))


def _parse_rate(limits: str) -> Rate:
    counts: dict[str, int] = {}
    for part in (part.strip() for part in limits.split(",")):
        fit = _RATE_PART.fullmatch(part)
        if fit is None or int(fit[1]) < 1:
            raise ValueError(f"{part!r} is no limit; {_RATE_FORM}")
        kind = fit[2] or "requests"
        if kind in counts:
            raise ValueError(f"{limits!r} limits {kind} twice")
        counts[kind] = int(fit[1])
    return Rate(**counts)

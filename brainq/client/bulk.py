"""One verb for many turns: which those are, and what became of each. Running it again changes nothing twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

from brainq.client.lists import checked_filter, read_metadata_pairs
from brainq.client.options import SubmitOptions, TurnFilters
from brainq.contracts.history import ListedTurn
from brainq.contracts.ids import PREFIX_BOUNDARY
from brainq.errors import BrainqError, InvalidInput, Unreachable

if TYPE_CHECKING:
    from brainq.client.client import Client

BulkVerb = Literal["cancel", "approve", "deny", "retry", "resubmit"]
BULK_VERBS: tuple[BulkVerb, ...] = get_args(BulkVerb)
MAX_BULK_TURNS = 100_000
RESUBMIT_KEY = "resubmit-of-"
"""What the request key of a turn begins with that is another one's second try: the same turn is tried once."""
_TEXTS = ("session", "state", "brain", "ending", "stop_reason", "text", "search", "strategy")
_ONLY_FIRST = {"request_key", "turn_id", "attachments", "greeting", "history", "metadata"}
_UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def read_where(where: str) -> TurnFilters:
    """The filters of `Client.turns` in words: `brain=shop state=parked tenant=acme older=2h`.

    session, state, brain, ending, stop_reason, text, search, strategy; tenant; failing=yes; min_cost=0.5; tag;
    metadata.NAME=VALUE; older and newer: of how long ago they were accepted, in s, m, h, d or w.

    Raises InvalidInput naming the word.
    """
    found: dict[str, Any] = {}
    tags, pairs = list[str](), list[str]()
    for word in where.split():
        name, is_pair, value = word.partition("=")
        if not is_pair or not value:
            raise InvalidInput("where", f"{word!r} is not NAME=VALUE, such as brain=shop")
        if name in _TEXTS:
            found[name] = value
        elif name == "tenant":
            found["session_prefixes"] = (value.removesuffix(PREFIX_BOUNDARY) + PREFIX_BOUNDARY,)
        elif name in ("older", "newer"):
            found["until" if name == "older" else "since"] = datetime.now(UTC) - timedelta(seconds=_span_s(name, value))
        elif name == "failing" and value in ("yes", "true"):
            found["failing"] = True
        elif name == "min_cost":
            found["min_cost_usd"] = _number(name, value)
        elif name == "tag":
            tags.append(value)
        elif name.startswith("metadata."):
            pairs.append(f"{name.removeprefix('metadata.')}={value}")
        else:
            known = f"{', '.join(_TEXTS)}, tenant, older, newer, failing, min_cost, tag, metadata.NAME"
            raise InvalidInput("where", f"{name!r} is not a filter; the filters are {known}")
    if not found and not tags and not pairs:
        raise InvalidInput("where", "name at least one filter, such as brain=shop; state=accepted is all that run")
    filters = cast("TurnFilters", found | {"prompt_tags": tags, "metadata": read_metadata_pairs("where", pairs)})
    checked_filter(**filters)
    return filters


def read_rate(rate: str) -> float:
    """Turns a second: `20/s`, or `20`. Raises InvalidInput."""
    number = _number("rate", rate.removesuffix("/s"))
    if not 0 < number <= 1_000:
        raise InvalidInput("rate", f"{rate!r} must be above 0 and at most 1000/s")
    return number


class BulkOperator(Protocol):
    """What the verbs are done with. Fitted by `operator.Operator`."""

    @property
    def client(self) -> Client: ...
    def given_up(self, turn_id: str) -> list[str]: ...
    def retry(self, turn_id: str, step: str) -> object: ...


@dataclass
class BulkReport:
    """What became of the turns. `skipped` says why, and of how many; `failed` which, and why."""

    verb: BulkVerb
    matched: int = 0
    done: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "verb": self.verb,
            "matched": self.matched,
            "done": self.done,
            "skipped": dict(self.skipped),
            "failed": [{"turn_id": turn_id, "why": why} for turn_id, why in self.failed],
        }


def find_bulk(client: Client, filters: TurnFilters, limit: int = MAX_BULK_TURNS) -> list[ListedTurn]:
    """The turns that the verb is for, as they are now."""
    return list(islice(client.iterate_turns(**filters), limit))


@dataclass(kw_only=True)
class BulkRunner:
    """Does one verb to each of many turns, so many a second.

    by, reason   for the record; a denial's reason is what the model reads
    """

    operator: BulkOperator
    by: str = ""
    reason: str = ""
    rate: float = 20.0
    pause: Callable[[float], None] = time.sleep
    on_progress: Callable[[BulkReport], None] = lambda report: None

    def run(self, verb: BulkVerb, turns: Iterable[ListedTurn]) -> BulkReport:
        """Raises Unreachable where Redis or SQL goes away: the same again does the rest."""
        act = {"cancel": self._cancel, "approve": self._decide, "deny": self._decide}.get(verb)
        report = BulkReport(verb)
        for turn in turns:
            if report.matched:
                self.pause(1 / self.rate)
            report.matched += 1
            try:
                if verb == "retry":
                    why = self._retry(turn)
                elif verb == "resubmit":
                    why = self._resubmit(turn)
                else:
                    assert act is not None
                    why = act(turn, verb)
            except Unreachable:
                raise
            except BrainqError as failure:
                report.failed.append((turn.turn_id, str(failure)))
            else:
                report.done += not why
                report.skipped.update([why] if why else ())
            self.on_progress(report)
        return report

    # Each gives why nothing was to be done; "" where it was done.

    def _cancel(self, turn: ListedTurn, verb: BulkVerb) -> str:
        word = self.operator.client.cancel(turn.session_id, turn.turn_id, self.reason)
        return "it has ended" if word == "ended" else ""

    def _decide(self, turn: ListedTurn, verb: BulkVerb) -> str:
        client = self.operator.client
        asked = [each for each in client.handle(turn.turn_id).approvals() if each.state == "pending"]
        for approval in asked:
            if verb == "approve":
                client.approve(approval.id, by=self.by, args_hash=approval.args_hash)
            else:
                client.deny(approval.id, self.reason, by=self.by)
        return "" if asked else "nobody is asked about its calls"

    def _retry(self, turn: ListedTurn) -> str:
        if not turn.dead_steps:
            return "none of its finalizer steps was given up"
        for step in self.operator.given_up(turn.turn_id):
            self.operator.retry(turn.turn_id, step)
        return ""

    def _resubmit(self, turn: ListedTurn) -> str:
        if turn.ending is None or turn.ending.value == "completed":
            return "it has not failed"
        request = self.operator.client.handle(turn.turn_id).request()
        if request.attachments or request.parent is not None:
            return "it has files, or is a call's child turn"
        fields: Mapping[str, Any] = request.model_dump(mode="json", exclude_defaults=True)
        options = {name: value for name, value in fields.items() if name in SubmitOptions.__annotations__}
        kept = {name: value for name, value in options.items() if name not in _ONLY_FIRST}
        made = self.operator.client.submit(
            request.session_id,
            request.user_message,
            request_key=f"{RESUBMIT_KEY}{turn.turn_id}",
            metadata={**(request.metadata or {}), "resubmit_of": turn.turn_id},
            **kept,
        )
        return "" if made.created else "it was submitted again before"


def _span_s(name: str, value: str) -> float:
    unit = _UNIT_S.get(value[-1:])
    if unit is None:
        raise InvalidInput("where", f"{name}={value!r} is not a span of time, such as 30s, 90m, 2h, 30d or 8w")
    return _number(name, value[:-1]) * unit


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not number >= 0:
        raise InvalidInput(name, f"{value!r} is not a number")
    return number

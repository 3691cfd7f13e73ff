"""The run of a bulk: one verb, applied to each turn that a filter selects. Running it again changes nothing twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from brainq.app.wiring import Wiring
from brainq.client.connection import connection_of, translate_unreachable
from brainq.client.lists import checked_filter, read_metadata_pairs
from brainq.client.options import SubmitOptions, TurnFilters
from brainq.client.paging import PAGE_SIZE
from brainq.client.retries import retry_step, steps_to_run
from brainq.contracts.act import NewAct
from brainq.contracts.answers import cells_away
from brainq.contracts.bulk import MAX_FAILURES, BulkFailure, BulkPlan, BulkReport, BulkState
from brainq.contracts.history import ListedTurn
from brainq.contracts.ids import PREFIX_BOUNDARY, new_turn_id
from brainq.contracts.turn import CONFIGURE_OPTIONS
from brainq.errors import BrainqError, CellUnreachable, InvalidInput, Unreachable
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.threads import KeptThread

if TYPE_CHECKING:
    from brainq.client.client import Client

logs = logger("brainq.client")
SAVE_EACH_S = 1.0
CATCH_UP_S = 1.0
SAVER_ENDS_S = 60.0
RESUBMIT_KEY = "resubmit-of-"
"""The beginning of the request keys of resubmitted turns, so that a turn is resubmitted once."""
_TEXTS = ("session", "state", "brain", "ending", "stop_reason", "text", "search", "strategy")
_ONLY_FIRST = {"request_key", "turn_id", "attachments", "greeting", "history", "metadata", "on_busy"}
_UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def read_where(where: str) -> TurnFilters:
    """Read the filters of `Client.turns` from text: `brain=shop state=parked tenant=acme older=2h`.

    session, state, brain, ending, stop_reason, text, search, strategy; tenant; failing=yes; unknown=yes; min_cost=0.5;
    tag; metadata.NAME=VALUE; older and newer: of how long ago they were accepted, in s, m, h, d or w.

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
        elif name in ("failing", "unknown") and value in ("yes", "true"):
            found[name] = True
        elif name == "min_cost":
            found["min_cost_usd"] = _number(name, value)
        elif name == "tag":
            tags.append(value)
        elif name.startswith("metadata."):
            pairs.append(f"{name.removeprefix('metadata.')}={value}")
        else:
            known = f"{', '.join(_TEXTS)}, tenant, older, newer, failing, unknown, min_cost, tag, metadata.NAME"
            raise InvalidInput("where", f"{name!r} is not a filter; the filters are {known}")
    if not found and not tags and not pairs:
        raise InvalidInput(
            "where", "name at least one filter, such as brain=shop; state=accepted selects all live and waiting turns"
        )
    filters = cast("TurnFilters", found | {"prompt_tags": tags, "metadata": read_metadata_pairs("where", pairs)})
    checked_filter(**filters)
    return filters


def within(filters: TurnFilters, prefixes: Sequence[str] | None) -> TurnFilters | None:
    """Return the filters, limited to sessions with one of these prefixes. Returns None if no session fits both."""
    wanted = filters.get("session_prefixes")
    if prefixes is None:
        return filters
    if wanted is None:
        return {**filters, "session_prefixes": tuple(prefixes)}
    both = {max(one, other, key=len) for one in wanted for other in prefixes if _begins(one, other)}
    return {**filters, "session_prefixes": tuple(sorted(both))} if both else None


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def first_report(plan: BulkPlan, prefixes: tuple[str, ...] | None) -> BulkReport:
    return BulkReport(id=new_turn_id(), plan=plan, started_at=datetime.now(UTC), session_prefixes=prefixes)


def next_due_s(due_s: float, now_s: float, rate: float) -> float:
    """Return when the next turn is due, at `rate` turns a second. Pure.

    The time that a turn itself takes counts towards the rate. A bulk that fell behind catches up by at most CATCH_UP_S,
    so that no burst follows an outage.
    """
    return max(due_s + 1 / rate, now_s - CATCH_UP_S)


@dataclass(kw_only=True, eq=False)
class BulkRun:
    """A run that applies one verb to many turns, at a rate, and publishes its report.

    prefixes: the prefixes of the sessions concerned, or None for all sessions.
    may_configure: the caller may choose what turns cost and reach, so turns may be resubmitted as they were.
    """

    client: Client
    report: BulkReport
    prefixes: tuple[str, ...] | None = None
    may_configure: bool = True
    on_progress: Callable[[BulkReport], None] = lambda report: None
    stopping: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Publish the first report. Raises Unreachable, and InvalidInput if the text is not a valid filter."""
        read_where(self.report.plan.where)
        plan = self.report.plan
        act = NewAct("bulk", f"{plan.verb} {self.report.id}", plan.by, plan.reason)
        connection_of(self.client).do(self._keep, "a dry run changes nothing" if plan.dry_run else act)

    def run(self) -> BulkReport:
        """Run the bulk to its end. A failure that stops the bulk is recorded in the report; a
        second run does the rest."""
        saver = KeptThread("brainq-bulk-saver", self._save_on)
        try:
            saver.ensure()
            state = self._run()
            self._note(state=state)
        except BrainqError as failure:
            self._note(state="failed", error=str(failure))
        except BaseException as failure:
            is_fault = isinstance(failure, Exception)
            self._note(state="failed" if is_fault else "stopped", error=type(failure).__name__ if is_fault else "")
            raise
        finally:
            self._note(ended_at=datetime.now(UTC))
            saver.stop(SAVER_ENDS_S)  # The saver's report is older than the final one, so stop it first.
            self._save()
        return self.report

    def _save_on(self, stopping: threading.Event) -> None:
        while not stopping.wait(SAVE_EACH_S):
            self._save()

    def _save(self) -> None:
        try:
            connection_of(self.client).do(self._keep, "a report of progress")
        except Exception as failure:
            logs.warning("the report of a bulk could not be saved", bulk=self.report.id, why=type(failure).__name__)

    def _keep(self, wiring: Wiring) -> str:
        """Publish the report, and stop the bulk if a stop was requested."""
        if wiring.state.bulks.save(self.report):
            self.stopping.set()
        return self.report.id

    def _run(self) -> BulkState:
        plan = self.report.plan
        filters = within(read_where(plan.where), self.prefixes)
        turns = [] if filters is None else list(islice(self._find_named(filters), plan.most))
        kinds = Counter(f"{turn.state}{f' of brain {turn.brain}' if turn.brain else ''}" for turn in turns)
        self._note(matched=len(turns), kinds=dict(kinds.most_common()))
        due_s = time.monotonic()
        for turn in () if plan.dry_run else turns:
            if self._wait_until(due_s):
                return "stopped"
            self._try(turn)
            due_s = next_due_s(due_s, time.monotonic(), plan.rate)
        return "stopped" if self.stopping.is_set() else "done"

    def _wait_until(self, due_s: float) -> bool:
        """Wait until the next turn is due. Returns True if the bulk must stop."""
        return self.stopping.wait(max(0.0, due_s - time.monotonic()))

    def _find_named(self, filters: TurnFilters) -> Iterator[ListedTurn]:
        """Find turns by brain. If there is only one brain, this includes turns that name no brain."""
        if filters.get("brain") != self.client.brains[0] or len(self.client.brains) > 1:
            return self._find(filters)
        anys = cast("TurnFilters", {name: value for name, value in filters.items() if name != "brain"})
        return (turn for turn in self._find(anys) if turn.brain in (None, filters.get("brain")))

    def _find(self, filters: TurnFilters) -> Iterator[ListedTurn]:
        """Find the selected turns in their present state, page by page."""
        after, seen = None, 0
        while not self.stopping.is_set():
            page = self.client.turns(limit=PAGE_SIZE, after=after, **filters)
            if away := cells_away(page):
                self._note(cells_away=away)
            seen += len(page)
            self.on_progress(self.report.model_copy(update={"matched": seen}))
            yield from page
            if len(page) < PAGE_SIZE:
                return
            after = page[-1].turn_id

    def _try(self, turn: ListedTurn) -> None:
        report = self.report
        try:
            with translate_unreachable():
                why = BulkAct(self.client, report.plan, self.may_configure).do(turn)
        except BrainqError as failure:
            if isinstance(failure, Unreachable) and not isinstance(failure, CellUnreachable):
                raise  # Stop the bulk, because the service is unreachable for every turn.
            failed = (*report.failed, BulkFailure(turn_id=turn.turn_id, why=str(failure)))[:MAX_FAILURES]
            self._note(failed=failed, failures=report.failures + 1)
        else:
            skipped = {**report.skipped, why: report.skipped.get(why, 0) + 1} if why else report.skipped
            self._note(skipped=skipped, done=report.done + (not why))
        self.on_progress(self.report)

    def _note(self, **changes: object) -> None:
        """Replace the report as a whole, because another thread may read it at any time."""
        self.report = self.report.model_copy(update=changes)


@dataclass(frozen=True, slots=True)
class BulkAct:
    """One verb, applied to one turn."""

    client: Client
    plan: BulkPlan
    may_configure: bool

    def do(self, turn: ListedTurn) -> str:
        """Apply the verb. Returns the reason why nothing had to be done, or "" if it was done."""
        match self.plan.verb:
            case "cancel":
                word = self.client.cancel(turn.session_id, turn.turn_id, self.plan.reason)
                return "the turn has ended" if word == "ended" else ""
            case "retry":
                return self._retry(turn)
            case "resubmit":
                return self._resubmit(turn)
            case "approve" | "deny":
                return self._decide(turn)

    def _decide(self, turn: ListedTurn) -> str:
        asked = [each for each in self.client.handle(turn.turn_id).approvals() if each.state == "pending"]
        for approval in asked:
            if self.plan.verb == "approve":
                self.client.approve(approval.id, by=self.plan.by, args_hash=approval.args_hash)
            else:
                self.client.deny(approval.id, self.plan.reason, by=self.plan.by)
        return "" if asked else "the turn has no pending approval"

    def _retry(self, turn: ListedTurn) -> str:
        if not turn.dead_steps:
            return "the turn has no dead finalizer step"
        connection = connection_of(self.client)
        for step in steps_to_run(connection, turn.turn_id):
            tried = retry_step(connection, turn.session_id, turn.turn_id, step)
            if tried.word == "failed":
                raise BrainqError(f"{tried.name} failed again: {tried.error}")
        return ""

    def _resubmit(self, turn: ListedTurn) -> str:
        if turn.ending is None or turn.ending.value == "completed":
            return "the turn has not failed"
        request = self.client.handle(turn.turn_id).request()
        if request.attachments or request.parent is not None:
            return "the turn has files, or was started by a call"
        fields: Mapping[str, Any] = request.model_dump(mode="json", exclude_defaults=True)
        kept = {name: fields[name] for name in fields if name in SubmitOptions.__annotations__.keys() - _ONLY_FIRST}
        if not self.may_configure and not CONFIGURE_OPTIONS.isdisjoint(kept):
            return "the turn has options that need the verb `configure`"
        made = self.client.submit(
            request.session_id,
            request.user_message,
            request_key=f"{RESUBMIT_KEY}{turn.turn_id}",
            metadata={**(request.metadata or {}), "resubmit_of": turn.turn_id},
            **kept,
        )
        return "" if made.created else "the turn was already resubmitted"


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

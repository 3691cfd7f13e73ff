"""TurnRuntimeState and TurnBudget: the shared state and the budget of one turn, for any process that has its ids."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from brainq.app.wiring import Wiring
from brainq.client.connection import InSession, connection_of
from brainq.client.waiting import cancel_turn
from brainq.contracts.call import CallReport, ToolTraceEntry
from brainq.contracts.claim import CallClaim, CallRef, NoClaim
from brainq.contracts.message import Message
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import TraceStatus
from brainq.contracts.turn import Citation, Limits
from brainq.contracts.view import BudgetSnapshot
from brainq.errors import SetupError, TurnNotFound

if TYPE_CHECKING:
    from brainq.client.client import Client


HARNESS_TIMEOUT_S = 120.0


class TurnBudget(InSession):
    """One turn's budget. Claims are atomic over the whole fleet: none is ever granted past its maximum.

    A claim id makes a claim repeatable: the same id is granted again without being charged twice. Without an id every
    claim is charged. `TurnBudget(client, session_id, turn_id)` and `client.state(...).budget` attach to a budget.
    """

    def __init__(self, client: Client, session_id: str, turn_id: str) -> None:
        self._connection = connection_of(client)
        self.session_id = session_id
        self.turn_id = turn_id

    @classmethod
    def create(
        cls,
        timeout_s: float = HARNESS_TIMEOUT_S,
        max_steps: int = 6,
        max_tool_calls: int | None = 6,
        max_reflections: int = 4,
        max_context_tokens: int = 200_000,
        *,
        max_total_tokens: int | None = None,
        max_cost_usd: float | None = None,
        client: Client,
        session_id: str,
        turn_id: str,
    ) -> Self:
        """Make a budget whose deadline is `timeout_s` seconds from now.

        The defaults are those of a single-process harness: 6 steps, 6 tool calls and 4 reflections in two minutes. A
        brain's own are higher: see `Limits`. `max_tool_calls=None` means `max_steps`. Raises SetupError if this turn
        has a budget: attach to it with `TurnBudget(client, session_id, turn_id)`.
        """
        limits = Limits(
            timeout_s=timeout_s,
            max_steps=max_steps,
            max_tool_calls=max_tool_calls,
            max_reflections=max_reflections,
            max_context_tokens=max_context_tokens,
            max_total_tokens=max_total_tokens,
            max_cost_usd=max_cost_usd,
        )
        is_new = connection_of(client).do(
            lambda wiring: wiring.state.turns.create_budget(session_id, turn_id, limits),
            "a worker's own move",
            session=session_id,
            settles=True,
        )
        if not is_new:
            raise SetupError(
                f"turn {turn_id!r} already has a budget; attach to it with TurnBudget(client, session_id, turn_id)"
            )
        return cls(client, session_id, turn_id)

    @property
    def remaining_s(self) -> float:
        """The seconds until the deadline, by Redis time; 0 once it has passed."""
        return self._snapshot().remaining_s

    @property
    def is_expired(self) -> bool:
        return self._snapshot().expired

    def tool_deadline(self, cap_s: float) -> float:
        """Return when a call with this cap must end: the cap or the turn's deadline, whichever is sooner. The instant
        is one of this process's `time.monotonic()`, counted from a reading of Redis time."""
        return time.monotonic() + self.per_tool_remaining_s(cap_s)

    def per_tool_remaining_s(self, cap_s: float) -> float:
        """Return the seconds that one call may take: `cap_s`, but not past the turn's deadline.

        The result may be 0, because a call that outlives its turn can only be late.
        """
        return max(0.0, min(cap_s, self.remaining_s))

    def claim_step(self, claim_id: str = "") -> bool:
        """Claim one more step. Returns False if none is left."""
        return self._claim("steps", claim_id)

    def claim_tool_call(self, claim_id: str = "") -> bool:
        """Claim one more tool call. Returns False if none is left."""
        return self._claim("tool_calls", claim_id)

    def claim_reflection(self, claim_id: str = "") -> bool:
        """Claim one more reflection. Returns False if none is left."""
        return self._claim("reflections", claim_id)

    def add_tokens(self, usage: TokenUsage, cost_usd: float | None = None, spend_id: str = "") -> bool:
        """Add the usage of a model call. Returns False if this `spend_id` was added before."""
        return self._do(
            lambda wiring: wiring.state.turns.spend_budget(self.session_id, self.turn_id, usage, cost_usd, spend_id),
            "a worker's own move",
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the fields `remaining_s expired steps_used steps_max tool_calls_used tool_calls_max reflections_used
        reflections_max max_context_tokens tokens_used tokens_max cost_usd cost_max_usd`."""
        return self._snapshot().model_dump()

    def _snapshot(self) -> BudgetSnapshot:
        return self._read(lambda wiring: wiring.state.turns.budget(self.session_id, self.turn_id))

    def _claim(self, kind: str, claim_id: str) -> bool:
        word, *_ = self._do(
            lambda wiring: wiring.state.turns.claim_budget(self.session_id, self.turn_id, kind, [claim_id]),
            "a worker's own move",
        )
        return word in ("CLAIMED", "ALREADY")


@dataclass(frozen=True, slots=True)
class CitationAccumulator:
    """The citations and rendered files of a turn's tools, without duplicates, in order of arrival."""

    local: tuple[Citation, ...]
    web: tuple[Citation, ...]
    rendered_paths: tuple[str, ...]

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, str]]) -> CitationAccumulator:
        cited: dict[str, dict[str, Citation]] = {"local": {}, "web": {}}
        for row in rows:
            if row["kind"] in cited:
                citation = Citation(source=row["source"], title=row.get("title", ""), quote=row.get("quote", ""))
                cited[row["kind"]].setdefault(row["source"], citation)
        rendered = dict.fromkeys(row["source"] for row in rows if row["kind"] == "rendered")
        return cls(tuple(cited["local"].values()), tuple(cited["web"].values()), tuple(rendered))


@dataclass(frozen=True, slots=True)
class RuntimeSnapshot:
    """All values of a TurnRuntimeState at one moment. `budget` has the fields of `TurnBudget.snapshot`."""

    usage: TokenUsage
    citations: CitationAccumulator
    tool_trace: tuple[ToolTraceEntry, ...]
    tool_results: dict[str, str]
    blocked_tool_names: frozenset[str]
    validation_repair_counts: dict[str, int]
    repairs_by_tool: dict[str, int]
    final_text: str
    last_agent_message: str
    timed_out: bool
    prompt_render_hash: str
    context_was_compacted: bool
    is_accepting_writes: bool
    budget: dict[str, Any]


class TurnRuntimeState(InSession):
    """The accounting, citations, trace and write gate of one turn.

    The object stores no values: each property is read from Redis, and each change is one of the atomic scripts that
    workers use. Every read raises TurnNotFound if the turn is not in Redis, or no longer.
    """

    def __init__(self, client: Client, session_id: str, turn_id: str) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.budget = TurnBudget(client, session_id, turn_id)
        self._connection = connection_of(client)

    @property
    def usage(self) -> TokenUsage:
        return self._read(lambda wiring: wiring.state.runtime.usage(self.session_id, self.turn_id))

    @property
    def input_tokens(self) -> int:
        return self.usage.input_tokens

    @property
    def output_tokens(self) -> int:
        return self.usage.output_tokens

    @property
    def cache_read_tokens(self) -> int:
        return self.usage.cache_read_tokens

    @property
    def cache_creation_tokens(self) -> int:
        return self.usage.cache_creation_tokens

    def add_tokens(self, usage: TokenUsage, cost_usd: float | None = None, spend_id: str = "") -> bool:
        """Add the usage of a model call. Returns False, and adds nothing, if this `spend_id` was added before."""
        return self.budget.add_tokens(usage, cost_usd, spend_id)

    @property
    def citations(self) -> CitationAccumulator:
        rows = self._read(lambda wiring: wiring.state.runtime.sources(self.session_id, self.turn_id))
        return CitationAccumulator.of_rows(rows)

    @property
    def tool_trace(self) -> tuple[ToolTraceEntry, ...]:
        """Every call, in the order the model made them."""
        self._fields()
        return self._read(lambda wiring: wiring.state.calls.trace(self.session_id, self.turn_id))

    @property
    def tool_results(self) -> dict[str, str]:
        """Call id -> the text the model reads as its result."""
        return self._read(lambda wiring: wiring.state.runtime.results(self.session_id, self.turn_id))

    @property
    def blocked_tool_names(self) -> frozenset[str]:
        return self._read(lambda wiring: wiring.state.runtime.blocked(self.session_id, self.turn_id))

    @property
    def validation_repair_counts(self) -> dict[str, int]:
        """Call id -> the number of repairs of its arguments, including failed ones of a denied call."""
        return {entry.call_id: entry.repairs for entry in self.tool_trace if entry.repairs}

    @property
    def repairs_by_tool(self) -> dict[str, int]:
        """Tool -> the number of repairs of its calls' arguments, including those of denied calls."""
        counts: dict[str, int] = {}
        for entry in self.tool_trace:
            if entry.repairs:
                counts[entry.tool] = counts.get(entry.tool, 0) + entry.repairs
        return counts

    @property
    def final_text(self) -> str:
        return self._field("text")

    @property
    def last_agent_message(self) -> str:
        """The newest text of the model: that of the present reply, or of the last one that had text."""
        return self._read(lambda wiring: wiring.state.runtime.newest_text(self.session_id, self.turn_id))

    @property
    def timed_out(self) -> bool:
        return self._field("ending") == "timed_out"

    @property
    def prompt_render_hash(self) -> str:
        return self._field("prompt_hash")

    @property
    def context_was_compacted(self) -> bool:
        return self._field("compacted") == "1"

    @property
    def is_accepting_writes(self) -> bool:
        """False once the write gate is closed: nothing changes the turn after that."""
        fields = self._fields()
        return fields.get("state") in ("active", "parked") and fields.get("gate") != "shut"

    def snapshot(self) -> RuntimeSnapshot:
        """Return all values, with one read each."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(RuntimeSnapshot)}
        values["budget"] = self.budget.snapshot()
        return RuntimeSnapshot(**values)

    def close_writes(self, *, by: str = "") -> bool:
        """Close the write gate and cancel the turn. No result can enter the turn afterwards. Returns True if the gate
        was open.

        by: the name of the caller, for the turn's result.
        """

        def close(wiring: Wiring) -> bool:
            was_open = wiring.state.runtime.shut_gate(self.session_id, self.turn_id, by)
            # Repeat the request, because a process that closed the gate may have died before it made the request.
            if was_open or self._is_live():
                reason = f"its writes were closed by {by or 'a client'}"
                cancel_turn(wiring, self.session_id, self.turn_id, reason)
            return was_open

        return self._do(close, "a worker's own move")

    def set_trace_running(self, call_id: str, attempt: int, owner: str) -> CallClaim | str:
        """Mark a dispatched call as running for one owner. Returns the claim, or the reason why it was refused."""
        ref = CallRef(self.session_id, self.turn_id, call_id)
        claim = self._do(lambda wiring: wiring.state.calls.claim(ref, attempt, owner), "a worker's own move")
        return claim.why if isinstance(claim, NoClaim) else claim

    def mark_trace_timed_out(self, claim: CallClaim, message: Message, latency_ms: int = 0) -> bool:
        """Mark a running call as timed out. A later result of its function cannot enter the turn."""
        return self._settle(claim, TraceStatus.TIMED_OUT, message, latency_ms)

    def complete_trace(
        self,
        claim: CallClaim,
        message: Message,
        *,
        status: TraceStatus = TraceStatus.COMPLETED,
        latency_ms: int = 0,
        retryable: bool = False,
    ) -> bool:
        """Mark a running call as completed, or set another `status`, and add its result to the turn, in one script.

        retryable: the call failed and may succeed later. The trace shows it.

        Returns False if it was too late and nothing changed.
        """
        return self._settle(claim, status, message, latency_ms, retryable)

    def _settle(
        self, claim: CallClaim, status: TraceStatus, message: Message, latency_ms: int, retryable: bool = False
    ) -> bool:
        report = CallReport(status, message, latency_ms=latency_ms, retryable=retryable)
        reply = self._do(lambda wiring: wiring.state.calls.settle(claim, report), "a worker's own move")
        return reply.word == "SETTLED"

    def _is_live(self) -> bool:
        try:
            return self._field("state") in ("active", "parked")
        except TurnNotFound:
            return False

    def _field(self, name: str) -> str:
        return self._fields().get(name, "")

    def _fields(self) -> Mapping[str, str]:
        return self._read(lambda wiring: wiring.state.runtime.fields(self.session_id, self.turn_id))

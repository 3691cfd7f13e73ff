"""TurnRuntimeState and TurnBudget: one turn's shared state and its budget, from any process, by its ids."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

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
from brainq.wiring import Wiring

if TYPE_CHECKING:
    from brainq.client.client import Client


HARNESS_TIMEOUT_S = 120.0


class TurnBudget(InSession):
    """One turn's budget. Claims are atomic over the whole fleet: none is ever granted past its maximum.

    A claim id makes a claim repeatable: the same id is granted again without paying twice. Without one, every
    claim pays. `TurnBudget(client, session_id, turn_id)`, or `client.state(...).budget`, attaches to one that is there.
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
            find=lambda cells: cells.settle(session_id),
        )
        if not is_new:
            raise SetupError(
                f"turn {turn_id!r} has a budget; attach to it with TurnBudget(client, session_id, turn_id)"
            )
        return cls(client, session_id, turn_id)

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, by Redis time; 0 when it has passed."""
        return self._snapshot().remaining_s

    @property
    def is_expired(self) -> bool:
        return self._snapshot().expired

    def tool_deadline(self, cap_s: float) -> float:
        """When a call with this cap must end: the cap or the turn's deadline, whichever is sooner, as an instant
        of this process's `time.monotonic()`, counted on from a reading of Redis time."""
        return time.monotonic() + self.per_tool_remaining_s(cap_s)

    def per_tool_remaining_s(self, cap_s: float) -> float:
        """Seconds one call may take: `cap_s`, but never reaching past the turn's deadline.

        There is no floor under what the deadline leaves: a call that outlived its turn could only be late.
        """
        return max(0.0, min(cap_s, self.remaining_s))

    def claim_step(self, claim_id: str = "") -> bool:
        """True when one more step may be taken."""
        return self._claim("steps", claim_id)

    def claim_tool_call(self, claim_id: str = "") -> bool:
        """True when one more tool call may be made."""
        return self._claim("tool_calls", claim_id)

    def claim_reflection(self, claim_id: str = "") -> bool:
        """True when one more reflection may be made."""
        return self._claim("reflections", claim_id)

    def add_tokens(self, usage: TokenUsage, cost_usd: float | None = None, spend_id: str = "") -> bool:
        """Add what a model call used; False when this `spend_id` was added before."""
        return self._do(
            lambda wiring: wiring.state.turns.spend_budget(self.session_id, self.turn_id, usage, cost_usd, spend_id),
            "a worker's own move",
        )

    def snapshot(self) -> dict[str, Any]:
        """`remaining_s expired steps_used steps_max tool_calls_used tool_calls_max reflections_used
        reflections_max`, and ours: `max_context_tokens tokens_used tokens_max cost_usd cost_max_usd`."""
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
    """What the turn's tools cited and rendered, without repeats, in the order it came."""

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
    """Everything that a TurnRuntimeState has, read at one moment; `budget` as `TurnBudget.snapshot` has it."""

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
    """Accounting, citations, trace and gate of one turn.

    Nothing is kept here: every property is read from the truth, and every move is one atomic script.
    Its moves are the workers' own, and its reads theirs or of what they wrote. Every read raises TurnNotFound for a
    turn that Redis does not know, or knows no more.
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
        """Add what a model call used; the same `spend_id` again adds nothing and answers False."""
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
        """Call id -> how many repairs its arguments needed, or were tried before it was denied."""
        return {entry.call_id: entry.repairs for entry in self.tool_trace if entry.repairs}

    @property
    def repairs_by_tool(self) -> dict[str, int]:
        """Tool -> how many repairs the arguments of its calls needed, those of denied calls included."""
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
        """The newest text of the model: of the reply that is being written, else of the last that had any."""
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
        """False from the moment the write gate is shut: nothing that comes later changes the turn."""
        fields = self._fields()
        return fields.get("state") in ("active", "parked") and fields.get("gate") != "shut"

    def snapshot(self) -> RuntimeSnapshot:
        """All of it, in a read each."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(RuntimeSnapshot)}
        values["budget"] = self.budget.snapshot()
        return RuntimeSnapshot(**values)

    def close_writes(self, *, by: str = "") -> bool:
        """Shut the write gate; True when it was open. No result enters the turn any more, so it is cancelled, too: it
        ends as any cancelled turn does, and not at its deadline only.

        by   who shuts it: the turn's result says so
        """

        def close(wiring: Wiring) -> bool:
            was_open = wiring.state.runtime.shut_gate(self.session_id, self.turn_id, by)
            if was_open or self._is_live():  # again, where who shut it died before it asked
                reason = f"its writes were closed by {by or 'a client'}"
                cancel_turn(wiring, self.session_id, self.turn_id, reason)
            return was_open

        return self._do(close, "a worker's own move")

    def set_trace_running(self, call_id: str, attempt: int, owner: str) -> CallClaim | str:
        """dispatched -> running, for one owner; or why not."""
        ref = CallRef(self.session_id, self.turn_id, call_id)
        claim = self._do(lambda wiring: wiring.state.calls.claim(ref, attempt, owner), "a worker's own move")
        return claim.why if isinstance(claim, NoClaim) else claim

    def mark_trace_timed_out(self, claim: CallClaim, message: Message, latency_ms: int = 0) -> bool:
        """running -> timed_out. What the call's function returns later cannot enter the turn."""
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
        """running -> completed, or another `status`, and its result into the turn, in one script.

        retryable   it failed, and the same call may succeed later: the trace says so

        False: too late, nothing changed.
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

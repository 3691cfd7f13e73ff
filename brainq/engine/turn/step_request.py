"""The request of one step: tools, messages, input that arrived while the turn ran, the bytes of attachments, and the
worst-case cost to reserve."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from brainq.contracts.claim import StepStart, TurnStart
from brainq.contracts.message import Message
from brainq.contracts.model import Price, TokenUsage
from brainq.contracts.tool import ToolSpec
from brainq.contracts.turn import Limits
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.asking.reply_size import MAX_REPLY_BYTES
from brainq.engine.models.costs import worst_cost_usd
from brainq.engine.tools.context_pack import opening_memory, opening_pack
from brainq.engine.turn.begin import StepSetting
from brainq.engine.turn.client_tools import client_specs
from brainq.engine.turn.prompt.compaction import ContextTracker
from brainq.engine.turn.prompt.request_messages import (
    TurnDrain,
    TurnMailbox,
    TurnPreparation,
    TurnPreparer,
    input_messages,
    readiness_word,
)
from brainq.engine.turn.prompt.tool_selection import SemanticToolSelector, selection_context
from brainq.engine.turn.reflection import PREFIXES
from brainq.runtime.text.estimate import estimate_tools, with_sizes

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.blobs import Blobs

MAX_CACHED_BYTES = 64_000_000
CACHED_S = 120.0  # content that SQL has dropped (pruned or redacted) is not shown for longer than this


class BlobCache:
    """A cache of attachments' bytes, which drops the least recently used ones first. Thread-safe; one per process."""

    def __init__(
        self, blobs: Blobs, most_bytes: int = MAX_CACHED_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._blobs = blobs
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        # The session is part of the key, so that no session can read the file of another.
        self._kept: OrderedDict[tuple[str, str], tuple[float, bytes]] = OrderedDict()
        self._size = 0

    def blobs_for(self, session_id: str, messages: Iterable[Message]) -> Mapping[str, bytes]:
        """Return the bytes of the messages' attachments by their sha256, without those that SQL no longer has. Raises
        what SQL raises."""
        wanted = {one.sha256 for message in messages for one in message.attachments}
        if not wanted:
            return {}
        found = self._cached(session_id, wanted)
        if missing := wanted - found.keys():
            read = self._blobs.load(session_id, missing)
            self._keep(session_id, read)
            found |= read
        return found

    def _cached(self, session_id: str, hashes: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        with self._lock:
            for sha256 in hashes:
                kept = self._kept.get((session_id, sha256))
                if kept is not None and self._clock() < kept[0]:
                    self._kept.move_to_end((session_id, sha256))
                    found[sha256] = kept[1]
        return found

    def _keep(self, session_id: str, read: Mapping[str, bytes]) -> None:
        until = self._clock() + CACHED_S
        with self._lock:
            for sha256, data in read.items():
                before = self._kept.pop((session_id, sha256), None)
                self._kept[session_id, sha256] = (until, data)
                self._size += len(data) - (0 if before is None else len(before[1]))
            while self._size > self._most_bytes:
                _, (_, data) = self._kept.popitem(last=False)
                self._size -= len(data)


@dataclass(frozen=True, slots=True)
class StepRequest:
    """The request of one step, and the facts with which the step begins."""

    setting: StepSetting
    messages: tuple[Message, ...]
    specs: tuple[ToolSpec, ...]
    begin: StepStart


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """One prepared step.

    chosen           the brain's tools that the model sees
    added            the client's tools, which are all shown
    drain            the input that the step reads
    inputs           the messages of that input
    tools_estimate   the estimated tokens of the tools' schemas
    """

    preparation: TurnPreparation
    chosen: tuple[ToolSpec, ...]
    added: tuple[ToolSpec, ...]
    tools_estimate: int
    tracker: ContextTracker
    drain: TurnDrain
    inputs: tuple[Message, ...]

    @property
    def estimate(self) -> int:
        return self.preparation.estimate + self.tools_estimate


@dataclass(eq=False)
class StepPreparer:
    """The preparation of steps. It reads nothing but its arguments."""

    brain: Brain
    selector: SemanticToolSelector | None
    _tool_tokens: dict[str, int] = field(default_factory=dict[str, int])

    def prepare(self, view: TurnView, setting: StepSetting) -> PreparedStep:
        """Prepare the turn's next step from its view."""
        drain = TurnMailbox(view.inputs).drain()
        inputs = input_messages(drain, view.request.turn_id, view.step + 1)
        chosen = self._tools(view, setting.options.tool_choice)
        added = client_specs(self.brain, view.request)
        tools_estimate = self._tools_estimate(chosen) + estimate_tools(added)
        most = setting.limits.max_context_tokens
        tracker = ContextTracker.from_state(most, view.known)
        preparation = TurnPreparer().prepare(
            view.request,
            with_sizes(inputs, view.history),
            system_prompt=setting.system_prompt,
            provider=setting.provider.name,
            model=setting.model,
            today=datetime.now(UTC),
            max_context_tokens=most,
            memory_text=opening_memory(view.opening).text,
            pack_json=opening_pack(view.opening),
            thinking_prefix=PREFIXES[self.brain.thinking],
            tools_estimate=tools_estimate,
            ratio=tracker.ratio,
        )
        return PreparedStep(preparation, chosen, added, tools_estimate, tracker, drain, inputs)

    def _tools(self, view: TurnView, named: str | None) -> tuple[ToolSpec, ...]:
        """Return the brain's tools that the turn's model sees. They are chosen before the first step and stay the same,
        except that a tool which the model must call is added."""
        specs = tuple(self.brain.tools.specs.values())
        if self.selector is None or len(specs) <= self.selector.max_tools:
            return specs
        if view.shown:
            return tuple(spec for spec in specs if spec.name in view.shown or spec.name == named)
        context = selection_context(view.history, view.request.turn_id)
        selected = self.selector.select(view.request.user_message, specs, context=context)
        forced = self.brain.tools.get(named) if named else None
        return selected if forced is None or forced.spec in selected else (*selected, forced.spec)

    def _tools_estimate(self, specs: Sequence[ToolSpec]) -> int:
        """Return what `estimate_tools` returns. Each tool of the brain is measured only once, because its schema does
        not change."""
        known = self._tool_tokens
        for spec in specs:
            if spec.name not in known:
                known[spec.name] = estimate_tools((spec,))
        return sum(known[spec.name] for spec in specs)


def step_request(
    view: TurnView, setting: StepSetting, step: PreparedStep, price: Price, all_tools: int, start: TurnStart | None
) -> StepRequest:
    """Return the request of the step.

    all_tools   the number of the brain's tools, some of which may not have been chosen for this turn
    start       what begins the turn, if it has not begun
    """
    # If the length of the reply is limited, its worst case is reserved as well.
    worst = TokenUsage(
        input_tokens=step.tracker.tokens(step.estimate), output_tokens=setting.limits.max_output_tokens or 0
    )
    begin = StepStart(
        estimate=step.estimate,
        most_tokens=worst.total,
        max_usd=worst_cost_usd(setting.provider, setting.model, worst, price),
        shown=() if len(step.chosen) == all_tools else tuple(spec.name for spec in step.chosen),
        drained=len(view.inputs),
        inputs=step.inputs,
        readiness=readiness_word(step.drain),
        full=step.tracker.warning_percent(step.estimate),
        turn=start,
    )
    return StepRequest(setting, step.preparation.messages, (*step.chosen, *step.added), begin)


def turn_allowance(view: TurnView, limits: Limits, price: Price, reply_bytes: int = MAX_REPLY_BYTES) -> Allowance:
    """Return how many tokens and how much money the turn may still use."""
    tokens, usd = limits.max_total_tokens, limits.max_cost_usd
    return Allowance(
        price,
        None if tokens is None else tokens - view.usage.total,
        None if usd is None else usd - view.cost_usd,
        reply_bytes,
    )

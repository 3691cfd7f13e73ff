"""What a step sends to the model, before it is known whether it fits: tools, input that came meanwhile, messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from brainq.brain import Brain
from brainq.contracts.message import Message
from brainq.contracts.tool import ToolSpec
from brainq.contracts.view import TurnView
from brainq.text.estimate import estimate_tools, with_sizes
from brainq.tools.opening import opened_memory, opened_pack
from brainq.turn.begin import Setting
from brainq.turn.client_tools import client_specs
from brainq.turn.context.mailbox import TurnDrain, TurnMailbox, messages_of
from brainq.turn.context.preparer import TurnPreparation, TurnPreparer
from brainq.turn.context.selection import SemanticToolSelector, context_of
from brainq.turn.context.tracker import ContextTracker
from brainq.turn.thinking import PREFIXES


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """One step, prepared.

    chosen, added    the brain's tools that the model sees, and the client's, which are all shown
    drain            the input that it reads; `inputs` are the messages which that becomes
    tools_estimate   tokens that the tools' schemas take
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


class StepPreparer:
    """Prepares steps. Reads nothing but what it is given."""

    def __init__(
        self, brain: Brain, selector: SemanticToolSelector | None, preparer: TurnPreparer | None = None
    ) -> None:
        self._brain = brain
        self._selector = selector
        self._preparer = preparer or TurnPreparer()
        self._tool_tokens: dict[str, int] = {}

    def prepare(self, view: TurnView, setting: Setting) -> PreparedStep:
        """The turn's next step, as far as `view` knows the turn."""
        drain = TurnMailbox(view.inputs).drain()
        inputs = messages_of(drain, view.request.turn_id, view.step + 1)
        chosen = self._tools(view, setting.options.tool_choice)
        added = client_specs(self._brain, view.request)
        tools_estimate = self._tools_estimate(chosen) + estimate_tools(added)
        most = setting.limits.max_context_tokens
        tracker = ContextTracker.of(most, view.known)
        preparation = self._preparer.prepare(
            view.request,
            with_sizes(inputs, view.history),
            system_prompt=setting.system_prompt,
            provider=setting.provider.name,
            model=setting.model,
            today=datetime.now(UTC),
            max_context_tokens=most,
            memory_text=opened_memory(view.opening).text,
            pack_json=opened_pack(view.opening),
            thinking_prefix=PREFIXES[self._brain.thinking],
            tools_estimate=tools_estimate,
            ratio=tracker.ratio,
        )
        return PreparedStep(preparation, chosen, added, tools_estimate, tracker, drain, inputs)

    def _tools(self, view: TurnView, named: str | None) -> tuple[ToolSpec, ...]:
        """The tools this turn's model sees: chosen before the first step, and the same ones at each later one; and the
        one that it is told to call."""
        specs = tuple(self._brain.tools.specs.values())
        if self._selector is None or len(specs) <= self._selector.max_tools:
            return specs
        if view.shown:
            return tuple(spec for spec in specs if spec.name in view.shown or spec.name == named)
        context = context_of(view.history, view.request.turn_id)
        selected = self._selector.select(view.request.user_message, specs, context=context)
        told = self._brain.tools.get(named) if named else None
        return selected if told is None or told.spec in selected else (*selected, told.spec)

    def _tools_estimate(self, specs: Sequence[ToolSpec]) -> int:
        """`estimate_tools`, each tool of the brain looked at once: their schemas do not change."""
        known = self._tool_tokens
        for spec in specs:
            if spec.name not in known:
                known[spec.name] = estimate_tools((spec,))
        return sum(known[spec.name] for spec in specs)

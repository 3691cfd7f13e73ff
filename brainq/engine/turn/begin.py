"""The start of a turn: callbacks, the event log, and the session's history. It also chooses the settings of the next
step: model, prompt and options."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.brain import PromptTemplate
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.claim import TurnClaim, TurnStart
from brainq.contracts.conversation import EARLIER_TURN_PREFIX, EMPTY_CONVERSATION, opening_messages
from brainq.contracts.message import Message
from brainq.contracts.model_options import NO_OPTIONS, TOOL_CHOICES, ModelOptions, TurnOptions, as_model_options
from brainq.contracts.turn import Limits, TurnRequest
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain, ForStep, StepChoice, StepInfo
from brainq.engine.brain.checks import checked_model, checked_options
from brainq.engine.brain.middleware import run_hooks
from brainq.engine.models.providers import Provider, is_same_service, resolve_model
from brainq.engine.turn.client_tools import turn_specs
from brainq.engine.turn.owned_turn import OwnedTurn
from brainq.engine.turn.prompt.request_messages import render_hash
from brainq.engine.turn.reflection import PREFIXES
from brainq.errors import InvalidInput
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.spans import note_prompt_hash
from brainq.runtime.text.estimate import with_sizes
from brainq.runtime.text.failures import failure_text

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.turns import Turns

log = logger("brainq.turn")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
NO_CHOICE = StepChoice()
_UNFORCED_CHOICES = (None, "auto", "none")
READY_LOG_EVERY_S = 60.0  # how often a process logs that turns start without a readiness flag
TURNS_FROM_SQL = 50  # how many turns of a session are read back after Redis has dropped its history


def render_prompt(template: PromptTemplate, info: TurnInfo) -> str:
    """Return the text of the template with its placeholders filled in. Other braces (JSON, code) are kept.

    Raises InvalidInput if neither the turn nor its metadata has a value for a placeholder.
    """
    known: dict[str, object] = {
        **(info.metadata or {}),
        "session_id": info.session_id,
        "turn_number": info.turn_number,
        "prompt_version": info.prompt_version or template.version,
    }

    def filled(place: re.Match[str]) -> str:
        if place[1] not in known:
            raise InvalidInput(
                f"prompts[{template.id!r}]",
                f"nothing fills {place[0]}; send it in the turn's metadata, or use one of "
                "{session_id} {turn_number} {prompt_version}",
            )
        return str(known[place[1]])

    return _PLACEHOLDER.sub(filled, template.text)


def brain_step_choice(for_step: ForStep, view: TurnView, info: TurnInfo) -> StepChoice:
    """Return the model and options that the brain's `for_step` chooses for the turn's next step. Raises InvalidInput if
    that function fails."""
    step = StepInfo(
        turn=info,
        step=view.step + 1,
        calls=sum(len(message.calls) for message in view.own_messages),
        failed_calls=view.failed_calls,
        usage=view.usage,
        cost_usd=view.cost_usd,
        model=view.request.model,
    )
    try:
        choice = for_step(step)
    except Exception as failure:
        raise InvalidInput("for_step", f"it raised {failure_text(failure)}") from failure
    if choice is None:
        return NO_CHOICE
    if not isinstance(choice, StepChoice):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("for_step", f"it must return a StepChoice or None, got {type(choice).__name__}")
    return choice


def check_tool_choice(options: TurnOptions, tools: Iterable[str]) -> None:
    """Raise InvalidInput if `tool_choice` names a tool that the turn does not have."""
    choice = options.tool_choice
    if choice is None or choice in TOOL_CHOICES:
        return
    known = sorted(tools)
    if choice not in known:
        close = get_close_matches(choice, known, 1)
        meant = f"did you mean {close[0]!r}?" if close else f"the turn's tools are {', '.join(known) or 'none'}"
        raise InvalidInput("options.tool_choice", f"there is no tool {choice!r}; {meant}")


def step_options(step: int, brain: ModelOptions, turn: TurnOptions, chosen: ModelOptions = NO_OPTIONS) -> ModelOptions:
    """Return the options of a step. Steps are counted from 1.

    The turn's options override the brain's, and `chosen`, which was set for this step alone, overrides both. A forced
    tool call applies to the first step only, unless `chosen` has it: a turn whose model must call a tool at every step
    could never answer.
    """
    options = as_model_options(turn).merged_over(brain)
    if step > 1 and options.tool_choice not in _UNFORCED_CHOICES:
        options = options.model_copy(update={"tool_choice": None})
    return chosen.merged_over(options)


@dataclass(frozen=True, slots=True)
class StepSetting:
    """The model that a step calls, with its prompt, options and limits.

    options       the options of this step
    earlier       the number of the session's earlier turns that only SQL still has
    prompt_hash   the hash of the prompt, as `render_hash` computes it
    """

    provider: Provider
    model: str
    system_prompt: str
    info: TurnInfo
    limits: Limits
    options: ModelOptions = NO_OPTIONS
    earlier: int = 0
    prompt_hash: str = ""


def begin_history(view: TurnView, start: TurnStart) -> None:
    """Give the view the history that it has once the turn has begun with `start`."""
    # A review has a history of its own, which begins here.
    before = EMPTY_CONVERSATION if view.request.kind == "review" else view.history
    view.history = with_sizes(start.messages, before)


@dataclass(eq=False)
class TurnStarter:
    """The start of turns. Every part may run twice without harm.

    log_user     records the user's message in the event log
    remembered   the turns in SQL, for sessions whose history Redis has dropped
    """

    brain: Brain
    log_user: Callable[[TurnRequest, bool], object]
    remembered: Turns
    _ready_logged_at: float = field(default=float("-inf"), init=False)

    def earlier_turns(self, turn: OwnedTurn) -> int:
        """Return how many turns the session had before this one, if Redis has dropped its history. Returns 0 if Redis
        still has it."""
        if turn.view.begun or _has_history(turn.view):
            return 0
        return max(0, turn.retry(partial(self.remembered.number, turn.claim.turn_id)) - 1)

    def step_setting(self, view: TurnView, earlier: int) -> StepSetting:
        """Return the model and the options of the turn's next step. Raises BrainqError if the model is unknown or a
        function of the brain fails."""
        request, brain = view.request, self.brain
        info = TurnInfo.from_request(request, max(view.turn_number, earlier + 1))
        choice = NO_CHOICE if brain.for_step is None else brain_step_choice(brain.for_step, view, info)
        named = None if choice.model is None else checked_model(choice.model)
        provider, model = (
            resolve_model(request.model or brain.model, request.provider) if named is None else resolve_model(named)
        )
        system_prompt = request.system_prompt or system_prompt_of(brain, info)
        chosen = NO_OPTIONS if choice.options is None else checked_options(choice.options)
        own = brain.options
        elsewhere = own.for_another_service()
        if elsewhere is not own and not is_same_service(provider, resolve_model(brain.model)[0]):
            own = elsewhere
        options = step_options(view.step + 1, own, request.options, chosen)
        if options.tool_choice is not None:
            check_tool_choice(options, turn_specs(brain, request))
        limits = request.limits.applied_to(brain.limits)
        prompt_hash = render_hash(system_prompt, PREFIXES[brain.thinking])
        note_prompt_hash(prompt_hash)
        return StepSetting(provider, model, system_prompt, info, limits, options, earlier, prompt_hash)

    def start(self, turn: OwnedTurn, setting: StepSetting) -> TurnStart:
        """Log the user's message and run the callbacks. Returns the messages and facts that begin the turn."""
        view, request, turn_id = turn.view, turn.view.request, turn.claim.turn_id
        if request.kind == "chat":
            turn.retry(partial(self.log_user, request, self.brain.redact_logs))
            if not view.flag:
                self._log_ready(turn_id)
        if self.brain.hooks.before_turn:
            run_hooks(self.brain.hooks.before_turn, turn_id, setting.info)
        before = [] if _has_history(view) else self._history_before(turn, setting.earlier)
        if request.kind == "review":
            # A review has a history of its own, into which the session's messages are copied.
            before = [*view.history.messages, *before] if request.seed == "session" else []
        message = Message(role="user", content=request.user_message, turn=turn_id, attachments=request.attachments)
        return TurnStart((*before, message), setting.prompt_hash, setting.earlier)

    def _log_ready(self, turn_id: str) -> None:
        """Log that the turn starts without a readiness flag, at most once a minute in this process."""
        now = time.monotonic()
        if now - self._ready_logged_at >= READY_LOG_EVERY_S:
            self._ready_logged_at = now
            log.debug("no readiness flag waits: the turn is ready", turn_id=turn_id)

    def _history_before(self, turn: OwnedTurn, earlier: int) -> list[Message]:
        """Return the messages before the turn's own. If Redis has dropped the session's history, they come from SQL.
        For the first turn of a session they are the greeting and history of the request."""
        request = turn.view.request
        if earlier:
            return turn.retry(partial(self._history_from_sql, turn.claim, request))
        return opening_messages(request.greeting, request.history)

    def _history_from_sql(self, claim: TurnClaim, request: TurnRequest) -> list[Message]:
        turns = self.remembered.history(claim.session_id, claim.turn_id, TURNS_FROM_SQL)
        messages: list[Message] = []
        for number, (user, assistant, attachments) in enumerate(turns):
            turn = f"{EARLIER_TURN_PREFIX}{number}"
            if user or attachments:
                messages.append(Message(role="user", content=user, turn=turn, attachments=attachments))
            if assistant:
                messages.append(Message(role="assistant", content=assistant, turn=turn))
        if len(turns) >= TURNS_FROM_SQL:
            return messages
        first = self.remembered.first(claim.session_id) if turns else request
        return [*([] if first is None else opening_messages(first.greeting, first.history)), *messages]


def system_prompt_of(brain: Brain, info: TurnInfo) -> str:
    """Return the system prompt of this turn: from its prompt template if it names one, or else from the brain.

    Raises InvalidInput if the brain's function fails, or if a placeholder of the template has no value.
    """
    template = brain.prompts.get(info.prompt_id) if info.prompt_id else None
    if template is not None:
        return render_prompt(template, info)
    try:
        return str(brain.prompt_for(info))
    except Exception as failure:
        raise InvalidInput("system_prompt", f"its function raised {failure_text(failure)}") from failure


def _has_history(view: TurnView) -> bool:
    """Return whether Redis has the session's history. A mere notice about a late write does not count."""
    return any(view.history.begins)

"""The start of a turn: callback, event log, the session's history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from brainq.brain import Brain
from brainq.brain_fields import checked_model, checked_options
from brainq.contracts.brought import EARLIER, opening_of
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.claim import TurnClaim, TurnStart
from brainq.contracts.conversation import EMPTY
from brainq.contracts.limits import Limits
from brainq.contracts.message import Message
from brainq.contracts.options import NO_OPTIONS, ModelOptions
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import TurnView
from brainq.errors import InvalidInput
from brainq.observe.logs import logger
from brainq.ports.turn_rows import TurnRows
from brainq.providers.base import Provider, is_same_service
from brainq.providers.resolve import resolve_model
from brainq.text.estimate import with_sizes
from brainq.turn.client_tools import specs_of
from brainq.turn.context.preparer import render_hash
from brainq.turn.context.template import render
from brainq.turn.patience import Trying
from brainq.turn.planning.step_choice import choice_of
from brainq.turn.planning.step_options import check_tool_choice, step_options
from brainq.turn.thinking import PREFIXES

log = logger("brainq.turn")

READY_SAID_EVERY_S = (
    60.0  # that turns begin ready for want of flags; a busy process would say it all the time
)
TURNS_FROM_SQL = 50  # turns of a session read back when Redis has let its history go


@dataclass(frozen=True, slots=True)
class Setting:
    """Who is asked in a turn's steps, and how.

    options   how it is asked in this step
    earlier   turns of the session that only SQL still counts
    """

    provider: Provider
    model: str
    system_prompt: str
    info: TurnInfo
    limits: Limits
    options: ModelOptions = NO_OPTIONS
    earlier: int = 0


def begun_with(view: TurnView, start: TurnStart) -> TurnView:
    """The view as it is once the turn begins with `start`."""
    # A review's history is its own, and begins here.
    before = EMPTY if view.request.kind == "review" else view.history
    return replace(view, history=with_sizes(start.messages, before))


class Beginner:
    """Begins turns: each part may run twice, none does harm when it does.

    log_user     puts the user's message into the event log
    remembered   what SQL kept of a session whose history Redis has let go
    """

    def __init__(
        self,
        brain: Brain,
        log_user: Callable[[TurnRequest, bool], object],
        remembered: TurnRows,
    ) -> None:
        self._brain = brain
        self._log_user = log_user
        self._remembered = remembered
        self._ready_said_at = float("-inf")

    def earlier(self, claim: TurnClaim, view: TurnView) -> int:
        """How many turns the session had before this one, as far as only SQL still knows it; 0: Redis counts them."""
        return 0 if _is_known(view) else max(0, self._remembered.number(claim.turn_id) - 1)

    def setting(self, view: TurnView, earlier: int) -> Setting:
        """How the turn's next step is asked. Raises BrainqError when it cannot be: nobody knows the model, or one of
        the brain's functions fails."""
        request, brain = view.request, self._brain
        info = TurnInfo.of(request, max(view.turn_number, earlier + 1))
        choice = choice_of(brain, view, info)
        named = None if choice.model is None else checked_model(choice.model)
        provider, model = (
            resolve_model(request.model or brain.model, request.provider)
            if named is None
            else resolve_model(named)
        )
        system_prompt = request.system_prompt or system_prompt_of(brain, info)
        chosen = checked_options(choice.options)
        own = brain.options
        if not is_same_service(provider, resolve_model(brain.model)[0]):
            own = own.for_another_service()
        options = step_options(view.step + 1, own, request.options, chosen)
        check_tool_choice(options, specs_of(brain, request))
        limits = request.limits.over(brain.limits)
        return Setting(provider, model, system_prompt, info, limits, options, earlier)

    def start(self, claim: TurnClaim, view: TurnView, setting: Setting, trying: Trying) -> TurnStart:
        """Log the user's message and call back; what is to be put into the history."""
        request = view.request
        if request.kind == "chat":
            trying(lambda: self._log_user(request, self._brain.redact_logs))
            if not view.flag:
                self._say_ready(claim.turn_id)
        self._call_back(setting.info)
        before = [] if _is_known(view) else self._before(claim, request, setting.earlier, trying)
        if request.kind == "review":
            # Its history is its own: what it begins with is copied into it.
            before = [*view.history.messages, *before] if request.seed == "session" else []
        asked = Message(
            role="user",
            content=request.user_message,
            turn=claim.turn_id,
            attachments=request.attachments,
        )
        rendered = render_hash(setting.system_prompt, PREFIXES[self._brain.thinking])
        return TurnStart((*before, asked), rendered, setting.earlier)

    def _say_ready(self, turn_id: str) -> None:
        """No readiness flag was there to take: the turn is ready. Said once a minute a process."""
        now = time.monotonic()
        if now - self._ready_said_at >= READY_SAID_EVERY_S:
            self._ready_said_at = now
            log.debug("no readiness flag waits: the turn is ready", turn_id=turn_id)

    def _call_back(self, info: TurnInfo) -> None:
        callback = self._brain.callbacks.on_turn_start
        if callback is None:
            return
        try:
            callback(info)
        except Exception as failure:
            log.error("on_turn_start raised", failure=failure, turn_id=info.turn_id)

    def _before(self, claim: TurnClaim, request: TurnRequest, earlier: int, trying: Trying) -> list[Message]:
        """A session that Redis no longer holds goes on from what SQL kept of it; a new one begins with what its first
        turn brings along."""
        if earlier:
            return trying(lambda: self._from_sql(claim, request))
        return opening_of(request.greeting, request.history)

    def _from_sql(self, claim: TurnClaim, request: TurnRequest) -> list[Message]:
        turns = self._remembered.history(claim.session_id, claim.turn_id, TURNS_FROM_SQL)
        said: list[Message] = []
        for number, (user, assistant, attachments) in enumerate(turns):
            turn = f"{EARLIER}{number}"
            if user or attachments:
                said.append(Message(role="user", content=user, turn=turn, attachments=attachments))
            if assistant:
                said.append(Message(role="assistant", content=assistant, turn=turn))
        if len(turns) >= TURNS_FROM_SQL:
            return said
        first = self._remembered.first(claim.session_id) if turns else request
        return [*([] if first is None else opening_of(first.greeting, first.history)), *said]


def system_prompt_of(brain: Brain, info: TurnInfo) -> str:
    """The system prompt of this turn: its template's, else the brain's.

    Raises InvalidInput when the brain's function fails, or the template asks for what is not there.
    """
    template = brain.prompts.get(info.prompt_id) if info.prompt_id else None
    if template is not None:
        return render(template, info)
    try:
        return str(brain.prompt_for(info))
    except Exception as failure:
        raise InvalidInput(
            "system_prompt", f"its function raised {type(failure).__name__}: {failure}"
        ) from failure


def _is_known(view: TurnView) -> bool:
    """Whether Redis has the session's history; a late write's notice alone is none."""
    return any(view.history.begins)

"""Model calls beside a turn's steps: reflections, summaries, extraction, judging."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from json_repair import repair_json

from brainq.contracts.message import Message
from brainq.contracts.model import FinishKind, ModelReply, ModelRequest, Purpose, TokenUsage
from brainq.contracts.stop import stop_of_turn, stops_of_models
from brainq.engine.models.asking.bill import Allowance, Bill, current_allowance
from brainq.engine.models.asking.deferred import DEFAULT_REQUESTER, refuse_stopped
from brainq.engine.models.asking.permits import reply_with_permits
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.models.costs import worst_cost_usd
from brainq.engine.models.providers import Provider
from brainq.errors import ProviderError
from brainq.runtime.observe.spans import chat_span
from brainq.runtime.observe.tracing import in_span
from brainq.runtime.processes.threads import call_within
from brainq.runtime.text.estimate import estimate_request

if TYPE_CHECKING:
    from brainq.adapters.redis.stops import RedisStops
    from brainq.engine.people.budgets import BudgetDesk

MAX_ANSWER_TOKENS = 1_000  # of one answer, if its caller sets no other limit
OVERRUN_S = 1.0  # for a provider that raises at its deadline itself


@dataclass(frozen=True, slots=True)
class AuxiliaryModel:
    """A model for calls beside the steps. A call has no tools, and only the text that it is given.

    permits: how the call takes its permits. None means the caller's active policy.
    budgets: the budgets of calls after a turn's end, and `brain` the brain that pays. None means that the turn's steps
        pay.
    stops: the stops that concern such calls. None means the caller's active policy.
    """

    provider: Provider
    model: str
    permits: PermitPolicy | None = None
    budgets: BudgetDesk | None = None
    brain: str = ""
    stops: RedisStops | None = None

    def ask(
        self,
        purpose: Purpose,
        system: str,
        text: str,
        *,
        timeout_s: float,
        output_schema: dict[str, Any] | None = None,
        max_output_tokens: int | None = MAX_ANSWER_TOKENS,
        session_id: str = "",
        turn_id: str = "",
        step: int = 0,
    ) -> ModelReply:
        """Return the reply to one call.

        Raises ProviderError, also for a reply that is empty or not whole (kind `malformed`). Raises StopDeferred or
        ModelForbidden if operators have stopped the call.
        """
        request = ModelRequest(
            model=self.model,
            messages=(Message(role="system", content=system), Message(role="user", content=text)),
            output_schema=output_schema,
            max_output_tokens=max_output_tokens,
            timeout_s=timeout_s,
            session_id=session_id,
            turn_id=turn_id,
            step=step,
            purpose=purpose,
            # Results of all brains wait for the finalizer's threads, and rules can do this work, too.
            in_line=purpose != "memory",
        )
        chat = chat_span(self.provider, request)
        places = self._permits_of(session_id)
        bill = Bill(self.provider.name, self.model, purpose, step, current_allowance())
        with self._held(request, bill.allowance), in_span(chat.span), places, bill.activate():
            try:
                reply = self._reply_in_time(request)
                bill.settle(reply)
            except Exception as failure:
                bill.close(failure)
                raise
            chat.reply(reply)
        return _require_text(reply)

    def _permits_of(self, session_id: str) -> AbstractContextManager[None]:
        """Activate the policy of a call, with the stops of its model. Raises if a stop concerns its brain or tenant."""
        if self.permits is None:
            return nullcontext()
        stops = () if self.stops is None else tuple(self.stops.in_force())
        if (stop := stop_of_turn(stops, session_id, self.brain)) is not None:
            refuse_stopped(stop, DEFAULT_REQUESTER)
        return replace(self.permits, stops=stops_of_models(stops, session_id)).activate()

    @contextmanager
    def _held(self, request: ModelRequest, allowance: Allowance) -> Generator[None]:
        """Reserve the call's worst case in its budgets, and settle its cost at the end.

        Raises ProviderError (kind `spent`) if a budget does not allow the call.
        """
        if self.budgets is None or not self.budgets.windows(request.session_id, self.brain):
            yield
            return
        usage = TokenUsage(input_tokens=estimate_request(request), output_tokens=request.max_output_tokens or 0)
        usd = worst_cost_usd(self.provider, self.model, usage, allowance.price)
        call_id = f"{request.turn_id}:{uuid4().hex}"
        known = usd if request.max_output_tokens else None
        if spent := self.budgets.reserve(call_id, request.session_id, self.brain, known, usd):
            raise ProviderError(f"{spent} is spent", kind="spent", retryable=False)
        before = len(allowance.spends)
        try:
            yield
        finally:
            self.budgets.settle(call_id, sum(one.cost_usd or 0.0 for one in allowance.spends[before:]))

    def _reply_in_time(self, request: ModelRequest) -> ModelReply:
        """Return the reply within its time, even if a user's own provider ignores the limit."""
        limit_s, what = request.timeout_s + OVERRUN_S, f"{request.purpose} by {self.model}"
        try:
            return call_within(limit_s, what, lambda: reply_with_permits(self.provider, request))
        except TimeoutError as error:
            raise ProviderError(str(error), kind="timeout", retryable=True) from error


def _require_text(reply: ModelReply) -> ModelReply:
    if reply.finish is not FinishKind.WHOLE:
        raise ProviderError(
            f"the model's reply is incomplete: {reply.finish_reason}", kind="malformed", retryable=False
        )
    if not reply.text.strip():
        raise ProviderError("the model's reply was empty", kind="malformed", retryable=False)
    return reply


def read_json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a model's text, without fences and with small mistakes repaired.

    Raises ProviderError (kind `malformed`) if there is none.
    """
    try:
        found: Any = repair_json(text, return_objects=True)
    except (ValueError, RecursionError) as failure:  # a number or a nesting beyond what Python reads
        raise ProviderError("the model's reply cannot be read as JSON", kind="malformed", retryable=False) from failure
    if isinstance(found, list):
        found = next((item for item in found if isinstance(item, dict)), None)
    if not isinstance(found, dict):
        raise ProviderError("the model's reply contains no JSON object", kind="malformed", retryable=False)
    return {str(key): value for key, value in found.items()}

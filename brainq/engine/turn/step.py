"""The making of one step. The turn begins if it has not, and the request is prepared and made to fit. Each attempt is
charged once, calls the model, and publishes the text of the reply. An attempt without a reply is charged as well."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.claim import StepAttempt, TurnClaim, TurnStart
from brainq.contracts.model import (
    ModelReply,
    ModelRequest,
    ModelRetry,
    Price,
    Spend,
    TokenUsage,
    render_failure,
)
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.middleware import MiddlewareFailed, notify_hooks, run_hooks
from brainq.engine.models.asking.bill import Allowance, Bill, BudgetExhausted, ReplyCost
from brainq.engine.models.asking.deferred import CallDeferred
from brainq.engine.models.asking.reply_size import MAX_REPLY_BYTES, REPLIES_A_TURN, messages_bytes
from brainq.engine.models.costs import first_model
from brainq.engine.models.providers import Provider
from brainq.engine.turn.before_step import AuxiliaryWork
from brainq.engine.turn.begin import TurnStarter, begin_history
from brainq.engine.turn.decide import BUDGET_ENDS, End
from brainq.engine.turn.opening_wave import opening_wave
from brainq.engine.turn.owned_turn import LOST, LoopEnd, Outcome, OwnedTurn, StepOutcome
from brainq.engine.turn.replies import ReplyHandler, StepReply
from brainq.engine.turn.step_money import BegunStep, StepMoney
from brainq.engine.turn.step_request import (
    BlobCache,
    StepPreparer,
    StepRequest,
    step_request,
    turn_allowance,
)
from brainq.engine.turn.text_stream import AttemptReader, TurnLost
from brainq.errors import BrainqError, ProviderError
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.estimate import CHARS_PER_TOKEN as MAX_BYTES_PER_TOKEN

if TYPE_CHECKING:
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.engine.people.brakes import BrakeDesk

log = logger("brainq.turn")
RESTART_PAUSE_S = 1.0  # the longest pause before a broken stream is restarted, times the number of attempts made
MAX_ATTEMPTS_A_STEP = 3  # for streams that broke or stalled after they began; the provider makes all other retries
RESTARTABLE_KINDS = frozenset({"stream", "stalled", "broken"})
_BLANK = ModelRequest(model="", messages=(), timeout_s=0)  # copying it takes a third of the time of `model_construct`


@dataclass(kw_only=True, eq=False)
class StepRunner:
    """The machine that makes a step: it sends the request, again if the stream breaks, and handles the reply."""

    brain: Brain
    turns: RedisTurns
    replies: ReplyHandler
    price: Price
    blobs: BlobCache
    money: StepMoney
    max_reply_bytes: int = MAX_REPLY_BYTES
    pause: Callable[[float], None] = time.sleep

    def run(self, turn: OwnedTurn, asking: StepRequest) -> StepOutcome:
        claim, view = turn.claim, turn.view
        # Time spent waiting since the view was read also counts.
        ends_at = min(time.monotonic() + view.remaining_ms / 1000, turn.retry.ends_at)
        if (too_large := turn_too_large(view, self.max_reply_bytes)) is not None:
            return LoopEnd(too_large, lost=())
        blobs = turn.retry(partial(self.blobs.blobs_for, claim.session_id, asking.messages))
        allowance = turn_allowance(view, asking.setting.limits, self.price, self.max_reply_bytes)
        begin = asking.begin
        for remaining in reversed(range(MAX_ATTEMPTS_A_STEP)):
            bill = attempt_bill(asking, view.step + 1, allowance)
            begun = self.money.begin(turn, asking, begin, bill)
            if not isinstance(begun, BegunStep):
                return begun
            step = begun.attempt
            claim.under_way.step, claim.under_way.attempt = step.step, step.attempt
            claim.under_way.spends = bill.spends_so_far
            request = model_request(turn, begun.asking, step, ends_at - time.monotonic(), blobs)
            reader = AttemptReader(self.turns, turn, step, self.brain.hooks.on_chunk)
            try:
                return self._attempt(turn, asking.setting.provider, request, bill, reader)
            except CallDeferred as later:
                later.spends = bill.close(later)
                raise  # the turn gives up its thread while it waits
            except ProviderError as failure:
                spends = bill.close(failure)
                if not (failure.kind in RESTARTABLE_KINDS and failure.retryable and remaining):
                    return LoopEnd(end_after_failure(failure), lost=spends)
                self._wait(reader, failure, ends_at - time.monotonic())
                begin = replace(begin.for_retry, lost=spends)
        raise AssertionError("the last attempt returns")

    def _attempt(
        self, turn: OwnedTurn, provider: Provider, request: ModelRequest, bill: Bill, reader: AttemptReader
    ) -> StepOutcome:
        """Make one attempt. Raises ProviderError if it brings no reply."""
        try:
            reply, cost = self._ask_between_hooks(provider, request, bill, reader)
        except TurnLost as failure:
            self._report_lost_attempt(turn.claim, bill, failure)
            return LOST
        except MiddlewareFailed as failure:
            return LoopEnd(middleware_end(failure), lost=bill.close(failure))
        tail = reader.tail.rest(turn.retry) if reader.tail.is_used else ""
        return self.replies.handle(turn, StepReply(request.step, reply, cost, tail))

    def _ask_between_hooks(
        self, provider: Provider, request: ModelRequest, bill: Bill, reader: AttemptReader
    ) -> tuple[ModelReply, ReplyCost]:
        """Return the reply and its cost. Raises ProviderError, TurnLost and MiddlewareFailed."""
        hooks, reply, failure = self.brain.hooks, None, None
        try:
            if hooks.before_step:
                run_hooks(hooks.before_step, request.turn_id, request)
            with bill.activate():
                reply = reader.read(provider, request)
                return reply, bill.settle(reply)
        except ProviderError as error:
            failure = error
            raise
        finally:
            if hooks.after_step:
                notify_hooks(hooks.after_step, request.turn_id, request, reply, failure)

    def _report_lost_attempt(self, claim: TurnClaim, bill: Bill, failure: TurnLost) -> None:
        """Report what the attempt has used, in case no worker has claimed the turn yet. Its next owner charges it."""
        bill.close(failure)
        try:
            self.turns.beat(claim)
        except Exception as away:  # the loss was noticed when text was published, or by the heartbeat
            log.info("lost attempt not reported", turn_id=claim.turn_id, why=type(away).__name__)

    def _wait(self, reader: AttemptReader, failure: ProviderError, remaining_s: float) -> None:
        """Pause before a broken stream is restarted."""
        step, attempt = reader.step.step, reader.step.attempt
        log.info("stream broke, asking again", turn_id=reader.turn.claim.turn_id, step=step, attempt=attempt)
        wait_s = min(random.random() * attempt * RESTART_PAUSE_S, max(0.0, remaining_s))
        reader.publish_retry(ModelRetry(kind=failure.kind, wait_s=wait_s))
        self.pause(wait_s)


def turn_too_large(view: TurnView, max_reply_bytes: int) -> End | None:
    """Return the end of a turn whose replies and results together are too large. Returns None if they are not."""
    most = REPLIES_A_TURN * max_reply_bytes
    if MAX_BYTES_PER_TOKEN * view.history.tokens < most or messages_bytes(view.own_messages) < most:
        return None
    return too_large_end(
        f"the replies and results of this turn are larger than {most:,} bytes ({REPLIES_A_TURN} times "
        "BRAINQ_MAX_REPLY_BYTES)"
    )


def model_request(
    turn: OwnedTurn, asking: StepRequest, step: StepAttempt, remaining_s: float, blobs: Mapping[str, bytes]
) -> ModelRequest:
    """Return the request of one attempt at a step."""
    setting, limits, request = asking.setting, asking.setting.limits, turn.view.request
    # Each part was validated when it was made, and there may be thousands of messages.
    return _BLANK.model_copy(
        update={
            "model": setting.model,
            "messages": asking.messages,
            "tools": asking.specs,
            "max_output_tokens": limits.max_output_tokens,
            "options": setting.options,
            "output_schema": request.output_schema,
            "timeout_s": max(0.001, remaining_s),
            "first_token_s": limits.first_token_s,
            "idle_s": limits.idle_s,
            "session_id": turn.claim.session_id,
            "turn_id": turn.claim.turn_id,
            "step": step.step,
            "attempt": step.attempt,
            "turn_number": setting.info.turn_number,
            "metadata": request.metadata,
            "estimate": asking.begin.estimate,
            "blobs": blobs,
        }
    )


def attempt_bill(asking: StepRequest, step: int, allowance: Allowance) -> Bill:
    """Return the bill of one attempt at a step."""
    setting, begin = asking.setting, asking.begin
    most_output = setting.limits.max_output_tokens or 0
    # This is corrected by how far earlier bills differed from their estimates.
    input_tokens = max(begin.estimate, begin.most_tokens - most_output)
    provider, model = first_model(setting.provider, setting.model)
    usage, usd = TokenUsage(input_tokens=input_tokens, output_tokens=most_output, estimated=True), begin.max_usd
    is_other = begin.most_tokens != usage.total or provider != setting.provider.name
    if usd is None or (is_other and not most_output):  # otherwise the reserved amount is kept
        usd = allowance.price(provider, model, usage)
    unsent = Spend.from_usage("lost", step, model, usage, usd)
    return Bill(setting.provider.name, setting.model, "step", step, allowance, input_tokens, unsent)


def middleware_end(failure: MiddlewareFailed) -> End:
    return End(Ending.FAILED, StopReason.INTERNAL_ERROR, "a middleware failed", str(failure))


def model_error_end(error: str) -> LoopEnd:
    """Return the end of a turn whose model cannot be called."""
    return LoopEnd(End(Ending.FAILED, StopReason.MODEL_ERROR, "the model could not be asked", error))


def too_large_end(why: str) -> End:
    """Return the end of a turn whose model writes without end. The last reply is neither acted on nor kept."""
    text = f"I could not finish: {why}. No call of the last reply ran."
    return End(Ending.COMPLETED, StopReason.LENGTH, why, standard_text=text)


def end_after_failure(failure: ProviderError) -> End:
    """Return the end that a failure of the model leads to."""
    if isinstance(failure, BudgetExhausted):
        return BUDGET_ENDS[failure.what]
    match failure.kind:
        case "timeout":
            return End(Ending.TIMED_OUT, StopReason.DEADLINE, "the model did not answer by the deadline")
        case "waited":
            why = "the limits of its model allowed no request in time"
            return End(Ending.TIMED_OUT, StopReason.WAITED, why, str(failure))
        case "limited":
            why = "the limits of its model allow its next request too late"
            return End(Ending.FAILED, StopReason.LIMITED, why, str(failure))
        case "too_large":
            return too_large_end(str(failure))
        case _:
            wait_s: float | None = getattr(failure, "retry_after_s", None)
            return model_error_end(render_failure(failure.kind, str(failure), wait_s)).end


@dataclass(kw_only=True, eq=False)
class StepPipeline:
    """The pipeline of one step. It begins the turn if needed, does the work before the step, and makes the step."""

    brain: Brain
    turns: RedisTurns
    starter: TurnStarter
    auxiliary: AuxiliaryWork
    brakes: BrakeDesk
    price: Price
    preparer: StepPreparer
    attempts: StepRunner

    def run(self, turn: OwnedTurn) -> StepOutcome:
        view, earlier = turn.view, self.starter.earlier_turns(turn)
        try:
            setting = self.starter.step_setting(view, earlier)
        except BrainqError as failure:
            return model_error_end(str(failure))
        start: TurnStart | None = None
        if not view.begun:
            start = self.starter.start(turn, setting)
            begin_history(view, start)

        opening = opening_wave(self.brain, view)
        if opening is not None:
            open_wave = partial(self.auxiliary.dispatch_opening, turn, opening)
            if (outcome := self._begin_then(turn, start, open_wave)) is not None:
                return outcome

        step = self.preparer.prepare(view, setting)
        if step.drain.readiness is not None and view.flag:
            turn.retry(lambda: self.brakes.lift(turn.claim.session_id, turn.claim.turn_id))
        if self.auxiliary.is_full(view, step):
            compact = partial(self.auxiliary.compact, turn, step)
            if (outcome := self._begin_then(turn, start, compact)) is not None:
                return outcome

        request = step_request(view, setting, step, self.price, len(self.brain.tools.specs), start)
        return self.attempts.run(turn, request)

    def _begin_then(
        self, turn: OwnedTurn, start: TurnStart | None, work: Callable[[], Outcome | None]
    ) -> Outcome | None:
        """Begin the turn, if it has not begun, and do the work before its step."""
        if start is not None and not turn.retry(lambda: self.turns.begin(turn.claim, start)):
            return LOST
        return work()

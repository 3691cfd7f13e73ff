"""The attempts at one step: each is paid for once, asks the model, and tells readers its text."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

from brainq.brain import Brain
from brainq.contracts.callbacks import StreamChunk
from brainq.contracts.claim import StepSpent, TurnClaim
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelRequest, ModelRetry
from brainq.contracts.model_failure import failure_text
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.usage import Price, Spend, TokenUsage
from brainq.contracts.view import TurnView
from brainq.errors import ProviderError
from brainq.observe.logs import logger
from brainq.observe.metrics.models import asking as counted
from brainq.ports.turns import Turns
from brainq.providers.places import PlaceLater
from brainq.providers.spent import MAYBE_BILLED, spend_of
from brainq.turn.context.blob_cache import BlobCache
from brainq.turn.decide import SPENT, End
from brainq.turn.outcome import Answer, StepOutcome, StepRequest
from brainq.turn.patience import Trying
from brainq.turn.replies import Replies
from brainq.turn.stream import Ask, TurnLost, stream_reply
from brainq.turn.text_tail import TextTail

log = logger("brainq.turn")

PAUSE_S = 1.0  # before a broken stream is begun again: up to so long for each attempt made
MAX_ATTEMPTS_A_STEP = (
    3  # of streams that broke after they began, or stalled; other retries are the provider's
)
BEGUN_AGAIN = frozenset({"stream", "stalled"})


class Attempts:
    """Makes one step of a turn. None means that the turn was lost to another owner."""

    def __init__(
        self,
        *,
        brain: Brain,
        turns: Turns,
        replies: Replies,
        price: Price,
        blobs: BlobCache,
        ask: Ask,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._brain = brain
        self._turns = turns
        self._replies = replies
        self._price = price
        self._blobs = blobs
        self._ask = ask
        self._pause = pause

    def make(
        self, claim: TurnClaim, view: TurnView, asking: StepRequest, lost: Callable[[], bool], trying: Trying
    ) -> StepOutcome:
        setting, begin = asking.setting, asking.begin
        provider, model, limits = setting.provider, setting.model, setting.limits
        # What was waited for since the view was read is gone from the turn's time.
        ends_at = min(time.monotonic() + view.remaining_ms / 1000, trying.ends_at)
        blobs = trying(partial(self._blobs.of, claim.session_id, asking.messages))
        for remaining in reversed(range(MAX_ATTEMPTS_A_STEP)):
            step = trying(partial(self._turns.begin_step, claim, begin, self._turns.mark(claim)))
            if step == "LOST":
                return None
            if isinstance(step, StepSpent):
                return Answer(SPENT[step.what])
            number, attempt = step.step, step.attempt
            # Each part was checked when it was made, and there may be thousands of messages.
            request = ModelRequest.model_construct(
                model=model,
                messages=asking.messages,
                tools=asking.specs,
                max_output_tokens=limits.max_output_tokens,
                options=setting.options,
                output_schema=view.request.output_schema,
                timeout_s=max(0.001, ends_at - time.monotonic()),
                first_token_s=limits.first_token_s,
                idle_s=limits.idle_s,
                session_id=claim.session_id,
                turn_id=claim.turn_id,
                step=number,
                attempt=attempt,
                turn_number=setting.info.turn_number,
                metadata=view.request.metadata,
                estimate=begin.estimate,
                blobs=blobs,
            )
            tail = self._tail(claim, number, attempt, trying)
            tell_retry = self._retry_teller(claim, number, attempt)
            on_chunk = self._chunk_callback(claim, number, attempt)
            try:
                with counted(provider.name, model, "step") as asked:
                    reply = stream_reply(self._ask, provider, request, tail, tell_retry, lost, on_chunk)
                    spend = spend_of("step", number, provider, model, reply, self._price)
                    asked.answered(reply, spend.cost_usd)
            except TurnLost:
                return None
            except PlaceLater:
                raise  # the turn lets go of its thread meanwhile
            except ProviderError as failure:
                if failure.kind in BEGUN_AGAIN and failure.retryable and remaining:
                    log.info(
                        "stream broke, asking again", turn_id=claim.turn_id, step=number, attempt=attempt
                    )
                    wait_s = min(random.random() * attempt * PAUSE_S, max(0.0, ends_at - time.monotonic()))
                    tell_retry(ModelRetry(kind=failure.kind, wait_s=wait_s))
                    self._pause(wait_s)
                    begin = begin.again
                    continue
                return _after_failure(failure, asking, number)
            return self._replies.act(claim, view, number, reply, spend, tail.rest(trying), trying)
        raise AssertionError("the last attempt returns")

    def _tail(self, claim: TurnClaim, step: int, attempt: int, trying: Trying) -> TextTail:
        def tell(mark: str, text: str, kind: EventKind) -> bool:
            return self._turns.tell_delta(claim, step, attempt, text, mark, kind)

        return TextTail(tell, lambda: self._turns.mark(claim), trying.is_away)

    def _retry_teller(self, claim: TurnClaim, step: int, attempt: int) -> Callable[[ModelRetry], None]:
        def tell(retry: ModelRetry) -> None:
            try:
                self._turns.tell_retry(claim, step, attempt, retry)
            except Exception as failure:  # the retry itself needs no Redis
                log.warning("retry not told", turn_id=claim.turn_id, step=step, why=type(failure).__name__)

        return tell

    def _chunk_callback(self, claim: TurnClaim, step: int, attempt: int) -> Callable[[str], None] | None:
        callback = self._brain.callbacks.on_stream_chunk
        if callback is None:
            return None

        def told(text: str) -> None:
            try:
                callback(StreamChunk(claim.turn_id, claim.session_id, step, attempt, text))
            except Exception as failure:
                log.error("on_stream_chunk raised", failure=failure, turn_id=claim.turn_id)

        return told


def not_asked(error: str) -> Answer:
    """The turn fails: its model cannot be asked."""
    return Answer(End(Ending.FAILED, StopReason.MODEL_ERROR, "the model could not be asked", error))


def _after_failure(failure: ProviderError, asking: StepRequest, step: int) -> Answer:
    if failure.kind == "timeout":
        end = End(Ending.TIMED_OUT, StopReason.DEADLINE, "the model did not answer by the deadline")
    elif failure.kind == "waited":
        end = End(
            Ending.TIMED_OUT,
            StopReason.WAITED,
            "no place among its model's requests came in time",
            str(failure),
        )
    elif failure.kind == "limited":
        end = End(
            Ending.FAILED,
            StopReason.LIMITED,
            "its place among its model's requests comes too late",
            str(failure),
        )
    else:
        wait_s: float | None = getattr(failure, "retry_after_s", None)
        end = not_asked(failure_text(failure.kind, str(failure), wait_s)).end
    if failure.kind not in MAYBE_BILLED:
        return Answer(end)
    # Nobody knows what the service has worked on: it is charged like an attempt whose worker was lost.
    usage = TokenUsage(input_tokens=asking.begin.estimate)
    return Answer(end, spend=Spend.of("lost", step, asking.setting.model, usage, asking.begin.most_usd))

"""One step: begin the turn if need be, prepare, ask the model, and commit what it asked for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from brainq.brain import Brain
from brainq.contracts.callbacks import StreamChunk, TurnInfo
from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest, ModelRetry
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import Spend, TokenUsage
from brainq.contracts.view import TurnView
from brainq.errors import BrainqError, ProviderError
from brainq.observe.logs import logger
from brainq.providers.resolve import resolve_model
from brainq.text.estimate import estimate_tools
from brainq.tools.opening import opened_memory, opened_pack
from brainq.turn.ask import TextTail, TurnLost, ask
from brainq.turn.asked import Answer, Asked, Asking, Calls, RungAgain
from brainq.turn.asks import asked_calls
from brainq.turn.begin import Beginner
from brainq.turn.beside import Beside
from brainq.turn.decide import SPENT, End
from brainq.turn.mailbox import TurnMailbox, messages_of, readiness_word
from brainq.turn.plan import Plan, plan_calls, refuse_calls
from brainq.turn.ports import Approvals, Brakes, Price, ToolCallBudget, Turns
from brainq.turn.preparer import TurnPreparer
from brainq.turn.selection import SemanticToolSelector, context_of
from brainq.turn.spend import MAYBE_BILLED
from brainq.turn.thinking import PREFIXES
from brainq.turn.tracker import ContextTracker
from brainq.turn.whole import TellModel, judge_whole, told

log = logger("brainq.turn")

PAUSE_S = 1.0  # before a broken stream is begun again: up to so long for each attempt made
MAX_ATTEMPTS_A_STEP = (
    3  # of streams that broke after they began, or stalled; other retries are the provider's
)
BEGUN_AGAIN = frozenset({"stream", "stalled"})


class Thinker:
    """Takes one step of a turn. None means that the turn was lost to another owner."""

    def __init__(
        self,
        *,
        brain: Brain,
        turns: Turns,
        budget: ToolCallBudget,
        beginner: Beginner,
        beside: Beside,
        approvals: Approvals,
        brakes: Brakes,
        price: Price,
        selector: SemanticToolSelector | None,
        preparer: TurnPreparer | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._brain = brain
        self._turns = turns
        self._budget = budget
        self._beginner = beginner
        self._beside = beside
        self._approvals = approvals
        self._brakes = brakes
        self._selector = selector
        self._price = price
        self._preparer = preparer or TurnPreparer()
        self._pause = pause
        self._tool_tokens: dict[str, int] = {}

    def think(self, claim: TurnClaim, view: TurnView, lost: Callable[[], bool]) -> Asked:
        request = view.request
        earlier = 0 if view.begun else self._beginner.earlier(claim, view)
        info = TurnInfo(
            turn_id=request.turn_id,
            session_id=request.session_id,
            user_message=request.user_message,
            prompt_id=request.prompt_id,
            prompt_version=request.prompt_version,
            prompt_tags=request.prompt_tags,
            metadata=request.metadata,
            turn_number=max(view.turn_number, earlier + 1),
        )
        try:
            provider, model = resolve_model(request.model or self._brain.model, request.provider)
            system_prompt = request.system_prompt or self._beginner.system_prompt(info)
        except BrainqError as failure:
            return _failed(str(failure))
        history = view.history
        if not view.begun:
            begun = self._beginner.begin(claim, view, info, system_prompt, earlier)
            if begun is None:
                return None
            history = tuple(begun) if request.kind == "review" else (*history, *begun)
            view = replace(view, history=history, history_length=view.history_length + len(begun))
        if not view.opened:
            opened = self._beside.open(claim, view)
            if opened:
                return RungAgain(opened) if opened != "lost" else None
        drain = TurnMailbox(view.inputs).drain()
        if drain.readiness is not None and view.flag:
            self._brakes.lift(claim.session_id, claim.turn_id)
        inputs = messages_of(drain, claim.turn_id, view.step + 1)
        limits = request.limits.over(self._brain.limits)
        specs = self._tools(view)
        tools_estimate = self._tools_estimate(specs)
        tracker = ContextTracker.of(limits.max_context_tokens, view.known)
        memory, pack_json = opened_memory(view.opening), opened_pack(view.opening)
        prepared = self._preparer.prepare(
            request,
            (*history, *inputs),
            system_prompt=system_prompt,
            provider=provider.name,
            model=model,
            today=datetime.now(UTC),
            max_context_tokens=limits.max_context_tokens,
            memory_text=memory.text,
            pack_json=pack_json,
            thinking_prefix=PREFIXES[self._brain.thinking],
            tools_estimate=tools_estimate,
            ratio=tracker.ratio,
        )
        compacted = self._beside.compact(claim, view, prepared, tracker)
        if compacted:
            return RungAgain(compacted) if compacted != "lost" else None
        estimate = prepared.estimate + tools_estimate
        # Where the length of the reply is bounded its worst case is reserved, too.
        worst = TokenUsage(input_tokens=tracker.tokens(estimate), output_tokens=limits.max_output_tokens or 0)
        asking = Asking(
            provider,
            model,
            prepared.messages,
            specs,
            limits,
            estimate,
            worst,
            info.turn_number,
            len(view.inputs),
            inputs,
            readiness_word(drain),
        )
        return self._attempts(claim, view, asking, lost)

    def _tools_estimate(self, specs: Sequence[ToolSpec]) -> int:
        """`estimate_tools`, each tool of the brain looked at once: their schemas do not change."""
        known = self._tool_tokens
        for spec in specs:
            if spec.name not in known:
                known[spec.name] = estimate_tools((spec,))
        return sum(known[spec.name] for spec in specs)

    def _tools(self, view: TurnView) -> tuple[ToolSpec, ...]:
        """The tools this turn's model sees: chosen before the first step, and the same ones at each later one."""
        specs = tuple(self._brain.tools.specs.values())
        if self._selector is None or len(specs) <= self._selector.max_tools:
            return specs
        if view.shown:
            return tuple(spec for spec in specs if spec.name in view.shown)
        context = context_of(view.history, view.request.turn_id)
        return self._selector.select(view.request.user_message, specs, context=context)

    def _attempts(
        self,
        claim: TurnClaim,
        view: TurnView,
        asking: Asking,
        lost: Callable[[], bool],
    ) -> Asked:
        provider, model, specs = asking.provider, asking.model, asking.specs
        shown = () if len(specs) == len(self._brain.tools.specs) else tuple(spec.name for spec in specs)
        estimate_usd = self._price(provider.name, model, asking.worst)
        ends_at = time.monotonic() + view.remaining_ms / 1000
        drained, inputs, readiness = asking.drained, asking.inputs, asking.readiness
        for remaining in reversed(range(MAX_ATTEMPTS_A_STEP)):
            step = self._turns.begin_step(
                claim,
                asking.estimate,
                asking.worst.total,
                estimate_usd,
                shown,
                drained,
                inputs,
                readiness,
            )
            drained, inputs, readiness = 0, (), ""  # read once, also when the step is attempted again
            if step == "LOST":
                return None
            if isinstance(step, str):
                return Answer(SPENT[step])
            _, number, attempt = step
            request = ModelRequest(
                model=model,
                messages=asking.messages,
                tools=specs,
                max_output_tokens=asking.limits.max_output_tokens,
                output_schema=view.request.output_schema,
                timeout_s=max(0.001, ends_at - time.monotonic()),
                first_token_s=asking.limits.first_token_s,
                idle_s=asking.limits.idle_s,
                session_id=claim.session_id,
                turn_id=claim.turn_id,
                step=number,
                attempt=attempt,
                turn_number=asking.turn_number,
                metadata=view.request.metadata,
            )
            tell_retry = self._retry_teller(claim, number, attempt)
            tail = TextTail(self._teller(claim, number, attempt), tell_retry)
            try:
                reply = ask(provider, request, tail, lost, self._chunk_callback(claim, number, attempt))
            except TurnLost:
                return None
            except ProviderError as failure:
                if failure.kind in BEGUN_AGAIN and failure.retryable and remaining:
                    log.info(
                        "stream broke, asking again", turn_id=claim.turn_id, step=number, attempt=attempt
                    )
                    wait_s = min(random.random() * attempt * PAUSE_S, max(0.0, ends_at - time.monotonic()))
                    tell_retry(ModelRetry(kind=failure.kind, wait_s=wait_s))
                    self._pause(wait_s)
                    continue
                return _after_failure(failure, asking, number, estimate_usd)
            except Exception as failure:
                log.error("provider raised", failure=failure, turn_id=claim.turn_id, step=number)
                return _failed(f"provider {provider.name!r} raised {type(failure).__name__}")
            price = self._price(provider.name, model, reply.usage)
            spend = Spend.of("step", number, model, reply.usage, price)
            return self._commit(claim, view, number, reply, spend, tail)
        raise AssertionError("the last attempt returns")

    def _commit(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        spend: Spend,
        tail: TextTail,
    ) -> Asked:
        judged = judge_whole(view, step, reply)
        if isinstance(judged, TellModel):
            return self._tell(claim, view, step, reply, spend, tail, judged)
        if isinstance(judged, End) or not reply.calls:
            answered = bool(reply.text.strip())
            end = judged or End(
                Ending.COMPLETED,
                StopReason.ANSWERED if answered else StopReason.EMPTY_REPLY,
                "the model answered" if answered else "the model's reply was empty",
            )
            text = reply.text if answered else end.text
            message = Message(role="assistant", content=text, turn=claim.turn_id, step=step)
            return Answer(end, message, spend, tail.rest())
        plan = plan_calls(
            self._brain,
            view,
            step,
            reply,
            lambda ids: self._budget.claim(claim.session_id, claim.turn_id, "tool_calls", ids),
        )
        self._asks(claim, plan)
        wants = self._turns.commit_calls(
            claim, step, plan.message, plan.calls, spend, tail.rest(), plan.block_tools
        )
        return None if wants is None else Calls(wants)

    def _tell(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        spend: Spend,
        tail: TextTail,
        tell: TellModel,
    ) -> Asked:
        """Nothing of the reply is acted on; the next step reads why."""
        log.info("reply not whole", turn_id=claim.turn_id, step=step, why=tell.problem.value)
        plan = refuse_calls(self._brain, view, step, reply, tell.text)
        notes = () if plan.calls else (told(tell, claim.turn_id, step),)
        wants = self._turns.commit_calls(
            claim, step, plan.message, plan.calls, spend, tail.rest(), (), tell.problem.value, notes
        )
        return None if wants is None else Calls(wants)

    def _asks(self, claim: TurnClaim, plan: Plan) -> None:
        """Write down what people will be asked, before anybody can see that they are."""
        asked = asked_calls(claim, plan.calls, self._brain.redact_logs)
        if asked:
            self._approvals.ask(asked)

    def _teller(self, claim: TurnClaim, step: int, attempt: int) -> Callable[[str], bool]:
        return lambda text: self._turns.tell_delta(claim, step, attempt, text)

    def _retry_teller(self, claim: TurnClaim, step: int, attempt: int) -> Callable[[ModelRetry], None]:
        def tell(retry: ModelRetry) -> None:
            try:
                self._turns.tell_retry(claim, step, attempt, retry.kind, retry.wait_s)
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


def _failed(error: str) -> Answer:
    return Answer(End(Ending.FAILED, StopReason.MODEL_ERROR, "the model could not be asked", error))


def _after_failure(failure: ProviderError, asking: Asking, step: int, estimate_usd: float | None) -> Answer:
    if failure.kind == "timeout":
        end = End(Ending.TIMED_OUT, StopReason.DEADLINE, "the model did not answer by the deadline")
    else:
        end = _failed(str(failure)).end
    if failure.kind not in MAYBE_BILLED:
        return Answer(end)
    # Nobody knows what the service has worked on: it is charged like an attempt whose worker was lost.
    usage = TokenUsage(input_tokens=asking.estimate)
    return Answer(end, spend=Spend.of("lost", step, asking.model, usage, estimate_usd))

"""Finalizer steps: their interface and context, brainq's own steps, and the quarantine of steps that lost workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry.trace import INVALID_SPAN

from brainq.contracts.callbacks import TurnEnd, UsageInfo
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.message import Message
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import Ending
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.middleware import FinalStepInfo, notify_hooks_in_time, run_every_hook
from brainq.engine.finalize.result import citations, decision_record, make_result, with_citations
from brainq.engine.jobs import MAX_ERROR_CHARS
from brainq.engine.models.providers import provider_name
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.metrics.recording import count_lost, count_turn
from brainq.runtime.observe.spans import final_span
from brainq.runtime.observe.tracing import in_span, tracer
from brainq.runtime.processes.threads import call_within
from brainq.runtime.text.failures import failure_name, failure_words

if TYPE_CHECKING:
    from brainq.adapters.redis.finals import RedisFinalChain
    from brainq.adapters.sql.records import SqlRecords
    from brainq.engine.finalize.recall import LateChain
    from brainq.engine.people.children import ChildDesk

# When a process dies, all its steps die with it, and nothing shows which one was the cause. A step that has lost this
# many workers runs in a separate process, so that its next death harms no other step. Turns are treated the same way.
MAX_LOST_WORKERS = 2
RunInQuarantine = Callable[[FinalStepClaim, "float | None"], None]
"""A function that runs a claimed step in a separate process, within a limit in seconds. Raises QuarantinedStepError."""

NO_USAGE = TokenUsage()
REVIEW_PLACEHOLDER = "[A review of this conversation was asked for.]"  # replaces the question, which is not kept
DECISION_LIMIT_S = 60.0
LIMIT_S = 60.0  # the default time limit of a step; `limit_s` of a step overrides it
PROCESS_START_S = 10.0  # the extra time of a step that runs in a separate process


class QuarantinedStepError(Exception):
    """The error of a step that failed or died in quarantine. `error_type` is the name of its class."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(error_type, text)
        self.error_type = error_type
        self.text = text

    def __str__(self) -> str:
        return self.text


def error_type_name(failure: Exception) -> str:
    """Return the name of the failure's class, even if it was raised in another process."""
    return failure.error_type if isinstance(failure, QuarantinedStepError) else failure_name(failure)


def shown_failure(failure: Exception, *, redact: bool) -> str:
    """Return the text of a failed try that SQL keeps."""
    kind = error_type_name(failure)
    return kind if redact else f"{kind}: {failure_words(failure)}"[:MAX_ERROR_CHARS]


@dataclass(frozen=True, slots=True)
class StepContext:
    """The ended turn, which is read on first use, and the services that a step needs.

    outgoing   collects the result, which the script that ends the step publishes; None to publish it at once
    made       the result, if another step under the same claim has already built it
    beside     the names of later steps whose rows this step may write in its own transaction
    written    those of them whose rows were written
    """

    claim: FinalStepClaim
    read_turn: Callable[[], EndedTurn]
    chain: RedisFinalChain | LateChain
    records: SqlRecords
    brain: Brain
    parents: ChildDesk | None = None
    outgoing: list[TurnResult] | None = None
    made: list[TurnResult] = field(default_factory=list[TurnResult])
    beside: Collection[str] = ()
    written: set[str] = field(default_factory=set[str])

    @property
    def turn(self) -> EndedTurn:
        return self.read_turn()

    def conversation(self) -> tuple[Message, ...]:
        """Return the turn's messages: from SQL if they are logged, otherwise from Redis."""
        return self.records.transcript(self.claim.turn_id) or self.details().messages

    def details(self) -> TurnDetails:
        return self.chain.details_of(self.claim)

    def result(self) -> TurnResult:
        """Return the caller's result."""
        if not self.made:
            self.made.append(make_result(self.turn))
        return self.made[0]

    def send(self, result: TurnResult) -> None:
        """Publish the result now, or when the step ends."""
        if self.outgoing is None:
            self.chain.publish(result)
        else:
            self.outgoing.append(result)


@dataclass(frozen=True, slots=True)
class FinalStepRunner:
    """A runner of one try of a step: in a span, between the brain's middlewares, within the step's time limit.

    quarantine   runs steps that have repeatedly lost their worker, each in a separate process; None to run them here
    """

    quarantine: RunInQuarantine | None = None

    def run(self, step: FinalStep, context: StepContext, *, bounded: bool = True) -> None:
        """Run the step. Raises what the step raises.

        bounded   whether to abandon the step after its time limit; False if the caller does that
        """
        limit_s = step_limit_s(step)
        with _span(context), _around_step(context):
            if context.claim.lost >= MAX_LOST_WORKERS and self.quarantine is not None:
                self.quarantine(context.claim, limit_s)
            elif limit_s is None or not bounded:
                step.run(context)
            else:
                call_within(limit_s, f"step {step.name!r}", lambda: step.run(context))


def step_limit_s(step: FinalStep) -> float | None:
    """Return the time limit of a try in seconds, or None if the step bounds itself."""
    return getattr(step, "limit_s", LIMIT_S)


def _span(context: StepContext) -> AbstractContextManager[object]:
    """Open the span of one try. The turn is read for it only if telemetry is on."""
    if tracer() is None:
        return INVALID_SPAN
    return in_span(final_span(context.claim, context.turn.request), redact=context.brain.redact_logs)


@contextmanager
def _around_step(context: StepContext) -> Generator[None]:
    """Call the brain's middlewares before and after one try of the step."""
    hooks, claim = context.brain.hooks, context.claim
    if not hooks.before_final_step and not hooks.after_final_step:
        yield
        return
    step = FinalStepInfo(claim.turn_id, claim.session_id, claim.step, claim.tries, claim.step_key)
    failure: Exception | None = None
    notify_hooks_in_time(hooks.before_final_step, claim.turn_id, step)
    try:
        yield
    except Exception as error:
        failure = error
        raise
    finally:
        notify_hooks_in_time(hooks.after_final_step, claim.turn_id, step, failure)


class FinalStep(Protocol):
    """One finalizer step. `run` may run again after a crash, and the repetition must do no harm.

    Optional attributes: `needs`, the names of earlier steps that must have succeeded first (steps after the result
    always need it); `limit_s`, the time limit of a try in seconds (None if the step bounds itself); `is_joined`, only
    for brainq's own steps: whether the step may share the claim of another one.
    """

    name: str

    def is_configured(self, brain: Brain) -> bool: ...
    def run(self, context: StepContext) -> None: ...


class AppendCitations:
    """The step that appends the list of sources, if the turn or the brain requests it. Repeating it is safe."""

    name = "citations"
    needs = ()
    limit_s: float | None = None  # no code of the brain
    is_joined = True

    def is_configured(self, brain: Brain) -> bool:
        return True  # each turn may ask for it

    def run(self, context: StepContext) -> None:
        if not wants_citations(context):
            return
        turn = context.turn
        if turn.ending is not Ending.COMPLETED or turn.request.output_schema is not None:
            return  # an answer in JSON must stay valid JSON
        text = with_citations(turn.text, citations(turn, "local"), citations(turn, "web"))
        if text != turn.text:
            context.chain.set_text(context.claim.session_id, context.claim.turn_id, text)


def wants_citations(context: StepContext) -> bool:
    wanted = context.turn.request.show_citations
    return context.brain.show_citations if wanted is None else wanted


FIRST_STEP = AppendCitations.name
"""The first step of every chain. A turn that ends before any worker has loaded its brain starts there, too."""


class CallUsage:
    """The step that calls `on_usage` with the turn's tokens, unless all are zero. At least once, with a stable
    step_key."""

    name = "usage"
    needs = ("citations",)

    def is_configured(self, brain: Brain) -> bool:
        return brain.callbacks.on_usage is not None

    def run(self, context: StepContext) -> None:
        turn, callback = context.turn, context.brain.callbacks.on_usage
        if callback is None or turn.usage == NO_USAGE:
            return
        callback(
            UsageInfo(
                turn_id=turn.request.turn_id,
                session_id=turn.request.session_id,
                step_key=context.claim.step_key,
                usage=turn.usage,
                model=turn.request.model or _model_name(context.brain.model),
                cost_usd=turn.cost_usd if turn.cost_known else None,
            )
        )


def _model_name(model: Any) -> str:
    return model if isinstance(model, str) else str(model.name)


class LogAnswer:
    """The step that writes the answer to the event log and the result to the turn's row, in its own transaction."""

    name = "log"
    needs = ("citations",)
    limit_s: float | None = None  # no code of the brain
    is_joined = True

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn, claim = context.turn, context.claim
        # If the sweeper has already published a result, the caller has that one: SQL keeps it, with its warnings.
        sent = context.chain.published(claim.session_id, claim.turn_id) if claim.sent else None
        result, details = sent or context.result(), context.details()
        question, answered = log_entries(turn.request, result.text, begun=bool(details.messages))
        rows = (claim, result, context.brain.redact_logs, details, question, answered)
        decision = None
        if RecordDecision.name in context.beside:  # a commit costs more than a row
            decision = replace(claim, step=RecordDecision.name), decision_record(turn)
        try:
            is_first = context.records.record_answer(*rows, decision)
        except Exception:
            if decision is None:
                raise
            # SQL may have refused the decision. Its own step writes it later, so that the result is not delayed.
            is_first, decision = context.records.record_answer(*rows), None
        if is_first:
            _count_turn(context.brain, turn, result, details)
            if decision is not None:
                context.written.add(RecordDecision.name)


def _count_turn(brain: Brain, turn: EndedTurn, result: TurnResult, details: TurnDetails) -> None:
    request = turn.request
    count_turn(
        COUNTERS,
        result,
        details.trace,
        brain=request.brain or brain.name,
        wait_ms=turn.wait_ms,
        has_tool=lambda name: brain.tools.get(name) is not None,
        client_tools=[tool.name for tool in request.client_tools],
    )
    count_lost(COUNTERS, result.spends, provider_name(brain.model, request.model, request.provider))


def log_entries(request: TurnRequest, text: str, *, begun: bool) -> tuple[str, str]:
    """Return an ended turn's entries for the event log: (from the user, from the assistant), "" for none."""
    match request.kind:
        case "chat":
            return "" if begun else request.message_with_files, text
        case "review":
            return REVIEW_PLACEHOLDER, text
        case "compact":
            return "", ""


class SendResult:
    """The step that publishes the TurnResult unless the sweeper has, and passes it to the parent call, if any."""

    name = "result"
    needs = ("citations", "log")
    limit_s: float | None = None  # no code of the brain
    is_joined = True

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn, claim, result = context.turn, context.claim, context.result()
        if turn.request.parent is None or context.parents is None:
            context.send(result)
            return
        context.chain.publish(result)
        sent = context.chain.published(claim.session_id, claim.turn_id)
        context.parents.deliver(turn.request, sent or result)


class RecordDecision:
    """The step that writes the RuntimeDecisionRecord: to SQL with its own row, or to the brain's decision store."""

    name = "decision"
    limit_s: float | None = None  # the brain's own store is limited by DECISION_LIMIT_S

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        if self.name in context.written:
            return
        claim, own = context.claim, context.brain.decisions
        record = decision_record(context.turn)
        if own is None:
            context.records.record_decision(claim, record)
            return
        call_within(DECISION_LIMIT_S, "decision store", lambda: own.write(record, claim.step_key))
        context.records.note_done(claim)


class CallTurnEnd:
    """The step that calls `on_turn_end` and the middlewares' `after_turn`. At least once, with a stable step_key."""

    name = "end"

    def is_configured(self, brain: Brain) -> bool:
        return bool(brain.hooks.after_turn)

    def run(self, context: StepContext) -> None:
        turn = context.turn
        if turn.request.kind == "compact":
            return  # a compaction has no question and no answer; `on_turn_start` was not called either
        run_every_hook(
            context.brain.hooks.after_turn,
            TurnEnd(
                turn_id=turn.request.turn_id,
                session_id=turn.request.session_id,
                result=make_result(turn),
                step_key=context.claim.step_key,
            ),
        )

"""Finalizer steps: what a step is and is given, brainq's own steps, and the processes of steps that lost their
workers.
"""

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

# A process that dies takes all its steps with it, and none of them shows which one did it. A step that lost so many
# runs by itself: then its death is surely its own, and the others' steps end. As for turns (`state/turns.py`).
MAX_LOST_WORKERS = 2
RunInQuarantine = Callable[[FinalStepClaim, "float | None"], None]
"""Runs a claimed step in a process of its own, within so many seconds. Raises QuarantinedStepError."""

NO_USAGE = TokenUsage()
REVIEW_PLACEHOLDER = "[A review of this conversation was asked for.]"  # of the question, of which nothing else is kept
DECISION_LIMIT_S = 60.0
LIMIT_S = 60.0  # of a step that runs code of the brain's; a step may say otherwise by `limit_s`
PROCESS_START_S = 10.0  # how much longer a step in a process of its own may take


class QuarantinedStepError(Exception):
    """A step in quarantine raised, or died. `error_type` is the class's name, `text` its message."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(error_type, text)
        self.error_type = error_type
        self.text = text

    def __str__(self) -> str:
        return self.text


def error_type_name(failure: Exception) -> str:
    """Return the name of the failure's class, also if it was raised in another process."""
    return failure.error_type if isinstance(failure, QuarantinedStepError) else failure_name(failure)


def shown_failure(failure: Exception, *, redact: bool) -> str:
    """Return what SQL keeps of a failed try."""
    kind = error_type_name(failure)
    return kind if redact else f"{kind}: {failure_words(failure)}"[:MAX_ERROR_CHARS]


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given: the ended turn, read when first asked for, and the ports.

    outgoing   takes the result that goes out with the script that ends the step; None: it goes out at once
    made       the result, where a step under the same claim made it
    beside     steps that come later, whose rows another may write with its own, by name
    written    those of them whose rows were written so
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
        """The turn's messages: from SQL once they are logged, else from Redis."""
        return self.records.transcript(self.claim.turn_id) or self.details().messages

    def details(self) -> TurnDetails:
        return self.chain.details_of(self.claim)

    def result(self) -> TurnResult:
        """Return the caller's result."""
        if not self.made:
            self.made.append(make_result(self.turn))
        return self.made[0]

    def send(self, result: TurnResult) -> None:
        """Let the result go out, once the step has done its part at the latest."""
        if self.outgoing is None:
            self.chain.publish(result)
        else:
            self.outgoing.append(result)


@dataclass(frozen=True, slots=True)
class FinalStepRunner:
    """Runs a try of a step: in a span, between the brain's middlewares, within its limit.

    quarantine   runs steps that lost their worker again and again, each in a process of its own; None: in this process
    """

    quarantine: RunInQuarantine | None = None

    def run(self, step: FinalStep, context: StepContext, *, bounded: bool = True) -> None:
        """Run the step. Raises what it raises.

        bounded   whether to abandon the step after its limit; the caller does so if not
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
    """Return how long a try may take; None if the step bounds itself."""
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
    """One finalizer step. Its `run` may run again after a crash and must then do no harm.

    Optional: `needs`, the names of earlier steps (the result is always among them, behind it), whose retries it waits
    for; `limit_s`, how long a try may take (None: it bounds itself); `is_joined`, for brainq's own steps: whether it
    may be done under the claim of another such step.
    """

    name: str

    def is_configured(self, brain: Brain) -> bool: ...
    def run(self, context: StepContext) -> None: ...


class AppendCitations:
    """Appends the list of sources, where the turn or the brain asks for it. Safe to repeat."""

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
            return  # what is to be read as JSON has nothing under it
        text = with_citations(turn.text, citations(turn, "local"), citations(turn, "web"))
        if text != turn.text:
            context.chain.set_text(context.claim.session_id, context.claim.turn_id, text)


def wants_citations(context: StepContext) -> bool:
    wanted = context.turn.request.show_citations
    return context.brain.show_citations if wanted is None else wanted


FIRST_STEP = AppendCitations.name
"""Of every brain's chain: a turn that is over before anybody has looked at its brain begins it, too."""


class CallUsage:
    """Calls `on_usage` with the turn's tokens, if any count is not zero. At least once, with a stable step_key."""

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
    """Writes the answer to the event log and the result to the turn's row, in one transaction with its step. Takes the
    decision along."""

    name = "log"
    needs = ("citations",)
    limit_s: float | None = None  # no code of the brain
    is_joined = True

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn, claim = context.turn, context.claim
        # A result that the sweeper sent before is the one the caller has: SQL keeps that, with its warnings.
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
            # The decision may be what SQL refuses. It has a step of its own, and must not delay the result.
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
    """What the session's event log gets of a turn that has ended: (from the user, from the assistant), "" for
    nothing."""
    match request.kind:
        case "chat":
            return "" if begun else request.message_with_files, text
        case "review":
            return REVIEW_PLACEHOLDER, text
        case "compact":
            return "", ""


class SendResult:
    """Publishes the TurnResult, and gives it to the call that started the turn, if one did. A result the sweeper sent
    before stays as it went out."""

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
    """Writes one RuntimeDecisionRecord a turn: to SQL with the step's own row, or to a store of the brain's."""

    name = "decision"
    limit_s: float | None = None  # a store of the brain's own has a limit of its own

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
    """Calls `on_turn_end`, and `after_turn` of middlewares, with the result. At least once, with a stable step_key."""

    name = "end"

    def is_configured(self, brain: Brain) -> bool:
        return bool(brain.hooks.after_turn)

    def run(self, context: StepContext) -> None:
        turn = context.turn
        if turn.request.kind == "compact":
            return  # nothing was asked and nothing answered; `on_turn_start` was not called either
        run_every_hook(
            context.brain.hooks.after_turn,
            TurnEnd(
                turn_id=turn.request.turn_id,
                session_id=turn.request.session_id,
                result=make_result(turn),
                step_key=context.claim.step_key,
            ),
        )

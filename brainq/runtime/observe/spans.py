"""The spans of a turn: its submit, the turn itself, its advances, calls and model calls, and the work after its end.

All of them are children of the turn's own span, whose id is derived from the turn's. The finalizer records that span
once the result is out. So a turn's spans are in one tree, whichever processes worked on it, or died.

Spans have content only on request: JSON in the form of the GenAI conventions, without attachments and reasoning. A
brain with `redact_logs` keeps its content out of spans, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace

from brainq.contracts.claim import CallClaim, CallRef, FinalStepClaim, TurnClaim
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply, ModelRequest, ModelRetry
from brainq.contracts.status import Ending, TraceStatus
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import EndedTurn, TurnView
from brainq.contracts.webhook import DeliveryClaim
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe import tracing
from brainq.runtime.observe.otel_setup import captures_content

ERRORS = frozenset({TraceStatus.FAILED, TraceStatus.TIMED_OUT, TraceStatus.TIMED_OUT_LATE, TraceStatus.UNKNOWN})
_parent_context: ContextVar[trace.SpanContext | None] = ContextVar("brainq_came_with", default=None)


def tenant_of(session_id: str) -> str | None:
    """Return the part of a session's id before its first colon, or None without one."""
    tenant, colon, _ = session_id.partition(":")
    return tenant if colon else None


def advance_span(claim: TurnClaim, view: TurnView, parked: tuple[tuple[str, int], ...] = ()) -> trace.Span:
    """Return the span of one advance of a turn. `parked` has the id and the attempt of the last step's parked calls."""
    recorder = tracing.tracer()
    if recorder is None:
        return trace.INVALID_SPAN
    at = recorder.turn(claim.turn_id, view.request.traceparent)
    span = recorder.start(
        names.ADVANCE,
        {
            **_of_turn(claim.session_id, claim.turn_id),
            **_of_prompt(view.request),
            names.AGENT: view.request.brain,
            names.STEP: view.step + 1,
            names.FENCE: claim.fence,
            names.QUEUE_WAIT_MS: max(0, claim.now_ms - view.rung_at_ms) if view.rung_at_ms else None,
        },
        parent=at,
        kind=trace.SpanKind.CONSUMER,
        links=[tracing.call_context(at, claim.turn_id, call, attempt) for call, attempt in parked],
    )
    if view.lost_attempts:
        span.add_event(names.LEASE_LAPSED, {names.LOST: view.lost_attempts})
    for call, _ in parked:
        span.add_event(names.RESUMED, {names.PARKED_CALL: call})
    return span


def call_span(claim: CallClaim, brain: str, *, redact: bool) -> AbstractContextManager[trace.Span]:
    """Return the open span of one attempt at a call. With `redact` it never records content."""
    recorder = tracing.tracer()
    if recorder is None:
        return trace.INVALID_SPAN
    at = recorder.turn(claim.turn_id, claim.traceparent)
    span = recorder.start(
        f"{names.EXECUTE_TOOL} {claim.tool}",
        {
            **_of_turn(claim.session_id, claim.turn_id),
            names.OPERATION: names.EXECUTE_TOOL,
            names.AGENT: brain,
            names.TOOL: claim.tool,
            names.TOOL_TYPE: "function",
            names.TOOL_CALL: claim.call_id,
            names.STEP: claim.step,
            names.EFFECT: claim.effect.value,
            names.ATTEMPT: claim.attempt,
            names.QUEUE_WAIT_MS: claim.waited_ms,
            names.LANE_WAIT_MS: claim.lane_waited_ms,
            names.TOOL_ARGUMENTS: json.dumps(claim.arguments) if recorder.content and not redact else None,
        },
        parent=at,
        at=tracing.call_context(at, claim.turn_id, claim.call_id, claim.attempt),
    )
    return tracing.in_span(span, redact=redact)


def end_call(span: trace.Span, status: TraceStatus, error_type: str = "", result: str | None = None) -> None:
    """Record how the attempt ended. `result` is recorded if content was requested."""
    recorder = tracing.tracer()
    if recorder is None:
        return
    tracing.note(span, {names.OUTCOME: status.value, names.TOOL_RESULT: result if recorder.content else None})
    if status is TraceStatus.PARKED:
        span.add_event(names.CALL_PARKED)
    if status in ERRORS:
        tracing.fail_span(span, error_type or status.value)


def rescue_span(ref: CallRef, traceparent: str | None, attempt: int, tool: str) -> trace.Span:
    """Return the span of the decision about a call whose worker stopped beating."""
    recorder = tracing.tracer()
    if recorder is None:
        return trace.INVALID_SPAN
    at = recorder.turn(ref.turn_id, traceparent)
    span = recorder.start(
        names.RESCUE,
        {
            **_of_turn(ref.session_id, ref.turn_id),
            names.TOOL: tool,
            names.TOOL_CALL: ref.call_id,
            names.ATTEMPT: attempt,
        },
        parent=at,
        # Its span was lost with its worker, unless that was only frozen.
        links=[tracing.call_context(at, ref.turn_id, ref.call_id, attempt)],
    )
    span.add_event(names.LEASE_LAPSED)
    return span


def final_span(claim: FinalStepClaim, request: TurnRequest) -> trace.Span:
    """Return the span of one try of a finalizer step."""
    recorder = tracing.tracer()
    if recorder is None:
        return trace.INVALID_SPAN
    span = recorder.start(
        f"{names.FINALIZE} {claim.step}",
        {
            **_of_turn(claim.session_id, claim.turn_id),
            names.AGENT: request.brain,
            names.FINAL_STEP: claim.step,
            names.TRIES: claim.tries,
            names.QUEUE_WAIT_MS: claim.waited_ms,
        },
        parent=recorder.turn(claim.turn_id, request.traceparent),
    )
    if claim.lost:
        span.add_event(names.LEASE_LAPSED, {names.LOST: claim.lost})
    return span


def judge_span(session_id: str, turn_id: str, traceparent: str | None, judge: str, tries: int) -> trace.Span:
    """Return the span of one try of a judge."""
    recorder = tracing.tracer()
    if recorder is None:
        return trace.INVALID_SPAN
    attributes = {**_of_turn(session_id, turn_id), names.JUDGE_NAME: judge, names.TRIES: tries}
    return recorder.start(f"{names.JUDGE} {judge}", attributes, parent=recorder.turn(turn_id, traceparent))


def webhook_span(delivery: DeliveryClaim, request: TurnRequest | None, host: str) -> trace.Span:
    """Return the span of one try of a delivery. Only the `host` of the URL is recorded, because its path may hold a
    secret."""
    recorder = tracing.tracer()
    if recorder is None:
        return trace.INVALID_SPAN
    about = {} if request is None else _of_turn(request.session_id, request.turn_id)
    return recorder.start(
        names.WEBHOOK,
        {
            names.TURN: delivery.turn_id,
            **about,
            names.WEBHOOK_KIND: delivery.event,
            names.TRIES: delivery.tries,
            names.HTTP_METHOD: "POST",
            names.SERVER_ADDRESS: host,
        },
        parent=recorder.turn(delivery.turn_id, request.traceparent if request else None),
        kind=trace.SpanKind.CLIENT,
    )


def record_turn(turn: EndedTurn, brain: str) -> None:
    """Record the turn's own span, from when it became active to its end."""
    recorder = tracing.tracer()
    if recorder is None:
        return
    request, usage = turn.request, turn.usage
    began_ms = turn.ended_at_ms - turn.elapsed_ms
    attributes: tracing.Attributes = {
        **_of_turn(request.session_id, request.turn_id),
        **_of_prompt(request),
        names.PROMPT_HASH: turn.prompt_hash or None,
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT: brain,
        names.PROVIDER: request.provider,
        names.REQUEST_MODEL: request.model,
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHE_READ_TOKENS: usage.cache_read_tokens,
        names.CACHE_CREATION_TOKENS: usage.cache_creation_tokens,
        names.KIND: request.kind,
        names.ENDING: turn.ending.value,
        names.STOP_REASON: turn.stop_reason.value,
        names.STEPS: turn.steps,
        names.TOOL_CALLS: turn.tool_calls,
        names.WAITED_MS: max(0, began_ms - turn.created_at_ms),
        names.PARKED_MS: turn.parked_ms,
        names.COST_USD: turn.cost_usd if turn.cost_known else None,
    }
    span = recorder.start(
        f"{names.INVOKE_AGENT} {brain}",
        attributes,
        at=recorder.turn(request.turn_id, request.traceparent),
        parent=tracing.read_traceparent(request.traceparent) or trace.INVALID_SPAN_CONTEXT,
        start_ms=began_ms,
    )
    if turn.ending in (Ending.FAILED, Ending.TIMED_OUT):
        tracing.fail_span(span, turn.stop_reason.value)
    span.end(max(began_ms, turn.ended_at_ms) * tracing.MS)


def _of_turn(session_id: str, turn_id: str) -> dict[str, str | None]:
    return {names.CONVERSATION: session_id, names.TURN: turn_id, names.TENANT: tenant_of(session_id)}


def _of_prompt(request: TurnRequest) -> tracing.Attributes:
    return {
        names.PROMPT: request.prompt_id,
        names.PROMPT_VERSION: request.prompt_version,
        names.PROMPT_TAGS: request.prompt_tags or None,
    }


_PROMPT_NAMES = (names.PROMPT, names.PROMPT_VERSION, names.PROMPT_TAGS, names.PROMPT_HASH)
"""The prompt's names, which a model call copies from the span around it."""


def note_prompt_hash(rendered: str) -> None:
    """Record the hash of the prompt's text in the open span."""
    if tracing.tracer() is not None:
        tracing.note(trace.get_current_span(), {names.PROMPT_HASH: rendered})


def set_parent_context(traceparent: str | None) -> None:
    """Set the `traceparent` of the request or message behind all further submits in this context."""
    _parent_context.set(tracing.read_traceparent(traceparent))


@contextmanager
def submit_span(request: TurnRequest) -> Generator[TurnRequest]:
    """Yield the request with the `traceparent` that its turn continues: that of a span of the submit if spans are
    recorded, or else the producer's own."""
    # Without brainq's tracer: that of the program's own provider, if it has one.
    recorder = tracing.tracer() or tracing.tracer_of(trace.get_tracer_provider(), content=captures_content())
    place = tracing.current_place() or _parent_context.get()
    if request.traceparent is not None or (recorder is None and place is None):
        yield request
    elif recorder is None:
        assert place is not None
        yield request.model_copy(update={"traceparent": tracing.traceparent_of(place)})
    else:
        attributes = {
            names.TURN: request.turn_id,
            names.CONVERSATION: request.session_id,
            names.TENANT: tenant_of(request.session_id),
            names.AGENT: request.brain,
            names.ON_BUSY: request.on_busy,
        }
        with tracing.in_span(
            recorder.start(names.SUBMIT, attributes, parent=place, kind=trace.SpanKind.PRODUCER)
        ) as span:
            yield request.model_copy(update={"traceparent": tracing.traceparent_of(span.get_span_context())})


def messages_json(messages: Sequence[Message]) -> str:
    """Return the attribute `gen_ai.input.messages`."""
    return json.dumps([_message(message) for message in messages])


def reply_json(reply: ModelReply) -> str:
    """Return the attribute `gen_ai.output.messages`."""
    parts = [*_text(reply.text), *(_call(call) for call in reply.calls)]
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}])


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.call_id, "response": message.content}
        return {"role": "tool", "parts": [part]}
    parts = [*_text(message.content), *(_call(call) for call in message.calls)]
    return {"role": message.role, "parts": parts}


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}] if text else []


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}


class ChatSpan:
    """The span of one model call. Enter `span`."""

    def __init__(self, span: trace.Span, *, content: bool) -> None:
        self.span = span
        self._content = content
        self._began_s = time.monotonic()
        self._is_answering = False

    def chunk(self) -> None:
        """Note a piece of the answer."""
        if not self._is_answering:
            self._is_answering = True
            self.span.set_attribute(names.FIRST_CHUNK_S, round(time.monotonic() - self._began_s, 3))

    def retry(self, retry: ModelRetry) -> None:
        """Note a retry."""
        self.span.add_event(names.MODEL_RETRY, {names.RETRY_KIND: retry.kind, names.RETRY_WAIT_S: retry.wait_s})

    def reply(self, reply: ModelReply) -> None:
        """Note the whole answer."""
        if not self.span.is_recording():
            return
        usage = reply.usage
        tracing.note(
            self.span,
            {
                names.RESPONSE_MODEL: reply.model or None,
                names.FINISH_REASONS: [reply.finish_reason] if reply.finish_reason else None,
                names.INPUT_TOKENS: usage.input_tokens,
                names.OUTPUT_TOKENS: usage.output_tokens,
                names.CACHE_READ_TOKENS: usage.cache_read_tokens or None,
                names.CACHE_CREATION_TOKENS: usage.cache_creation_tokens or None,
                names.OUTPUT_MESSAGES: reply_json(reply) if self._content else None,
            },
        )


def chat_span(provider: object, request: ModelRequest) -> ChatSpan:
    """Return the span of a call of `provider`, under the open span of this context."""
    recorder = tracing.tracer()
    if recorder is None:
        return ChatSpan(trace.INVALID_SPAN, content=False)
    content = recorder.content and not tracing.content_is_excluded()
    host, port = _server(provider)
    around: tracing.Attributes = getattr(trace.get_current_span(), "attributes", None) or {}
    span = recorder.start(
        f"{names.CHAT} {request.model}",
        {
            names.OPERATION: names.CHAT,
            names.PROVIDER: getattr(provider, "name", None),
            names.REQUEST_MODEL: request.model,
            names.MAX_TOKENS: request.max_output_tokens,
            names.OUTPUT_TYPE: "json" if request.output_schema is not None else None,
            names.CONVERSATION: request.session_id or None,
            names.TURN: request.turn_id or None,
            names.STEP: request.step,
            names.ATTEMPT: request.attempt,
            names.PURPOSE: request.purpose,
            names.SERVER_ADDRESS: host,
            names.SERVER_PORT: port,
            **{name: around.get(name) for name in _PROMPT_NAMES},
            names.INPUT_MESSAGES: messages_json(request.messages) if content else None,
        },
        kind=trace.SpanKind.CLIENT,
    )
    return ChatSpan(span, content=content)


def _server(provider: object) -> tuple[str | None, int | None]:
    """Return the address and port of a provider with a `server_url`."""
    try:
        parts = urlsplit(getattr(provider, "server_url", "") or "")
        return parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return None, None

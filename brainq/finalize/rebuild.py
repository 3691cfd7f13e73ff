"""An ended turn put together from what SQL keeps, after Redis has let it go. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.trace import ToolTraceEntry
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.usage import TokenUsage
from brainq.contracts.view import EndedTurn

OPENING_STEP = 0  # calls made before the first step are brainq's, no tool use of the model's


def rebuilt_turn(
    request: TurnRequest,
    result: TurnResult,
    *,
    turn_number: int,
    trace: Iterable[ToolTraceEntry] = (),
    decision: RuntimeDecisionRecord | None = None,
) -> EndedTurn:
    """The turn as the finalizer's steps see it.

    What only Redis knew is gone: `context_hash` and `prompt_hash` are known if the decision was recorded, and the
    tools of calls that ran come from the trace or from it. Sources are those of the result, so at most eight of each
    kind.
    """
    ran = (entry.tool for entry in trace if entry.started_at_ms and entry.step != OPENING_STEP)
    return EndedTurn(
        request=request,
        ending=result.ending,
        stop_reason=result.stop_reason,
        text=result.text,
        error=result.error or "",
        steps=result.steps,
        tool_calls=result.tool_calls,
        tools=decision.tools if decision is not None else tuple(dict.fromkeys(ran)),
        usage=TokenUsage(
            input_tokens=result.input_tokens,
            output_tokens=result.output_tokens,
            cache_read_tokens=result.cache_read_tokens,
            cache_creation_tokens=result.cache_creation_tokens,
        ),
        cost_usd=result.cost_usd or 0.0,
        cost_known=result.cost_usd is not None,
        sources=tuple(_sources(result)),
        context_hash="" if decision is None else decision.context_hash,
        prompt_hash="" if decision is None else decision.prompt_hash,
        turn_number=turn_number,
        elapsed_ms=result.elapsed_ms,
        failing_error="",
        notes=result.warnings,
        spends=result.spends,
        context_pack_json=result.context_pack_json,
    )


def _sources(result: TurnResult) -> Iterator[Mapping[str, str]]:
    for kind, cited in (("local", result.local_citations), ("web", result.web_citations)):
        for citation in cited:
            yield {"kind": kind, "source": citation.source, "title": citation.title, "quote": citation.quote}
    for path in result.rendered_content_paths:
        yield {"kind": "rendered", "source": path}

"""From an ended turn to its TurnResult. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from brainq.contracts.ids import call_place, is_call_id
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import Citation, TurnResult
from brainq.contracts.view import EndedTurn
from brainq.finalize.warnings import warnings_of
from brainq.tools.output import read_output

MAX_CITATIONS = 8  # of each kind, in the text and in the result
MIN_NAME_CHARS = 4  # a shorter name is a word like any other
MIN_QUOTE_CHARS = 20


def citations(turn: EndedTurn, kind: str) -> tuple[Citation, ...]:
    """The first eight different citations of a kind, in the order of the model's calls. What was cited before the first
    step counts where the answer uses it."""
    found: dict[str, Citation] = {}
    answer = turn.text.casefold()
    for row in _in_order(turn.sources):
        if row.get("opening") and not _is_used(row, answer):
            continue
        if row["kind"] == kind and row["source"] not in found:
            found[row["source"]] = Citation(
                source=row["source"], title=row.get("title", ""), quote=row.get("quote", "")
            )
    return tuple(found.values())[:MAX_CITATIONS]


def _in_order(rows: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """By the calls that left them, in the model's order; within a call as it left them."""
    return sorted(
        rows, key=lambda row: call_place(row["call"]) if is_call_id(row.get("call", "")) else (-1, -1)
    )


def _is_used(row: Mapping[str, str], answer: str) -> bool:
    """Whether the answer names the source, the last part of its path, or its title, or quotes it."""
    source = row["source"].rstrip("/")
    names = (source, source.rpartition("/")[2], row.get("title", ""))
    quote = " ".join(row.get("quote", "").split())
    return any(len(name) >= MIN_NAME_CHARS and name.casefold() in answer for name in names) or (
        len(quote) >= MIN_QUOTE_CHARS and quote.casefold() in " ".join(answer.split())
    )


def result_of(turn: EndedTurn, warnings: tuple[str, ...] = ()) -> TurnResult:
    """What the caller gets. `warnings` add to those the turn gathered on its way."""
    rendered = dict.fromkeys(row["source"] for row in _in_order(turn.sources) if row["kind"] == "rendered")
    return TurnResult(
        turn_id=turn.request.turn_id,
        session_id=turn.request.session_id,
        text=turn.text,
        local_citations=citations(turn, "local"),
        web_citations=citations(turn, "web"),
        rendered_content_paths=tuple(rendered),
        input_tokens=turn.usage.input_tokens,
        output_tokens=turn.usage.output_tokens,
        cache_read_tokens=turn.usage.cache_read_tokens,
        cache_creation_tokens=turn.usage.cache_creation_tokens,
        ending=turn.ending,
        stop_reason=turn.stop_reason,
        warnings=(*turn.notes, *warnings_of(turn), *warnings),
        context_pack_json=turn.context_pack_json,
        cost_usd=turn.cost_usd if turn.cost_known else None,
        spends=turn.spends,
        steps=turn.steps,
        tool_calls=turn.tool_calls,
        error=turn.error or None if _has_failed(turn) else None,
        elapsed_ms=turn.elapsed_ms,
        last_agent_message=turn.last_agent_message,
        diff=turn.diff,
        parked_ms=turn.parked_ms,
        parsed=_parsed(turn),
        brain=turn.request.brain,
    )


def _has_failed(turn: EndedTurn) -> bool:
    return turn.ending is not Ending.COMPLETED or turn.stop_reason is StopReason.INVALID_OUTPUT


def sent_before(error: str) -> tuple[str, ...]:
    """The warning of a result that goes out ahead of a step that failed: `usage: ValueError`; none where none did."""
    return (f"sent before the finalizer was done: {error}",) if error else ()


def _parsed(turn: EndedTurn) -> JsonValue:
    schema = turn.request.output_schema
    if schema is None or turn.stop_reason is not StopReason.ANSWERED:
        return None
    return read_output(schema, turn.text)[0]


def with_citations(text: str, local: tuple[Citation, ...], web: tuple[Citation, ...]) -> str:
    """The text with a list of its sources under it. A text that has the list already is returned unchanged."""
    if not local and not web:
        return text
    lines = ["Sources:"]
    for citation in (*local, *web):
        label = f"{citation.title} ({citation.source})" if citation.title else citation.source
        lines.append(f"- {label}")
    block = "\n".join(lines)
    return text if text.endswith(block) else f"{text}\n\n{block}"

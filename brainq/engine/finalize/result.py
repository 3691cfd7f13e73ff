"""The result and the decision record of a turn, and the threads that wait for callbacks after the result."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from brainq.contracts.evaluation import RuntimeDecisionRecord, Strategy
from brainq.contracts.ids import is_call_id, parse_call_id
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import Citation, TurnResult
from brainq.contracts.view import EndedTurn
from brainq.engine.gates.answer_schema import read_answer
from brainq.engine.tools.context_pack import MEMORY_TOOL
from brainq.runtime.observe.logs import logger
from brainq.runtime.processes.threads import run_in_thread

log = logger("brainq.finalize")
OUTPUT = "output"
_PROBLEMS = {
    "length": "cut off at the length limit",
    "filtered": "stopped by a content filter",
    "broken": "broken off by the service",
}
_OPENING_NAMES = {MEMORY_TOOL: "memory"}
_END_TEXTS = {"failed": "its call failed", "timed_out": "it took too long", "timed_out_late": "it took too long"}
RETRIEVAL_TOOLS = frozenset({"local_search", "get_context_pack"})
MAX_CITATIONS = 8  # of each kind, in the text and in the result
MIN_NAME_CHARS = 4  # a shorter name may be an ordinary word
MIN_QUOTE_CHARS = 20
MAX_BACKGROUND = 512  # background callbacks of a process; further ones occupy their worker's thread


def warnings_of(turn: EndedTurn) -> tuple[str, ...]:
    """Return the warnings: unread context, a full context, problems of replies, uncounted tokens, changed builds."""
    unread = (
        f"{_OPENING_NAMES.get(tool, 'the context pack')} was not read before the first step: "
        f"{_END_TEXTS.get(status, status)}"
        for tool, status in sorted(turn.opening_failed.items())
    )
    wrong = turn.problems.get(OUTPUT, 0)
    misfits = (f"{_count_of_replies(wrong)} of the model did not fit the output schema",) if wrong else ()
    replies = (
        f"{_count_of_replies(count)} of the model {'was' if count == 1 else 'were'} {_PROBLEMS[problem]}; no call of "
        f"{'it' if count == 1 else 'them'} ran"
        for problem, count in sorted(turn.problems.items())
        if problem in _PROBLEMS
    )
    context = (*_context_warning(turn.context_full), *_summary_warning(turn.unsummarised))
    return (*unread, *context, *misfits, *replies, *_token_warnings(turn), *build_warning(turn.builds))


def build_warning(builds: Sequence[str]) -> tuple[str, ...]:
    """Return a warning if more than one version of the brain worked on the turn."""
    if len({build.rpartition("#")[2] for build in builds}) < 2:
        return ()
    shown = ", then ".join(
        f"build {build} (brain {digest})" for build, _, digest in (b.rpartition("#") for b in builds)
    )
    return (f"its brain changed while it ran: {shown}; Brain(pin=...) keeps a turn to the one that began it",)


def _context_warning(full: int) -> tuple[str, ...]:
    if not full:
        return ()
    return (f"the model's context was {full} % full; from 85 % on older messages are summarised or left out",)


def _summary_warning(why: str) -> tuple[str, ...]:
    return (f"no model wrote the summary of older messages, so rules wrote a shorter one: {why}",) if why else ()


def _token_warnings(turn: EndedTurn) -> tuple[str, ...]:
    uncounted = sum(spend.estimated and spend.kind != "lost" for spend in turn.spends)
    lost = sum(spend.kind == "lost" for spend in turn.spends)
    requests = "1 request" if lost == 1 else f"{lost} requests"
    warnings: list[str] = []
    if uncounted:
        replies = _count_of_replies(uncounted)
        warnings.append(f"the service did not count the tokens of {replies}, or not rightly; they are estimated")
    if lost:
        warnings.append(f"{requests} to a model broke off and may be billed: the cost is estimated")
    return tuple(warnings)


def _count_of_replies(count: int) -> str:
    return "1 reply" if count == 1 else f"{count} replies"


def citations(turn: EndedTurn, kind: str) -> tuple[Citation, ...]:
    """Return the first eight different citations of a kind. An unused one from before the first step does not count."""
    found: dict[str, Citation] = {}
    answer = turn.text.casefold()
    for row in _in_call_order(turn.sources):
        if row.get("opening") and not _is_used(row, answer):
            continue
        if row["kind"] == kind and row["source"] not in found:
            found[row["source"]] = Citation(
                source=row["source"], title=row.get("title", ""), quote=row.get("quote", "")
            )
    return tuple(found.values())[:MAX_CITATIONS]


def _in_call_order(rows: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Sort the rows by their calls, in the model's order. The rows of one call keep their order."""
    return sorted(rows, key=lambda row: parse_call_id(row["call"]) if is_call_id(row.get("call", "")) else (-1, -1))


def _is_used(row: Mapping[str, str], answer: str) -> bool:
    """Return whether the answer quotes the source, or names it, its title, or the last part of its path."""
    source = row["source"].rstrip("/")
    names = (source, source.rpartition("/")[2], row.get("title", ""))
    quote = " ".join(row.get("quote", "").split())
    return any(len(name) >= MIN_NAME_CHARS and name.casefold() in answer for name in names) or (
        len(quote) >= MIN_QUOTE_CHARS and quote.casefold() in " ".join(answer.split())
    )


def make_result(turn: EndedTurn, warnings: tuple[str, ...] = ()) -> TurnResult:
    """Return the result for the caller, with `warnings` after those of the turn itself."""
    rendered = dict.fromkeys(row["source"] for row in _in_call_order(turn.sources) if row["kind"] == "rendered")
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
        parsed=_parsed_output(turn),
        brain=turn.request.brain,
    )


def _has_failed(turn: EndedTurn) -> bool:
    return turn.ending is not Ending.COMPLETED or turn.stop_reason is StopReason.INVALID_OUTPUT


def early_result_warning(error: str) -> tuple[str, ...]:
    """Return the warning of a result that is sent before a failed step is done. `error` is like `usage: ValueError`."""
    return (f"sent before the finalizer was done: {error}",) if error else ()


def _parsed_output(turn: EndedTurn) -> JsonValue:
    schema = turn.request.output_schema
    if schema is None or turn.stop_reason is not StopReason.ANSWERED:
        return None
    return read_answer(schema, turn.text)[0]


def with_citations(text: str, local: tuple[Citation, ...], web: tuple[Citation, ...]) -> str:
    """Append the list of sources to the text. A text that already has the list is returned unchanged."""
    if not local and not web:
        return text
    lines = ["Sources:"]
    for citation in (*local, *web):
        label = f"{citation.title} ({citation.source})" if citation.title else citation.source
        lines.append(f"- {label}")
    block = "\n".join(lines)
    return text if text.endswith(block) else f"{text}\n\n{block}"


def strategy_of(tools: Iterable[str]) -> Strategy:
    """Return how the turn reached its answer, judged by the tools that ran. The first rule that matches decides.

    >>> strategy_of([]), strategy_of(["read_note"]), strategy_of(["local_search", "web_search"])
    ('direct_answer', 'tool_assisted', 'web_augmented')
    """
    used = set(tools)
    if not used:
        return "direct_answer"
    if "web_search" in used:
        return "web_augmented"
    if used & RETRIEVAL_TOOLS:
        return "retrieval_augmented"
    return "tool_assisted"


def decision_record(turn: EndedTurn) -> RuntimeDecisionRecord:
    """Return the record of how the turn reached its answer."""
    return RuntimeDecisionRecord(
        turn_id=turn.request.turn_id,
        session_id=turn.request.session_id,
        turn_number=turn.turn_number,
        strategy=strategy_of(turn.tools),
        tools=turn.tools,
        context_hash=turn.context_hash,
        prompt_hash=turn.prompt_hash,
        elapsed_ms=turn.elapsed_ms,
        usage=turn.usage,
        ending=turn.ending,
        stop_reason=turn.stop_reason,
        prompt_id=turn.request.prompt_id,
        prompt_version=turn.request.prompt_version,
        prompt_tags=turn.request.prompt_tags,
    )


class BackgroundCallbacks:
    """The threads that wait for callbacks after their doorbell was answered. There are at most `max_threads`."""

    def __init__(self, max_threads: int = MAX_BACKGROUND) -> None:
        self._places = threading.BoundedSemaphore(max_threads)

    def start(self, work: Callable[[], object]) -> bool:
        """Run `work` in a thread. Returns False if all threads are in use or the system refuses another one."""
        if not self._places.acquire(blocking=False):
            return False
        variables = contextvars.copy_context()

        def until_done() -> None:
            try:
                variables.run(work)
            except Exception as failure:
                log.error("a finalizer step that became a job was not settled", failure=failure)
            finally:
                self._places.release()

        try:
            run_in_thread(until_done)
        except RuntimeError as refused:
            self._places.release()
            log.warning("no thread for a finalizer step that became a job", why=str(refused))
            return False
        return True

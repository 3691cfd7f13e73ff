"""What went wrong on a turn's way without changing its ending, in sentences. Pure."""

from __future__ import annotations

from brainq.contracts.view import EndedTurn
from brainq.tools.opening import MEMORY_TOOL

OUTPUT = "output"
_PROBLEMS = {
    "length": "cut off at the length limit",
    "filtered": "stopped by a content filter",
    "broken": "broken off by the service",
}
_OPENED = {MEMORY_TOOL: "memory"}
_ENDS = {"failed": "its call failed", "timed_out": "it took too long", "timed_out_late": "it took too long"}


def warnings_of(turn: EndedTurn) -> tuple[str, ...]:
    """What was not read first, then the context, then replies, in the order of the words they are about, and what
    nobody counted."""
    unread = (
        f"{_OPENED.get(tool, 'the context pack')} was not read before the first step: {_ENDS.get(status, status)}"
        for tool, status in sorted(turn.opening_failed.items())
    )
    wrong = turn.problems.get(OUTPUT, 0)
    asked = (f"{_counted(wrong)} of the model did not fit the output schema",) if wrong else ()
    replies = (
        f"{_counted(count)} of the model {'was' if count == 1 else 'were'} {_PROBLEMS[problem]}; no call of "
        f"{'it' if count == 1 else 'them'} ran"
        for problem, count in sorted(turn.problems.items())
        if problem in _PROBLEMS
    )
    return (*unread, *_of_context(turn.context_full), *asked, *replies, *_of_tokens(turn))


def _of_context(full: int) -> tuple[str, ...]:
    if not full:
        return ()
    return (f"the model's context was {full} % full; from 85 % on older messages are summarised or left out",)


def _of_tokens(turn: EndedTurn) -> tuple[str, ...]:
    uncounted = sum(spend.estimated and spend.kind != "lost" for spend in turn.spends)
    lost = sum(spend.kind == "lost" for spend in turn.spends)
    requests = "1 request" if lost == 1 else f"{lost} requests"
    return (
        *(
            (f"the service counted no tokens of {_counted(uncounted)}; they are estimated",)
            if uncounted
            else ()
        ),
        *((f"{requests} to a model broke off and may be billed: the cost is estimated",) if lost else ()),
    )


def _counted(count: int) -> str:
    return "1 reply" if count == 1 else f"{count} replies"

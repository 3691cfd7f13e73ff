"""What went wrong on a turn's way without changing its ending, in sentences. Pure."""

from __future__ import annotations

from brainq.contracts.view import EndedTurn

OUTPUT = "output"
_PROBLEMS = {
    "length": "cut off at the length limit",
    "filtered": "stopped by a content filter",
    "broken": "broken off by the service",
}


def warnings_of(turn: EndedTurn) -> tuple[str, ...]:
    """The context first, then replies, in the order of the words they are about, and what nobody counted."""
    wrong = turn.problems.get(OUTPUT, 0)
    asked = (f"{_counted(wrong)} of the model did not fit the output schema",) if wrong else ()
    replies = (
        f"{_counted(count)} of the model {'was' if count == 1 else 'were'} {_PROBLEMS[problem]}; no call of "
        f"{'it' if count == 1 else 'them'} ran"
        for problem, count in sorted(turn.problems.items())
        if problem in _PROBLEMS
    )
    return (*_of_context(turn.context_full), *asked, *replies, *_of_tokens(turn))


def _of_context(full: int) -> tuple[str, ...]:
    if not full:
        return ()
    return (f"the model's context was {full} % full; from 85 % on older messages are summarised or left out",)


def _of_tokens(turn: EndedTurn) -> tuple[str, ...]:
    uncounted = sum(spend.estimated for spend in turn.spends)
    return (
        (f"the service counted no tokens of {_counted(uncounted)}; they are estimated",) if uncounted else ()
    )


def _counted(count: int) -> str:
    return "1 reply" if count == 1 else f"{count} replies"

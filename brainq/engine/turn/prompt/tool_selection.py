"""The selection of the tools that the model sees in a turn, for a brain that has more than it should show.

    pinned · called in this turn · nearest to the topic of the conversation      -> in the registry's order

The topic is taken from the user's message and the conversation just before it: a message such as "yes, please do" names
no tool, but the answer before it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from brainq.contracts.brain import ToolRanker
from brainq.contracts.conversation import Conversation
from brainq.contracts.message import Message
from brainq.contracts.tool import ToolSpec
from brainq.engine.tools.ranking import Bm25Ranker
from brainq.errors import InvalidInput
from brainq.runtime.observe.logs import logger
from brainq.runtime.processes.threads import is_shutdown

log = logger("brainq.turn")
ANSWER_WEIGHT = 1.0  # the last answer counts as much as the message; measured in docs/guides/tool-selection.md
EARLIER_WEIGHT = 0.5  # of each earlier message of the user
EARLIER_MESSAGES = 3
MAX_TEXT_CHARS = 4000  # of one text; the middle of a pasted file adds little, and must not slow a step down
DEFAULT_RANKER = Bm25Ranker()


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """The conversation around a turn's message. It is the same at every step of a turn, until input arrives or the
    history is compacted.

    answer    the last answer before the turn
    earlier   the user's messages before the turn, oldest first, at most EARLIER_MESSAGES
    added     the input that steps of this turn have read
    """

    answer: str = ""
    earlier: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


NO_CONTEXT = SelectionContext()


def selection_context(history: Conversation, turn_id: str) -> SelectionContext:
    """Return the context of a turn from the session's history, which may be compacted. Notes of the runtime are
    ignored."""
    answer = ""
    earlier: list[str] = []
    # From the end, because the history may be thousands of messages long.
    for message in _spoken_messages(reversed(history.messages)):
        if message.turn == turn_id:
            continue
        if message.role == "assistant":
            answer = answer or message.content
        elif len(earlier) < EARLIER_MESSAGES:
            earlier.append(message.content)
        if answer and len(earlier) == EARLIER_MESSAGES:
            break
    own = [message.content for message in _spoken_messages(history.of_turn(turn_id)) if message.role == "user"]
    return SelectionContext(answer, tuple(reversed(earlier)), tuple(own[1:]))


class SemanticToolSelector:
    """A selector of at most `max_tools` tools from a registry that has more.

    max_tools   the tools that a model sees; it sees more only if more are pinned or were called
    pinned      the names of tools that are always shown
    ranker      scores tools against a text; BM25 by default

    Raises InvalidInput if `max_tools` is less than 1. The brain refuses a pinned name that no tool has.
    """

    def __init__(self, max_tools: int, pinned: Iterable[str] = (), ranker: ToolRanker | None = None) -> None:
        if max_tools < 1:
            raise InvalidInput("max_tools_per_turn", f"{max_tools} is too few; use 1 or more")
        self.max_tools = max_tools
        self._pinned = frozenset(pinned)
        self._ranker = Bm25Ranker() if ranker is None else ranker

    def select(
        self, query: str, specs: Sequence[ToolSpec], used: Collection[str] = (), context: SelectionContext = NO_CONTEXT
    ) -> tuple[ToolSpec, ...]:
        """Return the tools to show, in the order of `specs`, so that a service can reuse its prompt cache.

        query     the turn's user message
        used      the names of the tools that this turn has called; those among `specs` are kept
        context   the conversation before the message

        The result is the same at every step with the same query, specs and context, because a tool that was chosen and
        then called keeps its place. Tools with equal scores are in the registry's order. All specs are returned if
        there are no more than `max_tools`.
        """
        if len(specs) <= self.max_tools:
            return tuple(specs)
        kept = {i for i, spec in enumerate(specs) if spec.name in self._pinned or spec.name in used}
        scores = self._scores(query, specs, context)
        for i in sorted(range(len(specs)), key=lambda i: (-scores[i], i)):
            if len(kept) >= self.max_tools:
                break
            kept.add(i)
        return tuple(specs[i] for i in sorted(kept))

    def _scores(self, query: str, specs: Sequence[ToolSpec], context: SelectionContext) -> list[float]:
        try:
            return _weighted(self._ranker, query, specs, context)
        except BaseException as failure:
            if is_shutdown(failure):
                raise
            # A turn with a worse selection is better than no turn.
            log.warning("ranker failed, ranking by words instead", failure=failure)
            return _weighted(DEFAULT_RANKER, query, specs, context)


def _weighted(ranker: ToolRanker, query: str, specs: Sequence[ToolSpec], context: SelectionContext) -> list[float]:
    totals = [0.0] * len(specs)
    for text, weight in _texts(query, context):
        scores = ranker.rank(text, specs)
        if len(scores) != len(specs):
            raise ValueError(f"{type(ranker).__name__} gave {len(scores)} scores for {len(specs)} tools")
        for i, score in enumerate(scores):
            totals[i] += weight * score
    return totals


def _texts(query: str, context: SelectionContext) -> Iterator[tuple[str, float]]:
    """Yield the texts to rank by and the weight of each. Empty texts are left out."""
    weighted = (
        (query, 1.0),
        *((text, 1.0) for text in context.added),
        (context.answer, ANSWER_WEIGHT),
        *((text, EARLIER_WEIGHT) for text in context.earlier),
    )
    return ((_excerpt(text), weight) for text, weight in weighted if text.strip())


def _excerpt(text: str) -> str:
    """Return the text, without its middle if it is long."""
    half = MAX_TEXT_CHARS // 2
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:half]}\n{text[-half:]}"


def _spoken_messages(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages of the user and the model that have text."""
    return (
        message
        for message in messages
        if message.role in ("user", "assistant") and message.content.strip() and not message.note_kind
    )

"""Compaction: how full the context is, when older messages are replaced by a summary, and by what."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.turn.prompt.compaction_cut import HistoryCut, cut_history
from brainq.engine.turn.prompt.summary import Summariser, collect_dropped, summary_message, tokens_for_text
from brainq.runtime.text.estimate import estimate_messages, estimate_text
from brainq.runtime.text.shorten import shortened_to_tokens

ContextLevel = Literal["ok", "warning", "critical"]
# `max_context_tokens` is everything that a model can take, its reply included, and a step adds results before the size
# can be checked again. 15 % is 30 000 tokens of 200 000 and 1 200 of 8 000, enough for a long reply or a few results.
# The warning comes when twice that much is left.
WARNING = 0.70
CRITICAL = 0.85
# In recorded sessions of real models, single steps cost 0.7 to 2.9 times their estimate (5th and 95th percentile, see
# docs/guides/token-estimates.md). A report far outside that range is wrong, for example from a proxy that leaves out
# cached tokens. Without these bounds it would prevent compaction, or compact a context that is nearly empty.
LOWEST_RATIO = 0.5
HIGHEST_RATIO = 3.0
# A service adds a few hundred tokens to each request, so a smaller request shows little about its text.
STEADY_TOKENS = 500
CompactionMethod = Literal["model", "rules", "shortened"]
TARGET_SHARE = 0.5  # of the context is filled after a compaction, so that it can grow before the next one
RETRY_GROWTH = 1.05  # after less growth than this, another model call is not worthwhile
MAX_STEP_MESSAGES = 1_500  # a step reads the newest 2000 messages of a history, and would miss an older summary
SUMMARY_SHARE = 0.10
MIN_SUMMARY_TOKENS = 120
MAX_SUMMARY_TOKENS = 2_000
MAX_SHARE_OF_DROPPED = 0.75  # a summary as long as the messages that it replaces would save nothing
MIN_RESULT_TOKENS = 40  # that are kept of a result, however little space there is


def level_of(tokens: int, max_context_tokens: int) -> ContextLevel:
    """Return `warning` from 70 % of the context on, and `critical` from 85 %."""
    if tokens >= CRITICAL * max_context_tokens:
        return "critical"
    return "warning" if tokens >= WARNING * max_context_tokens else "ok"


@dataclass(frozen=True, slots=True)
class ContextTracker:
    """The tokens of a context. A tracker does not change: each reply makes a new one.

    If the provider has counted the tokens of the last request, that count is used. The tokens of the next request are
    estimated, and the estimate is corrected by the error of the last one.

    reported    the input tokens that the provider counted for the last request; 0 if unknown
    estimated   the estimate for the same request
    ratio       real tokens per estimated token, from the last valid report
    """

    max_context_tokens: int
    reported: int = 0
    estimated: int = 0
    ratio: float = 1.0

    @classmethod
    def from_state(cls, max_context_tokens: int, known: tuple[int, int]) -> ContextTracker:
        """Return the tracker for the last request of a turn. `known` is (reported, estimated), and (0, 0) if there was
        no request."""
        return cls(max_context_tokens).after(*known)

    def after(self, reported: int, estimated: int) -> ContextTracker:
        """Return the tracker after a reply. Both numbers are for the whole request, tools included. A report of 0
        changes nothing, and a very small request does not change the ratio."""
        if reported <= 0 or estimated <= 0:
            return self
        ratio = self.ratio
        if estimated >= STEADY_TOKENS:
            ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, reported / estimated))
        return ContextTracker(self.max_context_tokens, reported, estimated, ratio)

    def tokens(self, estimate: int) -> int:
        """Return the tokens of a request with this estimate. For the last request this is the provider's count."""
        return math.ceil(round(self.ratio * estimate, 6))

    def estimate_for(self, tokens: int) -> int:
        """Return the largest estimate that corresponds to at most this many tokens."""
        return max(0, math.floor(round(tokens / self.ratio, 6)))

    def warning_percent(self, estimate: int) -> int:
        """Return how many per cent of the context a request of this estimate fills. Returns 0 if that is below 70 %."""
        tokens = self.tokens(estimate)
        if level_of(tokens, self.max_context_tokens) == "ok":
            return 0
        return math.floor(100 * tokens / self.max_context_tokens)


def should_compact(
    tokens_now: int, max_tokens: int, auto_compact: bool, tried_at_tokens: int = 0, messages: int = 0
) -> bool:
    """Return whether to compact before the next step.

    tokens_now        the tokens of the whole request with the complete history, as the tracker counts them
    tried_at_tokens   the tokens after this turn's last compaction (`Compaction.tokens_after`), or the tokens at the
                      last attempt if that failed; 0 if this turn has made no attempt
    messages          the number of messages in the history
    """
    if not auto_compact:
        return False
    if messages >= MAX_STEP_MESSAGES:
        return True
    if level_of(tokens_now, max_tokens) != "critical":
        return False
    return not tried_at_tokens or tokens_now > tried_at_tokens * RETRY_GROWTH


@dataclass(frozen=True, slots=True)
class Compaction:
    """A shorter history: `items`, followed by the old history without its `drop` oldest messages.

    summary         None if no message could be dropped and only results were cut (method `shortened`)
    front           dropped messages that stay, and the newest messages if results in them had to be cut
    archive         the messages that leave the history, unchanged; earlier summaries are left out
    method          who wrote the summary
    tokens_before   the tokens of the whole request before, as the tracker counts them
    tokens_after    the same afterwards
    spend           what models used; None if no model was called or charged
    why             why rules wrote the summary although a model should have; otherwise ""
    """

    drop: int
    summary: Message | None
    front: tuple[Message, ...]
    archive: tuple[Message, ...]
    method: CompactionMethod
    tokens_before: int
    tokens_after: int
    spend: Spend | None = None
    why: str = ""

    @property
    def items(self) -> tuple[Message, ...]:
        """Return the messages that are put in front of the remaining history."""
        return self.front if self.summary is None else (self.summary, *self.front)

    def applied(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return (*self.items, *messages[self.drop :])


@dataclass(frozen=True, slots=True)
class ContextCompactor:
    """A compactor, which replaces the older part of a turn's conversation by a summary.

    A model writes the summary. If no model can, rules write it, because a full context must shrink either way. SQL
    keeps the messages that leave the history.

    model_of    returns the model to call; may raise what resolving a model raises
    allowance   what the turn may still spend on it
    is_write    returns whether a tool may change anything; by default every tool may
    """

    model_of: Callable[[], AuxiliaryModel]
    allowance: Allowance
    is_write: Callable[[str], bool] = lambda _: True
    clock: Callable[[], float] = time.monotonic

    def compact(
        self,
        messages: Sequence[Message],
        *,
        turn_id: str,
        tracker: ContextTracker,
        fixed_estimate: int,
        timeout_s: float,
        session_id: str = "",
        step: int = 0,
    ) -> Compaction | None:
        """Return the shorter history, or None if it cannot be made shorter.

        Raises CallDeferred if the model's rate limit makes the call wait. Other errors of a model are handled here.

        messages         the session's history, oldest first
        fixed_estimate   the estimate of the rest of the request: prompt, memory, pack, tools
        timeout_s        the time until the turn's deadline; at most half of it, and at most 60 s, are used
        """
        window = tracker.estimate_for(tracker.max_context_tokens)
        summary_tokens = max(MIN_SUMMARY_TOKENS, min(MAX_SUMMARY_TOKENS, int(window * SUMMARY_SHARE)))
        free = int(window * TARGET_SHARE) - fixed_estimate - summary_tokens
        split = cut_history(messages, turn_id=turn_id, keep_tokens=free)
        if split is not None:
            worth = int(estimate_messages(split.dropped) * MAX_SHARE_OF_DROPPED)
            summary_tokens = min(summary_tokens, worth)
        if split is None or summary_tokens < MIN_SUMMARY_TOKENS:
            split, summary_tokens = HistoryCut(0, (), (), tuple(messages)), 0
        kept = (*split.front, *split.tail)
        taken = fixed_estimate + summary_tokens + estimate_messages(kept)
        tail = split.tail
        if taken > window * CRITICAL:
            tail = with_shorter_results(tail, taken - int(window * WARNING))
        summary: Message | None = None
        method: CompactionMethod = "shortened"
        spend: Spend | None = None
        why = ""
        if split.dropped:
            asking = Summariser(self.model_of, self.allowance, window, session_id, turn_id, step, self.clock)
            folded = collect_dropped(split.dropped, self.is_write)
            room = tokens_for_text(folded.changes, summary_tokens)
            text, method, spend, why = asking.summarise(folded, room, timeout_s)
            summary = summary_message(text, folded.changes, method, summary_tokens)
        elif tail == split.tail:
            return None
        drop, front = split.drop, split.front
        if tail != split.tail:
            drop, front = len(messages), (*split.front, *tail)
        items = front if summary is None else (summary, *front)
        after = fixed_estimate + estimate_messages((*items, *messages[drop:]))
        return Compaction(
            drop=drop,
            summary=summary,
            front=front,
            archive=tuple(message for message in messages[:drop] if message.note_kind != "summary"),
            method=method,
            tokens_before=tracker.tokens(fixed_estimate + estimate_messages(messages)),
            tokens_after=tracker.tokens(after),
            spend=spend,
            why=why,
        )


def with_shorter_results(messages: Sequence[Message], save_tokens: int) -> tuple[Message, ...]:
    """Return the messages with their longest tool results cut to one common length, which saves about `save_tokens`.

    Calls and results stay paired. A text that was cut contains a note about it.
    """
    sizes = sorted((estimate_text(message.content) for message in messages if message.role == "tool"), reverse=True)
    limit = _limit(sizes, save_tokens)
    return tuple(
        message.model_copy(update={"content": shortened_to_tokens(message.content, limit)})
        if message.role == "tool" and estimate_text(message.content) > limit
        else message
        for message in messages
    )


def _limit(sizes: Sequence[int], save: int) -> int:
    """Return the length to which longer results are cut so that `sizes`, sorted from the longest, shrink by `save`."""
    total = 0
    for count, size in enumerate(sizes, 1):
        total += size
        following = sizes[count] if count < len(sizes) else 0
        limit = (total - save) // count
        if limit >= following:
            return max(MIN_RESULT_TOKENS, limit)
    return MIN_RESULT_TOKENS

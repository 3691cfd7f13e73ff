"""Compaction: measures how full the context is, decides when older messages are replaced, and replaces them."""

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
# `max_context_tokens` is all a model takes, its reply included, and a step adds its results before anybody can look
# again. 15 % is 30 000 tokens of 200 000 and 1 200 of 8 000: a long reply or a few results. The warning comes when as
# much again is left.
WARNING = 0.70
CRITICAL = 0.85
# Over recorded sessions of real models single steps cost 0.7 to 2.9 times their estimate (5th and 95th percentile, see
# docs/guides/token-estimates.md). A report far beyond them is wrong, such as a proxy that leaves out cached tokens:
# unclamped it would switch the guard off, or compact a context that is nearly empty.
LOWEST_RATIO = 0.5
HIGHEST_RATIO = 3.0
# A service adds some hundred tokens to each request, so a smaller request shows little about its text.
STEADY_TOKENS = 500
CompactionMethod = Literal["model", "rules", "shortened"]
TARGET_SHARE = 0.5  # of the context is filled afterwards, so that it can grow before the next compaction
RETRY_GROWTH = 1.05  # less growth is not worth another model call
MAX_STEP_MESSAGES = 1_500  # a step reads the newest 2000 messages of a history, and would miss a summary further back
SUMMARY_SHARE = 0.10
MIN_SUMMARY_TOKENS = 120
MAX_SUMMARY_TOKENS = 2_000
MAX_SHARE_OF_DROPPED = 0.75  # a summary as long as what it replaces would save nothing
MIN_RESULT_TOKENS = 40  # of a result stay, however little space there is


def level_of(tokens: int, max_context_tokens: int) -> ContextLevel:
    """Return `warning` from 70 % of the context on, and `critical` from 85 %."""
    if tokens >= CRITICAL * max_context_tokens:
        return "critical"
    return "warning" if tokens >= WARNING * max_context_tokens else "ok"


@dataclass(frozen=True, slots=True)
class ContextTracker:
    """The tokens of a context. Frozen: each reply makes a new tracker.

    The provider's own count of the last request is used, if there is one. The next request differs from the last one,
    so its tokens are estimated, and the estimate is corrected by the error of the last one.

    reported    the input tokens that the provider counted for the last request; 0 if unknown
    estimated   the estimate of the same request
    ratio       real tokens per estimated token, from the last valid report
    """

    max_context_tokens: int
    reported: int = 0
    estimated: int = 0
    ratio: float = 1.0

    @classmethod
    def from_state(cls, max_context_tokens: int, known: tuple[int, int]) -> ContextTracker:
        """Return the tracker for (reported, estimated) of the last request in the turn's state, which is (0, 0) if
        there was none."""
        return cls(max_context_tokens).after(*known)

    def after(self, reported: int, estimated: int) -> ContextTracker:
        """Return the tracker after a reply. Both numbers count the whole request, tools included. A report of 0 changes
        nothing, and one of a tiny request does not change the ratio."""
        if reported <= 0 or estimated <= 0:
            return self
        ratio = self.ratio
        if estimated >= STEADY_TOKENS:
            ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, reported / estimated))
        return ContextTracker(self.max_context_tokens, reported, estimated, ratio)

    def tokens(self, estimate: int) -> int:
        """Return the tokens of a request with this estimate. For the last request it is the provider's count."""
        return math.ceil(round(self.ratio * estimate, 6))

    def estimate_for(self, tokens: int) -> int:
        """Return the largest estimate that stays within these tokens."""
        return max(0, math.floor(round(tokens / self.ratio, 6)))

    def warning_percent(self, estimate: int) -> int:
        """Return how full the context is with a request of this estimate, in per cent, from 70 on. Returns 0 below
        that."""
        tokens = self.tokens(estimate)
        if level_of(tokens, self.max_context_tokens) == "ok":
            return 0
        return math.floor(100 * tokens / self.max_context_tokens)


def should_compact(
    tokens_now: int, max_tokens: int, auto_compact: bool, tried_at_tokens: int = 0, messages: int = 0
) -> bool:
    """Return whether to compact before the next step.

    tokens_now        the tokens of the whole request as the tracker counts them, with the complete history
    tried_at_tokens   what this turn's last try left: `Compaction.tokens_after`, or the tokens at which it was tried if
                      it brought none; 0 if there was no try in this turn
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
    """A shorter history: `items`, then the old one without its `drop` oldest messages.

    summary         None if nothing could be dropped and only results were cut (method `shortened`)
    front           messages before the cut that stay, and the newest ones if results in them had to be cut
    archive         the messages that leave the history, as they were; earlier summaries are left out
    method          who wrote the summary
    tokens_before   the tokens of the whole request before, as the tracker counts them
    tokens_after    the same afterwards
    spend           what models used; None if no model was asked or paid
    why             why rules wrote the summary though a model should have; "" if they did not
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
        """Return the messages that are put in front of the rest."""
        return self.front if self.summary is None else (self.summary, *self.front)

    def applied(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return (*self.items, *messages[self.drop :])


@dataclass(frozen=True, slots=True)
class ContextCompactor:
    """A compactor, which replaces the older part of one turn's conversation by a summary.

    A model writes the summary, or rules do if no model can: a full context must shrink either way. The messages that
    leave the history stay whole in SQL.

    model_of    returns the model to ask; may raise like resolving any model
    allowance   what the turn may still spend on it
    is_write    returns whether a tool changes anything; by default any tool might
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
        """Return the shorter history, or None if it cannot be made shorter. Raises CallDeferred if the model's limit
        makes the call wait. No other error of a model gets out.

        messages         the session's history, oldest first
        fixed_estimate   the estimate of the rest of the request: prompt, memory, pack, tools
        timeout_s        the time until the turn's deadline; at most half of it, and 60 s, are used
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
    """Return the messages with their longest tool results cut to one length, so that about `save_tokens` are saved.

    Calls and results stay paired. A text that was cut says so.
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
    """Return the length to which longer results are cut: `sizes` (longest first) then sum up to `save` less."""
    total = 0
    for count, size in enumerate(sizes, 1):
        total += size
        following = sizes[count] if count < len(sizes) else 0
        limit = (total - save) // count
        if limit >= following:
            return max(MIN_RESULT_TOKENS, limit)
    return MIN_RESULT_TOKENS

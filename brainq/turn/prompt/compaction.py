"""Compaction: how full the context is, when older messages are replaced, and by what."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.models.asking.bill import Allowance
from brainq.models.auxiliary import AuxiliaryModel
from brainq.text.estimate import estimate_messages, estimate_text
from brainq.text.shorten import shortened_to_tokens
from brainq.turn.prompt.compaction_cut import HistoryCut, cut_history
from brainq.turn.prompt.summary import Summariser, collect_dropped, summary_message, tokens_for_text

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
# A service adds some hundred tokens of its own to a request: a smaller one says little about text.
STEADY_TOKENS = 500
CompactionMethod = Literal["model", "rules", "shortened"]
TARGET_SHARE = 0.5  # of the context is filled afterwards: room to grow until the next time
RETRY_GROWTH = 1.05  # less growth is not worth another model call
MAX_STEP_MESSAGES = 1_500  # messages: a step reads the newest 2000 of a history, a summary further back would be lost
SUMMARY_SHARE = 0.10
MIN_SUMMARY_TOKENS = 120
MAX_SUMMARY_TOKENS = 2_000
MAX_SHARE_OF_DROPPED = 0.75  # a summary as long as what it replaces would save nothing
MIN_RESULT_TOKENS = 40  # of a result stay, however little room there is


def level_of(tokens: int, max_context_tokens: int) -> ContextLevel:
    """`warning` from 70 % of the context on, `critical` from 85 %."""
    if tokens >= CRITICAL * max_context_tokens:
        return "critical"
    return "warning" if tokens >= WARNING * max_context_tokens else "ok"


@dataclass(frozen=True, slots=True)
class ContextTracker:
    """Tokens of a context. Frozen: each reply gives a new one.

    What counts is the provider's own count of the last request, where there is one. The next request is not the last
    one, so its tokens are estimated, and the estimate is corrected by how far it was off last time.

    reported    input tokens the provider counted for the last request; 0: not known
    estimated   what the same request was estimated at
    ratio       real tokens for one estimated token, from the last report that was one
    """

    max_context_tokens: int
    reported: int = 0
    estimated: int = 0
    ratio: float = 1.0

    @classmethod
    def from_state(cls, max_context_tokens: int, known: tuple[int, int]) -> ContextTracker:
        """From what the turn's state keeps: (reported, estimated) of the last request, (0, 0) for none."""
        return cls(max_context_tokens).after(*known)

    def after(self, reported: int, estimated: int) -> ContextTracker:
        """Once the reply is there. Both count the whole request, tools included; a report of 0 changes nothing, one
        of a tiny request not the ratio."""
        if reported <= 0 or estimated <= 0:
            return self
        ratio = self.ratio
        if estimated >= STEADY_TOKENS:
            ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, reported / estimated))
        return ContextTracker(self.max_context_tokens, reported, estimated, ratio)

    def tokens(self, estimate: int) -> int:
        """Tokens of a request that is estimated at `estimate`; for the last request, what the provider counted."""
        return math.ceil(round(self.ratio * estimate, 6))

    def estimate_for(self, tokens: int) -> int:
        """The largest estimate that stays within so many tokens."""
        return max(0, math.floor(round(tokens / self.ratio, 6)))

    def warning_percent(self, estimate: int) -> int:
        """How full the context is with a request of this estimate, in per cent, from 70 on; below that 0."""
        tokens = self.tokens(estimate)
        if level_of(tokens, self.max_context_tokens) == "ok":
            return 0
        return math.floor(100 * tokens / self.max_context_tokens)


def should_compact(
    tokens_now: int, max_tokens: int, auto_compact: bool, tried_at_tokens: int = 0, messages: int = 0
) -> bool:
    """Whether to compact before the next step.

    tokens_now        of the whole request as the tracker counts them, with a history that nothing was left out of
    tried_at_tokens   what this turn's last try left: `Compaction.tokens_after`, or where there was none the
                      tokens it was tried at; 0: not tried in this turn
    messages          of the history
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

    summary         None where nothing could be dropped and only results were cut (method `shortened`)
    front           messages that stay though they stood before the cut, and the newest ones if results in them
                    had to be cut
    archive         what leaves the history, as it was; earlier summaries are left out
    method          who wrote the summary
    tokens_before, tokens_after   of the whole request, as the tracker counts them
    spend           what asking models used; None where none was asked or paid
    why             rules wrote the summary that a model was to write; "" if they did not
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
        """What is put in front of the rest."""
        return self.front if self.summary is None else (self.summary, *self.front)

    def applied(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The new history."""
        return (*self.items, *messages[self.drop :])


@dataclass(frozen=True, slots=True)
class ContextCompactor:
    """Replaces the older part of one turn's conversation by a summary.

    A model writes the summary, or rules where none does: a context that is full has to shrink either way. What leaves
    the history stays whole in SQL.

    model_of   the model to ask; may raise like resolving any model
    allowance  what the turn may still spend on it
    is_write   whether a tool changes anything; by default any might have
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
        """The shorter history; None where it cannot be made any shorter. Raises nothing of a model's
        but CallDeferred: it is to be made when the model's limit allows.

        messages         the session's history, oldest first
        fixed_estimate   estimate of what the request holds beside it: prompt, memory, pack, tools
        timeout_s        what is left until the turn's deadline; at most half of it, and 60 s, are used
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
    """The messages with their longest tool results cut to one length, so that about `save_tokens` are saved.

    Calls and results stay paired; what is cut says so in the text.
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
    """The length to which everything longer is cut: `sizes` (longest first) then sum up to `save` less."""
    total = 0
    for count, size in enumerate(sizes, 1):
        total += size
        following = sizes[count] if count < len(sizes) else 0
        limit = (total - save) // count
        if limit >= following:
            return max(MIN_RESULT_TOKENS, limit)
    return MIN_RESULT_TOKENS

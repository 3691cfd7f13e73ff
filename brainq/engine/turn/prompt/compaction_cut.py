"""The cut through a history for a compaction: what is dropped, what moves to the front, and what stays.

    [earlier summary] [older turns and steps ...] | [newest groups]
     └────────── drop ───────────────────────────┘   └── tail ──┘
                        │
                        └─ front: system messages, the newest user message

A group is a reply with calls and everything up to the last result of these calls. A cut never splits a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from brainq.contracts.message import Message
from brainq.runtime.text.estimate import estimate_messages

Estimate = Callable[[Sequence[Message]], int]
MAX_KEPT_MESSAGES = 500  # a step reads and checks each of them


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """A cut through a history. The new history is a summary of `dropped`, then `front`, then `messages[drop:]`.

    drop      how many of the oldest messages are removed
    front     the removed messages that are put back, in their order: system messages, the newest user message, and the
              message that began the turn
    dropped   the other removed messages, which the summary replaces
    tail      the messages that stay
    """

    drop: int
    front: tuple[Message, ...]
    dropped: tuple[Message, ...]
    tail: tuple[Message, ...]


def cut_history(
    messages: Sequence[Message],
    *,
    turn_id: str,
    keep_tokens: int,
    estimate: Estimate = estimate_messages,
    keep_messages: int = MAX_KEPT_MESSAGES,
) -> HistoryCut | None:
    """Return the cut that keeps as many of the newest messages as fit into `keep_tokens` (front and tail together).

    The newest group is kept even if it does not fit, because the model has not seen its results. An earlier summary is
    always dropped. Returns None if there is nothing else to drop.
    """
    pinned = _pinned(messages, turn_id)
    sizes = [0 if i in pinned else estimate((message,)) for i, message in enumerate(messages)]
    newest_tokens = [
        0,
        *accumulate(reversed(sizes)),
    ]  # n -> tokens of the newest n messages that are not pinned
    max_tokens = keep_tokens - sum(estimate((messages[i],)) for i in pinned)

    def fits(cut: int) -> bool:
        kept = len(messages) - cut
        return kept <= keep_messages and newest_tokens[kept] <= max_tokens

    possible = _possible_cuts(messages)
    best = next((cut for cut in possible if fits(cut)), possible[-1])
    dropped = tuple(message for i, message in enumerate(messages[:best]) if i not in pinned)
    if all(_is_summary(message) for message in dropped):
        return None
    return HistoryCut(
        drop=best,
        front=tuple(messages[i] for i in sorted(pinned) if i < best),
        dropped=dropped,
        tail=tuple(messages[best:]),
    )


def newest_user_message(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message that was written by a user and not by the runtime."""
    return next(
        (i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user" and not messages[i].note_kind), None
    )


def _pinned(messages: Sequence[Message], turn_id: str) -> frozenset[int]:
    """Return the indexes of the messages that a compaction never drops."""
    found = {i for i, message in enumerate(messages) if message.role == "system"}
    newest = newest_user_message(messages)
    # The newest user message may be a follow-up or a notice about a late write, so the turn's question is kept too.
    opening = next(
        (
            i
            for i, message in enumerate(messages)
            if message.role == "user" and message.turn == turn_id and turn_id and not message.note_kind
        ),
        None,
    )
    return frozenset(found | {i for i in (newest, opening) if i is not None})


def _is_summary(message: Message) -> bool:
    return message.note_kind == "summary"


def _possible_cuts(messages: Sequence[Message]) -> list[int]:
    """Return the cuts that replace every earlier summary and drop nothing that the model has not read. There is always
    at least one."""
    cuts = _cuts(messages)
    folding = max((i + 1 for i, message in enumerate(messages) if _is_summary(message)), default=0)
    unread = unread_from(messages)
    return [cut for cut in cuts if folding <= cut <= unread] or [next(cut for cut in cuts if cut >= folding)]


def unread_from(messages: Sequence[Message]) -> int:
    """Return the index of the first message that no model has answered yet. This is the newest reply if it has calls,
    or else the message after it."""
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].role == "assistant":
            return i if messages[i].calls else i + 1
    return 0


def _cuts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes where the history may be cut, its end included. A cut before such an index separates no call
    from its result, and keeps the inputs of one step together, and its notes.

    A result belongs to the newest call with its id, because ids are unique only within a turn. Providers read them in
    the same way.
    """
    last = list(range(len(messages)))  # i -> the last message that must stay together with message i
    replies: dict[str, int] = {}
    for i, message in enumerate(messages):
        if message.role == "assistant":
            replies.update((call.id, i) for call in message.calls)
        elif message.role == "tool" and message.call_id in replies:
            last[replies[message.call_id]] = i
        elif i and _keep_their_order_together(messages[i - 1], message):
            last[i - 1] = i
    cuts: list[int] = []
    end = -1
    for i in range(len(messages)):
        if i > end:
            cuts.append(i)
        end = max(end, last[i])
    return [*cuts, len(messages)]


def _keep_their_order_together(first: Message, second: Message) -> bool:
    """Return whether both messages are inputs that one step read, or both are notes on one step. If they were archived
    separately, they would lose their order within the step."""
    read = ["input" in (message.extra or {}) for message in (first, second)]
    return (
        bool(first.turn)
        and (first.turn, first.step) == (second.turn, second.step)
        and first.role == second.role == "user"
        and read[0] == read[1]
    )

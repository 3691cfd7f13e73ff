"""Where a history is cut for a compaction: what goes, what moves to the front, what stays as it is.

    [earlier summary] [older turns and steps ...] | [newest groups]
     └────────── drop ───────────────────────────┘   └── tail ──┘
                        │
                        └─ front: system messages, the newest user message

A group is a reply with calls and everything up to its last result; a cut never goes through one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from brainq.contracts.message import Message
from brainq.text.estimate import estimate_messages

Estimate = Callable[[Sequence[Message]], int]
MAX_KEPT_MESSAGES = 500  # a step reads and checks each of them


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """A cut. The new history is a summary of `dropped`, then `front`, then `messages[drop:]`.

    drop       how many of the oldest messages are taken out
    front      those of them that are put back, in their order: system messages, the newest user message, and
               the one that began the turn
    dropped    the others: what the summary replaces
    tail       what is not touched
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
    """The cut that keeps as much of the newest as fits `keep_tokens` (front and tail together).

    Where not even the newest group fits, that group is kept all the same: the model has not seen its results.
    An earlier summary is always among the dropped. None when nothing but such a summary could be dropped.
    """
    pinned = _pinned(messages, turn_id)
    sizes = [0 if i in pinned else estimate((message,)) for i, message in enumerate(messages)]
    newest_tokens = [0, *accumulate(reversed(sizes))]  # n -> what the newest n messages take, beside the pinned ones
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
    """Where the newest message is that a user, not the runtime, wrote."""
    return next(
        (i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user" and not messages[i].note_kind), None
    )


def _pinned(messages: Sequence[Message], turn_id: str) -> frozenset[int]:
    """Places of what a compaction never drops."""
    found = {i for i, message in enumerate(messages) if message.role == "system"}
    newest = newest_user_message(messages)
    # The newest one may be a follow-up, or a notice about a late write: the question itself stays, too.
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
    """Cuts that fold every earlier summary and drop nothing the model has not read; never none."""
    cuts = _cuts(messages)
    folding = max((i + 1 for i, message in enumerate(messages) if _is_summary(message)), default=0)
    unread = unread_from(messages)
    return [cut for cut in cuts if folding <= cut <= unread] or [next(cut for cut in cuts if cut >= folding)]


def unread_from(messages: Sequence[Message]) -> int:
    """Where what no model has answered yet begins: the newest reply with calls, or what follows an answer."""
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].role == "assistant":
            return i if messages[i].calls else i + 1
    return 0


def _cuts(messages: Sequence[Message]) -> list[int]:
    """Places before which a cut parts no call from its result, and no input, nor note,
    from others of its step; the end included.

    A result belongs to the newest call of its id: ids are unique in a turn only, and providers read them the same way.
    """
    last = list(range(len(messages)))  # i -> the last message that belongs with i
    asked: dict[str, int] = {}
    for i, message in enumerate(messages):
        if message.role == "assistant":
            asked.update((call.id, i) for call in message.calls)
        elif message.role == "tool" and message.call_id in asked:
            last[asked[message.call_id]] = i
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
    """Whether both are input that one step read, or both notes on one step: of what is archived in two parts neither
    keeps its order within the step."""
    read = ["input" in (message.extra or {}) for message in (first, second)]
    return (
        bool(first.turn)
        and (first.turn, first.step) == (second.turn, second.step)
        and first.role == second.role == "user"
        and read[0] == read[1]
    )

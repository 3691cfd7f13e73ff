"""Conversations: histories in Redis, which a process parses and estimates once, not in every step.

A history only grows at its end and is trimmed at its front. A compaction or a loss replaces it. Positions count from
its first message; `trimmed` is the number of messages that are gone at the front. The cached part of a history is valid
as long as its `stamp` is unchanged, which a replacement changes, and its newest known message is at the same position.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from brainq.adapters.redis.connection import Client, Command
from brainq.contracts.conversation import EMPTY_CONVERSATION, Conversation
from brainq.contracts.message import Message
from brainq.runtime.text.estimate import with_sizes

# The number of newest messages that a step reads. The ones that fit the model's window are chosen from them.
MAX_READ_MESSAGES = 2000
MAX_CACHED_BYTES = 64_000_000  # The approximate size of all cached histories of a process.
BYTES_A_MESSAGE = 1_500  # The approximate bytes of a parsed message without its text.
# The approximate bytes of a parsed value of a call's arguments without its text; short objects take the most.
BYTES_A_VALUE = 100


@dataclass(frozen=True, slots=True)
class CachedHistory:
    """The cached part of a history.

    end      the position after its newest message
    newest   that message as it is in Redis
    sizes    the approximate bytes of each message of the conversation
    """

    stamp: str
    trimmed: int
    end: int
    newest: str
    conversation: Conversation
    sizes: tuple[int, ...] = ()

    @property
    def taken_bytes(self) -> int:
        return sum(self.sizes) + sys.getsizeof(self.newest)


EMPTY_HISTORY = CachedHistory("", 0, 0, "", EMPTY_CONVERSATION)


class Conversations:
    """A reader of histories with a cache of the recently used ones."""

    def __init__(self, client: Client, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self._client = client
        self._max_bytes = max_bytes
        self._known: OrderedDict[str, CachedHistory] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def known(self, key: str) -> CachedHistory:
        """Return the cached part of the history at `key`, for `read` and `conversation`."""
        with self._lock:
            found = self._known.get(key, EMPTY_HISTORY)
            if found is not EMPTY_HISTORY:
                self._known.move_to_end(key)
            return found

    @staticmethod
    def read(key: str, known: CachedHistory) -> Command:
        """Return the command that reads the messages from the newest known one on, for `conversation`."""
        return "LRANGE", key, known.end - 1 - known.trimmed if known.end else -MAX_READ_MESSAGES, -1

    def conversation(
        self, key: str, known: CachedHistory, stamp: str, trimmed: int, items: Sequence[str]
    ) -> Conversation:
        """Return the history. Reads again if the cached part is no longer valid."""
        if known.end and not (known.stamp == stamp and known.trimmed == trimmed and _continues(known, items)):
            known, items = self._again(key, known, stamp, trimmed)
        added = items[1:] if known.end else items
        if not added:
            return known.conversation
        behind, end = known.conversation, known.end
        if not end:
            # Only a history that was not read completely has older messages. If it grew meanwhile, it is read again
            # next time.
            whole = len(added) < MAX_READ_MESSAGES
            older = 0 if whole else max(0, self._client.llen(key) - len(added))
            behind, end = Conversation(older=older), trimmed + older
        messages = [Message.from_stored(item) for item in added]
        conversation = with_sizes(messages, behind).of_newest(MAX_READ_MESSAGES)
        sizes = _newest_cached((*known.sizes, *map(_taken_bytes, added, messages)), conversation)
        self._keep(key, CachedHistory(stamp, trimmed, end + len(added), added[-1], conversation, sizes))
        return conversation

    def _again(self, key: str, known: CachedHistory, stamp: str, trimmed: int) -> tuple[CachedHistory, Sequence[str]]:
        """Return the valid part of `known` and the messages from its newest on, or all messages."""
        if known.stamp == stamp and known.trimmed < trimmed < known.end:
            cut = _trimmed(known, trimmed)
            (items,) = self._client.many([self.read(key, cut)])
            if _continues(cut, items):
                return cut, items
        (items,) = self._client.many([self.read(key, EMPTY_HISTORY)])
        return EMPTY_HISTORY, items

    def _keep(self, key: str, known: CachedHistory) -> None:
        with self._lock:
            before = self._known.pop(key, EMPTY_HISTORY)
            self._bytes += known.taken_bytes - before.taken_bytes
            self._known[key] = known
            while self._bytes > self._max_bytes:
                _, gone = self._known.popitem(last=False)
                self._bytes -= gone.taken_bytes


def _continues(known: CachedHistory, items: Sequence[str]) -> bool:
    """Return whether `items` begin with the newest known message. They do not after Redis lost its last writes."""
    return bool(items) and items[0] == known.newest


def _trimmed(known: CachedHistory, trimmed: int) -> CachedHistory:
    """Return the cached history without the messages that were trimmed from its front."""
    older = known.conversation.older
    gone = trimmed - known.trimmed
    shorter = known.conversation.without_oldest(max(0, gone - older), older=max(0, older - gone))
    return CachedHistory(known.stamp, trimmed, known.end, known.newest, shorter, _newest_cached(known.sizes, shorter))


def _taken_bytes(item: str, message: Message) -> int:
    """Return the approximate bytes of a parsed message, whose text in Redis is `item`.

    A character may take four bytes.
    """
    values = item.count(",") + item.count("{") if message.calls or message.extra else 0
    return BYTES_A_MESSAGE + sys.getsizeof(item) + BYTES_A_VALUE * values


def _newest_cached(sizes: tuple[int, ...], kept: Conversation) -> tuple[int, ...]:
    """Return the sizes of the newest messages that are cached."""
    return sizes[len(sizes) - len(kept.messages) :]

"""Conversations: a history in Redis, parsed and estimated once a process and not once a step.

A history only grows at its end, is trimmed at its front, and is made anew by a compaction or after a loss. Places are
counted from its first message on: `trimmed` says how many are gone in front. What a process knows of a history remains
as long as its `stamp` does, which whoever makes it anew replaces, and its newest known message is where it was.
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

MAX_READ_MESSAGES = 2000  # newest messages a step looks at; what fits the window of a model is chosen from them
MAX_CACHED_BYTES = 64_000_000  # of all histories a process keeps, about
BYTES_A_MESSAGE = 1_500  # that a parsed message takes beside its text
BYTES_A_VALUE = 100  # that a parsed value of a call's arguments takes beside its text; short objects take the most


@dataclass(frozen=True, slots=True)
class CachedHistory:
    """A history as a process read it last.

    end      the place behind its newest message
    newest   that message as it is in Redis
    sizes    bytes that each message of the conversation takes, about
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
    """A reader of histories with a cache of the last ones."""

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
            # Only a history that was not read whole has older messages. One that grew meanwhile is read anew next time.
            whole = len(added) < MAX_READ_MESSAGES
            older = 0 if whole else max(0, self._client.llen(key) - len(added))
            behind, end = Conversation(older=older), trimmed + older
        messages = [Message.model_validate_json(item) for item in added]
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
    """Return about how many bytes a message takes that Redis has as `item`. A character may take four."""
    values = item.count(",") + item.count("{") if message.calls or message.extra else 0
    return BYTES_A_MESSAGE + sys.getsizeof(item) + BYTES_A_VALUE * values


def _newest_cached(sizes: tuple[int, ...], kept: Conversation) -> tuple[int, ...]:
    """Return the sizes of the newest messages that are cached."""
    return sizes[len(sizes) - len(kept.messages) :]

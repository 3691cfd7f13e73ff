"""The reader of a stream: the common part of the vendors' wires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from brainq.adapters.models.call_stream import CallStream, begun_again
from brainq.contracts.model import ModelChunk, ModelReply, TokenUsage
from brainq.runtime.text.surrogates import SurrogateJoiner


class StreamReader(ABC):
    """Reads the reply from a stream's events.

    complete: whether the stream has marked the reply as whole. Otherwise it was cut, however cleanly it ended.
    ended: whether nothing can follow, except the `[DONE]` of some services.
    usage: what the service has reported so far. It stays the same object until the service reports more.
    """

    def __init__(self) -> None:
        self.complete = False
        self.ended = False
        self.usage = TokenUsage()
        self._joiner = SurrogateJoiner()
        self._text: list[str] = []
        self._calls = CallStream()
        self._model = ""
        self._reply_id: str | None = None

    @abstractmethod
    def feed(self, event: dict[str, Any], /) -> ModelChunk | None:
        """Return what `event` adds: a text or reasoning delta, a part of a call, or None.

        Raises ProviderError if the event reports an error.
        """

    def end_marked(self) -> None:  # noqa: B027 (most services mark the end by an event)
        """Note that `[DONE]` has come."""

    @abstractmethod
    def reply(self) -> ModelReply:
        """Return the reply of a stream that has ended."""

    def _begin_reply(self, start: dict[str, Any], *, has_output: bool) -> None:
        """Note the event with which a reply begins. Raises ProviderError if it is the second reply of the stream.

        has_output: whether output has come before. Without any, the same event may come twice.
        """
        reply_id = str(start.get("id") or "")
        is_same = bool(reply_id) and reply_id == self._reply_id and not has_output
        if self._reply_id is not None and not is_same:
            raise begun_again()
        self._reply_id = reply_id

    def _add_text(self, delta: str) -> ModelChunk | None:
        if not delta:
            return None
        text = self._joiner.feed(delta)
        self._text.append(text)
        return ModelChunk(text=text)

"""The reading of one attempt's reply. Its text is published while it arrives, in pieces of about 50 ms."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.callbacks import StreamChunk
from brainq.contracts.claim import StepAttempt
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, ModelRetry
from brainq.engine.brain.middleware import Hook, notify_hooks
from brainq.engine.models.asking.permits import stream_with_permits
from brainq.engine.models.providers import Provider
from brainq.engine.turn.owned_turn import OwnedTurn
from brainq.errors import ProviderError
from brainq.runtime.observe.logs import logger
from brainq.runtime.observe.spans import chat_span
from brainq.runtime.observe.tracing import in_span
from brainq.runtime.outage import OutageRetry, never_unavailable
from brainq.runtime.processes.resources import is_short_now, is_shortage
from brainq.runtime.processes.threads import is_shutdown
from brainq.runtime.text.estimate import with_usage
from brainq.runtime.text.failures import failure_name

if TYPE_CHECKING:
    from brainq.adapters.redis.turns import RedisTurns

log = logger("brainq.turn")
DELTA_EVERY_S = 0.05  # at most about 20 text events a second per turn
QUIET_S = 0.5  # the pause after a piece that could not be written; doubled each time up to LONGEST_QUIET_S
LONGEST_QUIET_S = 5.0
PublishDelta = Callable[[str, str, EventKind], bool]
"""Writes one piece: (mark, text, kind). Returns False if the turn has another owner. Writing a mark twice is the same
as writing it once."""


@dataclass(slots=True)
class TextTail:
    """A buffer for small pieces of text and reasoning. The last piece is published with the step's commit.

    A piece that cannot be written while Redis is unavailable is kept under its mark, and written before the next one.

    is_used   whether any text has arrived
    """

    publish: PublishDelta
    mark: Callable[[], str]
    is_unavailable: Callable[[Exception], bool] = never_unavailable
    started: float = field(default_factory=time.monotonic)
    is_used: bool = False
    _kind: EventKind = EventKind.TEXT_DELTA
    _parts: list[str] = field(default_factory=list[str])
    _waiting: list[tuple[str, str, EventKind]] = field(default_factory=list[tuple[str, str, EventKind]])
    _quiet_s: float = 0.0

    def add(self, text: str, kind: EventKind = EventKind.TEXT_DELTA) -> bool:
        """Add a piece, and publish the buffer if it is time. Returns False if the turn has another owner."""
        now, self.is_used = time.monotonic(), True
        if kind is not self._kind:  # so that pieces keep their order
            self._pack()
            self._kind = kind
        self._parts.append(text)
        if now - self.started < max(DELTA_EVERY_S, self._quiet_s):
            return True
        self.started = now
        self._pack()
        try:
            ours = self._write()
        except Exception as failure:
            if not self.is_unavailable(failure):
                raise
            # The reply matters more than its readers, who can read this piece later.
            log.info("text not published yet", why=type(failure).__name__)
            self._quiet_s = min(LONGEST_QUIET_S, 2 * self._quiet_s or QUIET_S)
            self.started = time.monotonic()
            return True
        self._quiet_s = 0.0
        return ours

    def rest(self, retry: OutageRetry) -> str:
        """Return the text that is published with the commit. Earlier pieces that are not written, or may not be, are
        written first."""
        if self._kind is not EventKind.TEXT_DELTA:
            self._pack()
        if self._waiting:
            retry(self._write)
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def _pack(self) -> None:
        """Make one piece of the buffered text."""
        if self._parts:
            self._waiting.append((self.mark(), "".join(self._parts), self._kind))
            self._parts.clear()

    def _write(self) -> bool:
        """Write the pieces. If a write fails, its piece stays the first and is written again, because it may or may not
        have been written."""
        while self._waiting:
            if not self.publish(*self._waiting[0]):
                return False
            self._waiting.pop(0)
        return True


class TurnLost(Exception):
    """Raised when the turn has gone to another owner while the model was answering."""


@dataclass(slots=True)
class AttemptReader:
    """The reader of one attempt's reply, which publishes the pieces as they arrive. An error of publishing is never
    taken for a failure of the model.

    hooks   the middleware hooks for each piece of text
    tail    the text that is not published yet
    """

    turns: RedisTurns
    turn: OwnedTurn
    step: StepAttempt
    hooks: tuple[Hook, ...]
    tail: TextTail = field(init=False)

    def __post_init__(self) -> None:
        mark = partial(self.turns.mark, self.turn.claim)
        self.tail = TextTail(self._publish_text, mark, self.turn.retry.is_unavailable)

    def read(self, provider: Provider, request: ModelRequest) -> ModelReply:
        """Stream the reply. Raises ProviderError, or TurnLost if the turn has another owner."""
        reply: ModelReply | None = None
        chat = chat_span(provider, request)
        with in_span(chat.span), closing(provider_chunks(provider, request)) as chunks:
            for chunk in chunks:
                if chunk.reasoning:
                    self._add(chunk.reasoning, EventKind.REASONING_DELTA)
                if chunk.text:
                    chat.chunk()
                    self._add(chunk.text, EventKind.TEXT_DELTA)
                    if self.hooks:
                        self._notify(chunk.text)
                if chunk.retry is not None:
                    chat.retry(chunk.retry)
                    self.publish_retry(chunk.retry)
                if chunk.reply is not None:
                    reply = with_usage(chunk.reply, request)
                    chat.reply(reply)
        assert reply is not None
        return reply

    def publish_retry(self, retry: ModelRetry) -> None:
        """Publish that the model is called again. The retry itself does not need Redis."""
        try:
            self.turns.publish_retry(self.turn.claim, self.step.step, self.step.attempt, retry)
        except Exception as failure:
            turn_id, why = self.turn.claim.turn_id, failure_name(failure)
            log.warning("retry not published", turn_id=turn_id, step=self.step.step, why=why)

    def _add(self, text: str, kind: EventKind) -> None:
        if self.turn.is_lost() or not self.tail.add(text, kind):
            raise TurnLost

    def _publish_text(self, mark: str, text: str, kind: EventKind) -> bool:
        return self.turns.publish_delta(self.turn.claim, self.step.step, self.step.attempt, text, mark, kind)

    def _notify(self, text: str) -> None:
        turn_id, session_id = self.turn.claim.turn_id, self.turn.claim.session_id
        piece = StreamChunk(turn_id, session_id, self.step.step, self.step.attempt, text)
        notify_hooks(self.hooks, turn_id, piece)


def provider_chunks(provider: Provider, request: ModelRequest) -> Generator[ModelChunk]:
    """Yield the provider's chunks. An exception that is not a ProviderError becomes one of the kind `raised`. A
    shortage of this process, such as of descriptors, is raised unchanged, because the turn can continue elsewhere or
    later."""
    replied = False
    try:
        for chunk in stream_with_permits(provider, request):
            if not isinstance(chunk, ModelChunk):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"generate_stream must yield ModelChunk, got {type(chunk).__name__}")
            replied = replied or chunk.reply is not None
            yield chunk
    except (ProviderError, GeneratorExit):
        raise
    except BaseException as failure:  # including a panic of a library
        if is_shutdown(failure) or is_short_now(failure):  # the process is the problem, and not the provider
            raise
        log.error("provider raised", failure=failure, turn_id=request.turn_id, step=request.step)
        was_short = is_shortage(failure)
        raise ProviderError(
            f"provider {provider.name!r} raised {failure_name(failure)}",
            kind="stream" if was_short else "raised",
            retryable=was_short,
        ) from failure
    if not replied:
        raise ProviderError(
            f"provider {provider.name!r} ended its stream without a reply", kind="stream", retryable=True
        )

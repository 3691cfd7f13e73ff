"""Fallback: several models as one, of which the first available model answers. A model that failed rests for a time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from brainq.contracts.model import AnsweredBy, ModelChunk, ModelReply, ModelRequest, ModelRetry
from brainq.engine.models.asking.deferred import CallDeferred, ModelForbidden
from brainq.engine.models.asking.permits import stream_with_permits
from brainq.engine.models.asking.retry import ServiceError
from brainq.engine.models.asking.stall_clock import Clock, Deadline
from brainq.engine.models.providers import (
    Provider,
    check_provider,
    is_same_service,
    keeps_limits,
    model_reference,
    resolve_model,
    split_model,
    warm_up,
)
from brainq.errors import InvalidInput, ProviderError, SetupError
from brainq.runtime.observe.logs import logger

log = logger("brainq.models")
MAX_DOUBLINGS = 20
UNAVAILABLE_KINDS = frozenset(
    {
        *("rate_limited", "over_limit", "quota", "denied", "server", "connection", "timeout", "malformed"),
    }
)
"""The kinds of failure after which the next model is called."""
INTERRUPTED_KINDS = frozenset({"stream", "stalled", "broken"})
"""The kinds of failure that end the attempt, because its output may be billed. The next attempt skips this model."""


@dataclass(eq=False)
class Cooldown:
    """The rest of a model after a failure: `first_s` seconds, doubled with each further failure up to `longest_s`.

    After the rest, one request tries the model. Others skip it until that request has returned, or until the same time
    has passed again.
    """

    first_s: float
    longest_s: float
    clock: Clock = time.monotonic
    failures: int = 0
    until: float = field(default=float("-inf"))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_active(self) -> bool:
        with self._lock:
            return self.clock() < self.until

    def try_begin(self) -> int | None:
        """Begin a request, and return the number to pass to `failed`. Returns None if the model rests or is being
        tried."""
        with self._lock:
            if self.clock() < self.until:
                return None
            if self.failures:
                self.until = self.clock() + self._rest_s()
            return self.failures

    def failed(self, taken: int, retry_after_s: float | None = None) -> None:
        """Start a rest after a failure. Of several requests that were open when the model failed, the first one counts.

        retry_after_s: how many seconds the service asked us to wait.
        """
        with self._lock:
            if taken == self.failures:
                self.failures += 1
                self.until = self.clock() + max(self._rest_s(), retry_after_s or 0.0)

    def reset(self) -> None:
        with self._lock:
            self.failures, self.until = 0, float("-inf")

    def _rest_s(self) -> float:
        return min(self.longest_s, self.first_s * 2 ** min(self.failures - 1, MAX_DOUBLINGS))


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    provider: Provider | None  # None if it is made by name at its first call
    model: str
    rest: Cooldown

    def resolved(self) -> tuple[Provider, str]:
        return resolve_model(self.model) if self.provider is None else (self.provider, self.model)


class Fallback:
    """A model for a `Brain`, its `auxiliary_model` or a step, which calls the first available one of several models.

        Brain("support", Fallback(["openai:gpt-5", "anthropic:claude-sonnet-4-6"]))

    models: at least two models, each as `provider:model` or as a Provider, which may itself be a Fallback.
    patience_s: how long one model may retry its service while another model is left to call.
    rest_s, longest_rest_s: how long a model that failed is skipped. The time doubles with each further failure. Each
        process keeps these times for itself.

    The next model is called if a service is not available: rate limits, quota, an account that is not allowed to use
    it, server errors, no connection, no answer, or an unreadable answer. It is also called if a limited model has no
    free permit within 2 s; only the last model's queue is waited for. A request that was refused or is too long is not
    passed to another model.

    Until its first output each model has an equal share of the remaining time, and the last model has all of it. Once a
    reply has begun, no other model is called in that attempt. The next attempt of the turn skips the model that broke
    off.
    """

    takes_permits = True  # because each of its members does

    def __init__(
        self,
        models: Sequence[str | Provider],
        *,
        name: str = "fallback",
        patience_s: float = 15.0,
        rest_s: float = 5.0,
        longest_rest_s: float = 300.0,
        clock: Clock = time.monotonic,
    ) -> None:
        if isinstance(models, str) or len(models) < 2:
            raise InvalidInput("models", "a Fallback takes a list of at least two models")
        # The condition is written so that NaN is refused, too.
        if not (patience_s >= 0 and 0 < rest_s <= longest_rest_s):
            raise InvalidInput(
                "rest_s", "seconds must be positive, and longest_rest_s at least rest_s; patience_s may be 0"
            )
        names = Counter(model for model in models if isinstance(model, str))
        named_twice = next((name for name, times in names.items() if times > 1), None)
        if named_twice is not None:
            raise InvalidInput(
                "models",
                f"{named_twice!r} is repeated; name each model once, because a model that failed is not called twice",
            )
        self.name = name
        self._patience_s = patience_s
        self._clock = clock
        self._members = tuple(_make_member(model, Cooldown(rest_s, longest_rest_s, clock)) for model in models)

    @property
    def members(self) -> tuple[tuple[Provider, str], ...]:
        """The providers and their models, in order."""
        return tuple(member.resolved() for member in self._members)

    def check(self) -> None:
        """Raise SetupError if one of the members could not be called."""
        for member in self._members:
            provider, model = member.resolved()
            try:
                check_provider(provider)
            except SetupError as error:
                raise SetupError(f"{model_reference(provider, model)}: {error}") from error

    def warm_up(self) -> None:
        """Prepare each member. Raises SetupError if a key or a package is missing."""
        for provider, _ in self.members:
            warm_up(provider)

    def generate(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply. Because no part of it is shown before it is complete, an interrupted reply is
        requested again from the next model."""
        deadline = Deadline(request.timeout_s, self._clock)
        while True:
            try:
                *_, last = self._chunks(request, deadline)
            except ProviderError as error:
                if error.kind in INTERRUPTED_KINDS and not deadline.passed and self._is_any_available():
                    continue
                raise
            assert last.reply is not None
            return last.reply

    @keeps_limits
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        """Return the chunks of the reply. A retry chunk names the model that is called next."""
        return self._chunks(request, Deadline(request.timeout_s, self._clock))

    def _is_any_available(self) -> bool:
        return any(not member.rest.failures for member in self._members)

    def _chunks(self, request: ModelRequest, deadline: Deadline) -> Iterator[ModelChunk]:
        failures: list[tuple[str, ProviderError]] = []
        well = [member for member in self._members if not member.rest.is_active]
        # If all of them rest, all are called, the one whose rest ends first before the others.
        candidates = well or sorted(self._members, key=lambda member: member.rest.until)
        for left, member in zip(reversed(range(len(candidates))), candidates, strict=True):
            taken = member.rest.try_begin()
            if taken is None:
                if well and left:
                    continue  # another request is trying this model
                taken = member.rest.failures
            provider, model = member.resolved()
            who = model_reference(provider, model)
            if failures:
                before, kind = failures[-1][0], failures[-1][1].kind
                turn_id, step = request.turn_id, request.step
                log.warning(
                    "model unavailable, calling the next", model=before, then=who, kind=kind, turn_id=turn_id, step=step
                )
                yield ModelChunk(retry=ModelRetry(kind=kind, wait_s=0.0, model=who))
            try:
                yield from self._member_chunks(member, provider, model, request, deadline, left)
            except (CallDeferred, ModelForbidden) as later:
                if not left:
                    raise
                failures.append((who, later))  # the model is available, so it does not rest
            except ProviderError as error:
                if error.kind in UNAVAILABLE_KINDS or error.kind in INTERRUPTED_KINDS:
                    member.rest.failed(taken, getattr(error, "retry_after_s", None))
                if error.kind not in UNAVAILABLE_KINDS or deadline.passed:
                    raise
                failures.append((who, error))
            else:
                return
        raise _none_available(failures)

    def _member_chunks(
        self, member: _Member, provider: Provider, model: str, request: ModelRequest, deadline: Deadline, left: int
    ) -> Iterator[ModelChunk]:
        """Yield the member's chunks, with its name in the reply. Raises none of UNAVAILABLE_KINDS once output has
        begun."""
        who = model_reference(provider, model)
        begun = False
        is_own = is_same_service(provider, self._members[0].resolved()[0])
        member_request = _member_request(request, model, deadline, left, is_own=is_own)
        try:
            for chunk in self._within_patience(stream_with_permits(provider, member_request), who, left):
                if chunk.reply is not None:
                    member.rest.reset()
                    yield ModelChunk(reply=_with_answered_by(chunk.reply, provider, model))
                    return
                begun = begun or bool(chunk.text or chunk.reasoning)
                yield chunk
        except SetupError as error:
            raise ProviderError(f"{who}: {error}", kind="connection", retryable=False) from error
        except ProviderError as error:
            if begun and error.kind in UNAVAILABLE_KINDS and not deadline.passed:
                raise ProviderError(f"the stream broke off: {error}", kind="stream", retryable=True) from error
            raise
        raise ProviderError(f"{who} ended its stream without a reply", kind="stream", retryable=True)

    def _within_patience(self, chunks: Iterator[ModelChunk], who: str, left: int) -> Iterator[ModelChunk]:
        """Yield the chunks until a retry would take longer than `patience_s`, if other models are left."""
        patience = Deadline(self._patience_s, self._clock)
        for chunk in chunks:
            if chunk.retry is not None:
                kind, wait_s = chunk.retry.kind, chunk.retry.wait_s
                if left and wait_s >= patience.remaining_s():
                    raise ServiceError(
                        f"{who}: the retry would take too long ({kind})",
                        kind=kind if kind in UNAVAILABLE_KINDS else "connection",
                        retryable=True,
                        retry_after_s=wait_s,
                    )
                chunk = ModelChunk(retry=ModelRetry(kind=kind, wait_s=wait_s, model=chunk.retry.model or who))
            yield chunk


def _member_request(request: ModelRequest, model: str, deadline: Deadline, left: int, *, is_own: bool) -> ModelRequest:
    """Return the request for one member, with the remaining time and a share of it for the first output.

    is_own: whether the extra headers and parameters are meant for this service. Another service would read their
        secrets.
    """
    remaining_s = max(0.001, deadline.remaining_s())
    first_s = request.first_token_s
    if left:
        share_s = remaining_s / (left + 1)
        first_s = share_s if first_s is None else min(first_s, share_s)
    changes: dict[str, Any] = {
        "model": model,
        "timeout_s": remaining_s,
        "first_token_s": first_s,
        "in_line": request.in_line and not left,
    }
    if not is_own:
        changes["options"] = request.options.for_another_service()
    return request.model_copy(update=changes)


def _make_member(model: str | Provider, rest: Cooldown) -> _Member:
    if isinstance(model, str):
        split_model(model)
        return _Member(None, model, rest)
    if not isinstance(cast("object", model), Provider):
        raise InvalidInput("models", f"each must be a str or Provider, got {type(model).__name__}")
    return _Member(model, model.name, rest)


def _with_answered_by(reply: ModelReply, provider: Provider, model: str) -> ModelReply:
    if reply.answered_by is not None:  # answered by a member of a member
        return reply
    return reply.model_copy(update={"answered_by": AnsweredBy(provider=provider.name, model=model)})


def _none_available(failures: Sequence[tuple[str, ProviderError]]) -> ProviderError:
    if len(failures) == 1:
        return failures[0][1]
    reasons = "; ".join(str(error) for _, error in failures)
    last = failures[-1][1]
    return ProviderError(f"no model of the fallback is available: {reasons}", kind=last.kind, retryable=last.retryable)

"""The provider for Gemini, Bedrock, Mistral and other services, on pydantic-ai's models, which run on one event loop of
the process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from brainq.adapters.models.call_stream import CallStream
from brainq.adapters.models.failures import refusal_key
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage
from brainq.contrib.pydantic_ai.services import ANY_SERVICE, require_service
from brainq.engine.models.asking.permits import permit_for
from brainq.engine.models.asking.reply_size import ReplyTooLarge, text_bytes
from brainq.engine.models.asking.retry import RetryPolicy, ServiceError, call_with_retry, stream_with_retry
from brainq.engine.models.asking.stall_clock import Deadline, StallClock
from brainq.engine.models.providers import keeps_limits
from brainq.errors import ProviderError, SetupError
from brainq.runtime.observe.logs import logger
from brainq.runtime.processes.threads import LoopThread
from brainq.runtime.text.estimate import with_usage
from brainq.runtime.text.surrogates import SurrogateJoiner

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings


log = logger("brainq.models")
_LOOP = LoopThread("brainq-models")
OPEN_TIMEOUT_S = 30.0
_WITHOUT_FINISH_REASON = frozenset({"test", "function"})
"""The systems that run in this process and give no finish reason.

If a service's stream has no finish reason, it was cut.
"""


class PydanticAIProvider:
    """A service that pydantic-ai supports (extra `brainq[pydantic-ai]`, and the service's own extra of
    pydantic-ai-slim).

    system: pydantic-ai's name of the service, such as `google`. With `pydantic-ai` the model's name begins with it.
    model: your own pydantic-ai model. It answers whatever the request's model is.
    name: the name of the service in prices and errors. Defaults to the system's name.
    """

    takes_permits = True  # for each request, retries included

    def __init__(
        self,
        system: str = ANY_SERVICE,
        *,
        model: Model | None = None,
        name: str | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.name = name or (system if model is None else model.system)
        self._system = system
        self._given = model
        self._retry = retry or RetryPolicy()
        self._models: dict[str, Model] = {}
        self._pid = 0
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()

    def check(self) -> None:
        """Raise SetupError if a key or a package is missing."""
        if self._given is None:
            require_service(self._system)

    def warm_up(self) -> None:
        """Import pydantic-ai and the service's SDK. Raises SetupError if a key or a package is missing."""
        self.check()
        if self._given is None and self._system != ANY_SERVICE:
            from pydantic_ai.providers import infer_provider

            try:
                infer_provider(self._system)
            except Exception as error:
                raise self._failure(error) from error

    def generate(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply. Also raises SetupError if a key or a package is missing."""
        deadline = Deadline(request.timeout_s, self._retry.clock)
        return call_with_retry(partial(self._whole, request, deadline), deadline, self._retry)

    @keeps_limits
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        """Yield the chunks of the reply. Also raises SetupError if a key or a package is missing."""
        deadline = Deadline(request.timeout_s, self._retry.clock)
        return stream_with_retry(partial(self._chunks, request, deadline), deadline, self._retry)

    def _whole(self, request: ModelRequest, deadline: Deadline) -> ModelReply:
        model = self._model(request.model)
        items: SimpleQueue[ModelReply | BaseException] = SimpleQueue()
        sent = permit_for(self.name, request.model)
        sent.acquire(request, deadline.remaining_s())
        with sent:
            settings = self._settings(request, deadline)
            asked = _request_reply(model, request, settings, sent.entry.max_bytes)
            task = _begin(_put_outcome(asked, items))
            try:
                found = items.get(timeout=deadline.remaining_s())
            except Empty:
                raise deadline.error() from None
            finally:
                task.cancel()
            sent.note_answer(status=_status(found))
            if isinstance(found, BaseException):
                raise self._answer_failure(found, request, settings) from found
            reply = self._complete_reply(found, request, model)
            sent.complete(reply.usage)
        return reply

    def _chunks(self, request: ModelRequest, deadline: Deadline) -> Generator[ModelChunk]:
        model = self._model(request.model)
        items: SimpleQueue[ModelChunk | TokenUsage | ModelReply | BaseException] = SimpleQueue()
        shown = 0
        sent = permit_for(self.name, request.model)
        sent.acquire(request, deadline.remaining_s())
        with sent:
            clock = StallClock(deadline, request.first_token_s, request.idle_s)
            settings = self._settings(request, deadline)
            asked = _request_stream(model, request, settings, sent.entry.max_bytes, items)
            task = _begin(_put_outcome(asked, items))
            try:
                while True:
                    try:
                        item = items.get(timeout=clock.allowed_s())
                    except Empty:
                        raise clock.error(self.name) from None
                    sent.note_answer(status=_status(item))
                    if isinstance(item, BaseException):
                        raise self._answer_failure(item, request, settings) from item
                    if isinstance(item, ModelReply):
                        break
                    if isinstance(item, TokenUsage):
                        sent.note_usage(item)
                        continue
                    clock.begin()
                    sent.add_chunk(item)
                    shown += len(item.text)
                    yield item
            finally:
                task.cancel()
            reply = self._complete_reply(item, request, model)
            sent.complete(reply.usage)
        if len(reply.text) > shown:  # half an emoji that was held back
            yield ModelChunk(text=reply.text[shown:])
        yield ModelChunk(reply=reply)

    def _complete_reply(self, reply: ModelReply, request: ModelRequest, model: Model) -> ModelReply:
        if not reply.finish_reason and model.system not in _WITHOUT_FINISH_REASON:
            raise ProviderError(
                f"{self.name}: the reply ended without a finish reason, so it was cut off",
                kind="stream",
                retryable=True,
            )
        return with_usage(reply, request)

    def _model(self, name: str) -> Model:
        """Return the model, entered on this process's loop. Its connections are kept until `close`."""
        key = "" if self._given is not None else name
        with self._lock:
            if self._pid != os.getpid():  # connections inherited through fork belong to the parent
                self._models, self._pid = {}, os.getpid()
            found = self._models.get(key)
        return found if found is not None else self._open_model(key, name)

    def _open_model(self, key: str, name: str) -> Model:
        # Outside the lock: a given model is a user's code. Of two threads' models one is kept.
        try:
            model = self._given or self._infer_model(name)
            _LOOP.run(model.__aenter__(), OPEN_TIMEOUT_S)
        except Exception as error:
            raise self._failure(error) from error
        with self._lock:
            is_first = key not in self._models
            kept = self._models.setdefault(key, model)
        if not is_first:
            _LOOP.run(model.__aexit__(None, None, None), OPEN_TIMEOUT_S)
        return kept

    def _infer_model(self, name: str) -> Model:
        from pydantic_ai.models import infer_model

        return infer_model(name if self._system == ANY_SERVICE else f"{self._system}:{name}")

    def close(self) -> None:
        """Close the connections. The next call opens new ones."""
        with self._lock:
            models, self._models = self._models, {}
            is_ours = self._pid == os.getpid()
        for model in models.values() if is_ours else ():
            _LOOP.run(model.__aexit__(None, None, None), OPEN_TIMEOUT_S)

    def _settings(self, request: ModelRequest, deadline: Deadline) -> ModelSettings:
        """Return the request's settings, without those that its model has refused."""
        from brainq.contrib.pydantic_ai import wire

        known = (key.partition(": ") for key in self._refused)
        refused = {setting for setting, _, model in known if model == request.model}
        return wire.to_settings(request, deadline.remaining_s(), refused)

    def _answer_failure(self, error: BaseException, request: ModelRequest, settings: ModelSettings) -> Exception:
        """Return the error for a failed request. If the model refused a setting, the request can be sent again without
        it."""
        from brainq.contrib.pydantic_ai import wire

        named = wire.refused_setting(error, settings)
        if named is None:
            return self._failure(error)
        self._refused |= {refusal_key(named, request.model)}
        log.warning(
            "the service refuses a part of requests; brainq omits it from now on", provider=self.name, left_out=named
        )
        return ServiceError(f"{self.name}: {request.model} does not support {named}", kind="refused", retryable=True)

    def _failure(self, error: BaseException) -> Exception:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pydantic_ai":
            try:
                require_service(self._system)
            except SetupError as missing:
                return missing
        if not isinstance(error, Exception):
            return ProviderError(f"{self.name}: {type(error).__name__}", kind="refused", retryable=False)
        from brainq.contrib.pydantic_ai.wire import from_pydantic_error

        return from_pydantic_error(error, self.name)


def _status(item: object) -> int:
    """Return 500 if `item` is an exception, or else 200."""
    return 500 if isinstance(item, BaseException) else 200


async def _request_reply(model: Model, request: ModelRequest, settings: ModelSettings, most: int) -> ModelReply:
    """Return the whole reply, read as a stream: pydantic-ai would refuse a ChatCompletion over its token counts."""
    if model.system in _WITHOUT_FINISH_REASON:
        return await _request_whole(model, request, settings)
    return await _request_stream(model, request, settings, most, SimpleQueue())


async def _request_whole(model: Model, request: ModelRequest, settings: ModelSettings) -> ModelReply:
    from pydantic_ai import direct

    from brainq.contrib.pydantic_ai import wire

    response = await direct.model_request(
        model,
        wire.to_messages(request, model.system),
        model_settings=settings,
        model_request_parameters=wire.to_parameters(request, model),
        instrument=False,
    )
    return wire.from_response(response, request.model, model.system)


async def _request_stream(
    model: Model, request: ModelRequest, settings: ModelSettings, most: int, items: SimpleQueue[Any]
) -> ModelReply:
    """Put the parts of the reply into `items`: text, parts of calls, and usage as far as the service reports it.

    Raises ReplyTooLarge after `most` bytes, however far its reader has come.
    """
    from pydantic_ai import direct
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent

    from brainq.contrib.pydantic_ai import wire

    if getattr(model, "stream_function", model) is None:  # a FunctionModel that only answers as a whole
        reply = await _request_whole(model, request, settings)
        items.put(ModelChunk(text=reply.text))
        return reply
    text_joiner, thought, calls = SurrogateJoiner(), SurrogateJoiner(), CallStream()
    opened = direct.model_request_stream(
        model,
        wire.to_messages(request, model.system),
        model_settings=settings,
        model_request_parameters=wire.to_parameters(request, model),
        instrument=False,
    )
    reported, size = TokenUsage(), 0
    async with opened as stream:
        async for event in stream:
            if (usage := wire.from_usage(stream.usage)) != reported:
                reported = usage
                items.put(reported)
            if not isinstance(event, PartStartEvent | PartDeltaEvent):
                continue
            part: Any = event.part if isinstance(event, PartStartEvent) else event.delta
            kind = str(getattr(part, "part_kind", None) or part.part_delta_kind)
            text = str(getattr(part, "content", None) or getattr(part, "content_delta", None) or "")
            arguments = ""
            if kind.startswith("tool"):
                calls.continue_or_begin(found := wire.call_part(part, event.index))
                arguments = f"{found.name}{found.arguments}"
            size += text_bytes(text) + text_bytes(arguments)
            if size > most:
                raise ReplyTooLarge(most)
            if kind.startswith("tool"):
                items.put(ModelChunk(arguments=arguments))
            elif kind == "text" and (text := text_joiner.feed(text)):
                items.put(ModelChunk(text=text))
            elif kind == "thinking" and (text := thought.feed(text)):
                items.put(ModelChunk(reasoning=text))
        response = stream.get()
    if response.state == "interrupted":
        raise ProviderError("the stream was interrupted", kind="stream", retryable=True)
    return wire.from_response(response, request.model, model.system, calls)


async def _put_outcome(work: Coroutine[Any, Any, ModelReply], items: SimpleQueue[Any]) -> None:
    """Put the result or the exception of `work` into `items`, as the last item."""
    try:
        items.put(await work)
    except BaseException as error:
        items.put(error)
        if not isinstance(error, Exception):
            raise


def _begin(work: Coroutine[Any, Any, None]) -> Future[None]:
    """Run `work` on the models' loop. Cancelling it after its end does nothing."""
    return asyncio.run_coroutine_threadsafe(work, _LOOP.loop)

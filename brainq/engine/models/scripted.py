"""A model that follows a script or rules, for tests, demos and benchmarks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from brainq.contracts.message import ToolCall
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest, TokenUsage
from brainq.engine.models.providers import keeps_limits
from brainq.errors import ProviderError
from brainq.runtime.text.estimate import usage_of

_WORD = re.compile(r"\s*\S+\s*")
Rules = Callable[[ModelRequest], "ModelReply | ScriptedFailure"]


@dataclass(frozen=True)
class ScriptedFailure:
    """The failure of a scripted step. Make it with `fails`."""

    kind: str
    retryable: bool
    message: str
    attempts: int
    then: ModelReply | None
    after_text: str


def says(text: str, *, usage: TokenUsage | None = None, finish: str = "stop") -> ModelReply:
    """Return a reply that consists of text. Its usage is estimated from the lengths unless it is given.

    finish: why the reply ended: `length` if it was cut off, `content_filter` if it was filtered.
    """
    return ModelReply(text=text, usage=usage or TokenUsage(), finish_reason=finish)


def calls(
    *wanted: tuple[str, dict[str, Any] | str],
    text: str = "",
    usage: TokenUsage | None = None,
    finish: str = "tool_calls",
) -> ModelReply:
    """Return a reply that calls tools, in this order: `calls(("read_note", {"path": "a"}), text="Let me see.")`.

    Arguments given as str are passed on unchanged, as when a model writes broken JSON.

    finish: as for `says`. No call of a reply that was cut off or filtered runs.
    """
    made = tuple(
        ToolCall(id=f"call_{index}", name=name, arguments=arguments, provider_id=f"call_{index}")
        for index, (name, arguments) in enumerate(wanted)
    )
    return ModelReply(text=text, calls=made, usage=usage or TokenUsage(), finish_reason=finish)


def fails(
    kind: str = "server",
    *,
    retryable: bool = True,
    message: str = "a scripted failure",
    attempts: int = 1_000_000,
    then: ModelReply | None = None,
    after_text: str = "",
) -> ScriptedFailure:
    """Return a step that raises ProviderError on attempts 1 to `attempts` (of ModelRequest), and then replies `then`.

    after_text: the text that a stream shows before it fails.
    """
    return ScriptedFailure(kind, retryable, message, attempts, then, after_text)


class ScriptedProvider:
    """A provider that answers step n, counted from 1, of every turn with `script[n - 1]`, or any request with
    `rules(request)`.

    It has no state: the reply depends on the request alone. So a step that is repeated, by any process, gets the same
    reply. A step past the end of the script raises ProviderError (kind `script`).

    latency_s: the seconds that a reply takes. A stream spreads them over the words of its text, which come after its
        reasoning. If `timeout_s` of the request is less, the call then raises ProviderError (kind `timeout`).
    auxiliary: answers requests that are not steps (`request.purpose`: reflections, summaries, ...). Without it they
        raise ProviderError (kind `script`), and their caller continues without a model.
    """

    def __init__(
        self,
        script: Sequence[ModelReply | ScriptedFailure] | None = None,
        *,
        rules: Rules | None = None,
        latency_s: float = 0.0,
        name: str = "scripted",
        auxiliary: Rules | None = None,
    ) -> None:
        if (script is None) == (rules is None):
            raise TypeError("give ScriptedProvider either script=[...] or rules=function")
        self.name = name
        self._script = tuple(script or ())
        self._rules = rules
        self._latency_s = latency_s
        self._auxiliary = auxiliary

    def generate(self, request: ModelRequest) -> ModelReply:
        answer = self.answer(request)
        self._wait(request, self._latency_s, already_s=0.0)
        if isinstance(answer, ScriptedFailure):
            raise _failure_error(answer)
        return _with_usage(answer, request)

    @keeps_limits
    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        answer = self.answer(request)
        thoughts = () if isinstance(answer, ScriptedFailure) else answer.reasoning
        for word in (word for thought in thoughts for word in _words(thought.text)):
            yield ModelChunk(reasoning=word)
        text = answer.after_text if isinstance(answer, ScriptedFailure) else answer.text
        words = _words(text)
        pause_s = self._latency_s / max(1, len(words))
        silence_s = request.first_token_s
        for index, word in enumerate(words):
            self._wait(request, pause_s, already_s=index * pause_s, silence_s=silence_s)
            silence_s = request.idle_s
            yield ModelChunk(text=word)
        if not words:
            self._wait(request, self._latency_s, already_s=0.0, silence_s=silence_s)
        if isinstance(answer, ScriptedFailure):
            raise _failure_error(answer)
        yield ModelChunk(reply=_with_usage(answer, request))

    def answer(self, request: ModelRequest) -> ModelReply | ScriptedFailure:
        """Return the reply, or the failure, that the script has for a request. Raises ProviderError if it has none."""
        if request.purpose != "step":
            if self._auxiliary is None:
                raise ProviderError(
                    f"this scripted model answers steps only, but the request is for a {request.purpose}; "
                    "give it auxiliary=function",
                    kind="script",
                    retryable=False,
                )
            answer = self._auxiliary(request)
        elif self._rules is not None:
            answer = self._rules(request)
        elif 1 <= request.step <= len(self._script):
            answer = self._script[request.step - 1]
        else:
            raise ProviderError(
                f"the script has {len(self._script)} steps, but the request is for step {request.step}; "
                "add a reply to it, or end it with one that calls no tools",
                kind="script",
                retryable=False,
            )
        if isinstance(answer, ScriptedFailure) and answer.then is not None:
            return answer if request.attempt <= answer.attempts else answer.then
        return answer

    def _wait(self, request: ModelRequest, seconds: float, *, already_s: float, silence_s: float | None = None) -> None:
        remaining_s = max(0.0, request.timeout_s - already_s)
        if silence_s is not None and silence_s < min(seconds, remaining_s):
            time.sleep(silence_s)
            raise ProviderError(f"the scripted model said nothing for {silence_s:g} s", kind="stalled", retryable=True)
        if seconds > 0:
            time.sleep(min(seconds, remaining_s))
        if seconds > remaining_s:
            raise ProviderError(
                f"the scripted model did not answer within {request.timeout_s:g} s", kind="timeout", retryable=True
            )


def _with_usage(reply: ModelReply, request: ModelRequest) -> ModelReply:
    # Nobody bills for it, so the estimated usage is exact. Wrong counts in a script stay marked.
    usage = usage_of(reply, request).model_copy(update={"estimated": reply.usage.estimated})
    return reply.model_copy(update={"model": reply.model or request.model, "usage": usage})


def _failure_error(failure: ScriptedFailure) -> ProviderError:
    return ProviderError(failure.message, kind=failure.kind, retryable=failure.retryable)


def _words(text: str) -> list[str]:
    return _WORD.findall(text) or ([text] if text else [])

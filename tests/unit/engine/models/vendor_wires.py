"""Providers on the vendors' real SDKs whose HTTP library is answered from a list, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import anthropic
import httpx2
import openai

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider, OpenAIResponsesProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.engine.models.asking.retry import RetryPolicy

Answer = httpx2.Response | Exception
QUICK = RetryPolicy(sleep=lambda _: None)
HELLO = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}
_MADE: dict[type[VendorProvider], tuple[type[Any], type[Any]]] = {
    OpenAIProvider: (openai.OpenAI, openai.DefaultHttpxClient),
    OpenAIResponsesProvider: (openai.OpenAI, openai.DefaultHttpxClient),
    AnthropicProvider: (anthropic.Anthropic, anthropic.DefaultHttpxClient),
}


class Answered:
    """A provider whose requests get these answers in turn, the last one ever again; `bodies` are what it sent."""

    def __init__(
        self, kind: Callable[..., VendorProvider], answers: Iterable[Answer], retry: RetryPolicy = QUICK, **options: Any
    ) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._answers = list(answers)
        base_url = options.pop("base_url", "http://svc.test/v1")
        self.provider = made = kind(api_key="k", base_url=base_url, retry=retry, **options)
        client, http = _MADE[type(made)]
        transport = httpx2.MockTransport(self._answer)
        made._client = client(  # pyright: ignore[reportPrivateUsage]
            api_key="k", base_url="http://svc.test/v1", max_retries=0, http_client=http(transport=transport)
        )
        made._client_pid = __import__("os").getpid()  # pyright: ignore[reportPrivateUsage]

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content) if request.content else {})
        answer = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)


def refusal(status: int, body: Any = "", **headers: str) -> httpx2.Response:
    """An answer with this body; the names of headers with `_` for `-`."""
    content = body if isinstance(body, str) else json.dumps(body)
    kind = {"content-type": "application/json"} if content.lstrip()[:1] in ("{", "[") else {}
    return httpx2.Response(
        status, headers={**kind, **{name.replace("_", "-"): value for name, value in headers.items()}}, content=content
    )


def stream(*events: Any, end: str = "\n\n") -> httpx2.Response:
    """A stream with these events."""
    lines = (f"data: {event if isinstance(event, str) else json.dumps(event)}{end}" for event in events)
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content="".join(lines).encode())


def hello_chunks() -> tuple[Any, ...]:
    """The events of a whole streamed reply of chat completions."""
    return (
        {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    )

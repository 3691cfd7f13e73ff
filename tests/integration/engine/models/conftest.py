"""Model servers for the provider tests: llmock, which judges its client, and one that does as it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.engine.models.asking.retry import RetryPolicy
from tests.integration.engine.models.llmock_server import LlmockServer
from tests.integration.engine.models.wire_server import WireServer

QUICK = RetryPolicy(first_s=0.05, max_attempts=4)


@pytest.fixture(scope="module")
def llmock_process() -> Iterator[LlmockServer]:
    server = LlmockServer()
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture
def llmock(llmock_process: LlmockServer) -> LlmockServer:
    llmock_process.reset()
    return llmock_process


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def openai(wire: WireServer) -> Iterator[OpenAIProvider]:
    made = OpenAIProvider(base_url=f"{wire.url}/v1", api_key="k", retry=QUICK)
    made.warm_up()
    yield made
    made.close()


@pytest.fixture
def anthropic(wire: WireServer) -> Iterator[AnthropicProvider]:
    made = AnthropicProvider(base_url=wire.url, api_key="k", retry=QUICK)
    made.warm_up()
    yield made
    made.close()

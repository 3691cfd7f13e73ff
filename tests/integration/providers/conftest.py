"""Model servers for the provider tests: llmock, which judges its client, and one that does as it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.providers.llmock_server import LlmockServer
from tests.integration.providers.wire_server import WireServer


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

"""Asking a provider either way, and what every test of a real server shares."""

from __future__ import annotations

from typing import Literal

import pytest

from brainq.adapters.models.anthropic.provider import AnthropicProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.models.vendor_provider import VendorProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.asking.retry import RetryPolicy

WireName = Literal["openai", "anthropic"]

# Full waits, so that a server sees them grow, also when the machine is busy; short, so that the tests are.
QUICK = RetryPolicy(first_s=0.25, draw=lambda: 1.0)

streamed_or_not = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])


def vendor(name: WireName, base_url: str, retry: RetryPolicy = QUICK) -> VendorProvider:
    """The provider of that wire, warmed up. Close it."""
    made: VendorProvider
    if name == "openai":
        made = OpenAIProvider(base_url=base_url, api_key="k", retry=retry)
    else:
        made = AnthropicProvider(base_url=base_url, api_key="k", retry=retry)
    made.warm_up()
    return made


def ask(provider: VendorProvider, asked: ModelRequest, *, streamed: bool) -> ModelReply:
    """The reply; a stream's deltas, between which it may tell of retries, must join to its text."""
    if not streamed:
        return provider.generate(asked)
    *said, last = provider.generate_stream(asked)
    deltas = [chunk for chunk in said if chunk.retry is None]
    assert all((delta.text or delta.reasoning) and delta.reply is None for delta in deltas)
    assert last.reply is not None
    assert "".join(delta.text for delta in deltas) == last.reply.text
    return last.reply

"""Counting model calls: each where it is made, by whoever makes it."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from brainq.contracts.model import ModelReply, Purpose
from brainq.errors import NOT_SENT, ProviderError
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS, Counters
from brainq.observe.metrics.names import error_name, model_name

OPERATION = "chat"


class Asked:
    """A model call that is under way."""

    def __init__(self, counters: Counters, provider: str, model: str, purpose: Purpose) -> None:
        self._counters = counters
        self.provider = provider
        self.model = model
        self._purpose = purpose

    def answered(self, reply: ModelReply, cost_usd: float | None) -> None:
        """Count what it used, by who of several answered; `cost_usd` None: its price is not known."""
        if reply.answered_by is not None:
            self.provider, self.model = reply.answered_by.provider, model_name(reply.answered_by.model)
        usage = reply.usage
        counters, given = self._counters, (self.provider, self.model)
        counters.observe(m.TOKEN_USAGE, usage.input_tokens, OPERATION, *given, "input")
        counters.observe(m.TOKEN_USAGE, usage.output_tokens, OPERATION, *given, "output")
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_creation", usage.cache_creation_tokens),
        ):
            if tokens:
                counters.add(m.TOKENS, *given, self._purpose, kind, by=tokens)
        if cost_usd:
            counters.add(m.COST, *given, self._purpose, by=cost_usd)


@contextmanager
def asking(provider: str, model: str, purpose: Purpose, counters: Counters = COUNTERS) -> Generator[Asked]:
    """Time what is done in it, and count it by how it ends: a ProviderError by its kind, any other by its class. A
    request that was never sent is not counted."""
    asked = Asked(counters, provider, model_name(model), purpose)
    began, error_type = time.monotonic(), ""
    try:
        yield asked
    except ProviderError as failure:
        error_type = failure.kind
        raise
    except BaseException as failure:
        error_type = type(failure).__name__
        raise
    finally:
        if error_type not in NOT_SENT:
            counters.observe(
                m.MODEL_CALLS,
                time.monotonic() - began,
                OPERATION,
                asked.provider,
                asked.model,
                error_type and error_name(error_type),
                purpose,
            )

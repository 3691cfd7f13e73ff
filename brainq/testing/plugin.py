"""The pytest plugin: fixtures for tests of brains. pytest loads it by itself wherever brainq is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from brainq import RunContext
    from brainq.testing.runs import Run


@pytest.fixture
def brainq_run() -> Iterator[Callable[..., Run]]:
    """Open a run for the rest of the test: it takes what `testing.run` takes."""
    from brainq.testing import run

    with ExitStack() as opened:

        def begin(brain: Any, script: Any = None, **options: Any) -> Run:
            opened.close()  # one at a time
            return opened.enter_context(run(brain, script, **options))

        yield begin


@pytest.fixture
def brainq_context() -> RunContext:
    """Return a RunContext for a tool's function, as `testing.context()` does."""
    from brainq.testing import context

    return context()

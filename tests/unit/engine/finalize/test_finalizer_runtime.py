"""What a brain's ended turns are seen off with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from brainq.engine.finalize.step_order import FinalizerRuntime, StepOrder
from tests.support.parts import brain_of


@pytest.mark.parametrize("redacts", [True, False])
def test_content_is_kept_out_where_the_brain_says_so(redacts: bool) -> None:
    assert FinalizerRuntime(brain_of(redact_logs=redacts), StepOrder(())).redacts is redacts


def test_what_does_not_say_whether_it_keeps_content_out_is_not_taken_for_one_that_does_not() -> None:
    nobody: Any = SimpleNamespace(name="shop")
    with pytest.raises(AttributeError, match="redact_logs"):
        assert FinalizerRuntime(nobody, StepOrder(())).redacts

"""What a log line says of a failure."""

from __future__ import annotations

import logging

import pytest

from brainq.observe.logs import logger


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_a_failures_message_is_in_no_line_by_default(level: str, caplog: pytest.LogCaptureFixture) -> None:
    """It may quote what a user wrote."""
    caplog.set_level(logging.INFO, "brainq.test")
    try:
        raise ValueError("my password is hunter2")
    except ValueError as failure:
        getattr(logger("brainq.test"), level)("it broke", failure=failure, turn_id="t1")
    assert "it broke turn_id=t1 why=ValueError where=" in caplog.text
    assert "hunter2" not in caplog.text

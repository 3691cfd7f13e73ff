"""Telemetry: whether spans go out, and where to."""

from __future__ import annotations

from brainq.observe.otel_settings import captures_content, traces_wanted
from brainq.observe.otel_setup import NEEDS_EXTRA, is_installed
from brainq.observe.urls import without_password
from brainq.preflight.check import Check, ok, warn


def check_traces() -> Check:
    """By this environment, which the workers are thought to share."""
    wanted = traces_wanted()
    if wanted.exporter == "none":
        return ok("traces", f"off: {wanted.why}")
    if not is_installed():
        what, _, remedy = NEEDS_EXTRA.partition(": ")
        return warn("traces", what, remedy)
    to = without_password(wanted.where) or wanted.exporter
    if captures_content():
        return warn(
            "traces", f"go to {to}, with content", "unset OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
        )
    return ok("traces", f"go to {to}, without content")

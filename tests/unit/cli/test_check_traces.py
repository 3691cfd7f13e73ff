"""`brainq doctor` says whether spans go out, and where to."""

from __future__ import annotations

import pytest

from brainq.cli.doctor import setup
from brainq.cli.doctor.setup import check_traces
from brainq.runtime.observe.otel_setup import CAPTURE_VARIABLE


def test_off_is_well_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    found = check_traces()
    assert (found.level, found.said) == ("ok", "off: OTEL_EXPORTER_OTLP_ENDPOINT is not set")


def test_where_they_go_is_said_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:hunter2@otlp.example")
    found = check_traces()
    assert (found.level, found.said) == ("ok", "sent to https://me:***@otlp.example/v1/traces, without content")


def test_content_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")
    monkeypatch.setenv(CAPTURE_VARIABLE, "true")
    assert (check_traces().level, check_traces().said) == ("warn", "sent to http://c:4318/v1/traces, with content")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")
    monkeypatch.setattr(setup, "is_installed", lambda: False)
    found = check_traces()
    assert (found.level, found.remedy) == ("warn", "pip install 'brainq[otel]'")

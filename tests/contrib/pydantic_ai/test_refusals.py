"""Refusals of services that are asked through pydantic-ai: the same table, and what their models know beside it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import exceptions as theirs
from pydantic_ai.models.function import FunctionModel

from brainq.contracts.model_options import ModelOptions
from brainq.contrib.pydantic_ai.provider import PydanticAIProvider
from brainq.contrib.pydantic_ai.wire import from_pydantic_error
from brainq.engine.models.asking.retry import RetryPolicy
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.errors import ProviderError
from tests.unit.engine.models.requests import request


def http_error(status: int, body: Any, category: Any = None, **more: Any) -> theirs.ModelHTTPError:
    return theirs.ModelHTTPError.for_category(category, status_code=status, model_name="m", body=body, **more)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (
            http_error(429, {"message": "Request too large: Limit 10, Requested 20"}, theirs.ModelRateLimitError),
            "over_limit",
            False,
        ),
        (http_error(400, {"code": "tool_use_failed"}, theirs.ModelRequestRejectedError), "broken", True),
        (http_error(400, {"message": "Input is too long for requested model."}), "too_long", False),
        (http_error(400, {"message": "zork"}, theirs.ModelContextWindowExceededError), "too_long", False),
        (http_error(429, {"message": "zork"}, theirs.ModelQuotaExceededError), "quota", False),
        (http_error(402, {"message": "zork"}, in_stream=True), "quota", False),
        (http_error(403, {"message": "zork"}), "denied", False),
        (http_error(503, {"message": "zork"}, theirs.ModelUnavailableError), "server", True),
        (theirs.ContentFilterError("filtered"), "filtered", False),
        (theirs.ModelAuthenticationError("m", "no key"), "denied", False),
    ],
)
def test_the_table_decides_first(error: Exception, kind: str, retryable: bool) -> None:
    found = from_pydantic_error(error, "acme")
    assert isinstance(found, ProviderError)
    assert (found.kind, found.retryable) == (kind, retryable)
    assert "body: {" not in str(found)


def test_how_long_to_wait_is_kept() -> None:
    found = from_pydantic_error(http_error(429, {}, retry_after=7.0), "acme")
    assert getattr(found, "retry_after_s", None) == 7.0


@pytest.mark.parametrize(
    ("setting", "name", "option"),
    [
        ("temperature", "temperature", {"temperature": 0.5}),
        ("stop_sequences", "stop", {"stop": ("END",)}),
        ("seed", "seed", {"seed": 7}),
    ],
)
def test_a_setting_that_the_model_refuses_is_left_out(setting: str, name: str, option: dict[str, Any]) -> None:
    sent: list[bool] = []

    def answer(_: Any, info: Any) -> Any:
        sent.append(setting in (info.model_settings or {}))
        if sent[-1]:
            raise http_error(400, {"message": f"Unsupported parameter: '{name}'", "param": name})
        return said("Hello.")

    provider = PydanticAIProvider(model=FunctionModel(answer), retry=RetryPolicy(sleep=lambda _: None))
    try:
        asked = request(options=ModelOptions(**option))
        assert [provider.generate(asked).text for _ in range(2)] == ["Hello.", "Hello."]
        assert sent == [True, False, False]
        assert AuxiliaryModel(provider, "m").ask("judge", "Judge.", "It.", timeout_s=9).text == "Hello."
    finally:
        provider.close()


def said(text: str) -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart

    return ModelResponse(parts=[TextPart(text)], finish_reason="stop")

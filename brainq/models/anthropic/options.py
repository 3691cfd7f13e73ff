"""ModelOptions as parameters of Anthropic's messages API.

How a model is made to think has changed: older models take a budget of tokens, newer ones only an effort and decide
themselves, and some cannot be stopped. No table of models stays right, so the newest form is tried, and what a model
refuses is not tried again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from brainq.contracts.model import ModelRequest
from brainq.contracts.model_options import TOOL_CHOICES, Effort
from brainq.models.anthropic.thinking import begins_with_thinking
from brainq.models.asking.failures import error_detail, is_unsupported, refusal_key
from brainq.models.wire import EARLIER_REASONING
from brainq.text.surrogates import clean

DEFAULT_MAX_TOKENS = 4096  # the API wants a number
MIN_BUDGET = 1024  # the API's
BUDGETS: dict[Effort, int] = {
    "none": 0,
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 24_576,
}
"""Tokens a model may think; with them, an answer still fits what the oldest thinking models may write."""
REFUSABLE_PARAMETERS = ("temperature", "top_p", "tool_choice", "stop_sequences")
_THINKING_FORMS = ("adaptive", "enabled")
_NO_THINKING_FORMS = ("disabled", "between_tools")
_LOWER_EFFORT = {"xhigh": "high", "max": "high"}


def max_tokens(request: ModelRequest) -> int:
    """What the model may write, its thinking included."""
    effort = request.options.reasoning_effort
    return request.max_output_tokens or DEFAULT_MAX_TOKENS + (BUDGETS[effort] if effort else 0)


def option_parameters(request: ModelRequest, refused: Collection[str]) -> dict[str, Any]:
    """The parameters for `request.options`, without what its model has `refused`."""
    options, model = request.options, request.model
    body: dict[str, Any] = {"temperature": options.temperature, "top_p": options.top_p}
    if options.stop is not None:
        body["stop_sequences"] = [clean(text) for text in options.stop]
    choice = _tool_choice(options.tool_choice, options.parallel_tool_calls) if request.tools else None
    body["tool_choice"] = choice
    body = {
        name: value for name, value in body.items() if value is not None and refusal_key(name, model) not in refused
    }
    if options.reasoning_effort is not None:
        body |= _thinking(request, options.reasoning_effort, refused)
    return body


def refused_option(request: ModelRequest, status: int, body: Any, refused: Collection[str]) -> str | None:
    """The option that this answer refuses, as a name for `option_parameters`; None if it is about something else.

    A refusal may name several, as in "temperature may only be 1 with thinking": the first is what it is about.
    """
    if not is_unsupported(status, body):
        return None
    sent = option_parameters(request, refused)
    about = {name: name for name in REFUSABLE_PARAMETERS if name in sent}
    if "thinking" in sent:
        about["thinking"] = f"thinking {sent['thinking']['type']}"
    if "output_config" in sent:
        about["effort"] = f"effort {sent['output_config']['effort']}"
    text = error_detail(body)[0].lower()
    named = min((word for word in about if word in text), key=text.index, default=None)
    return None if named is None else refusal_key(about[named], request.model)


def _tool_choice(choice: str | None, parallel: bool | None) -> dict[str, Any] | None:
    if choice is None and parallel is None:
        return None
    words = {"required": "any", None: "auto"}
    made: dict[str, Any] = {"type": words.get(choice, choice)}
    if choice is not None and choice not in TOOL_CHOICES:
        made = {"type": "tool", "name": choice}
    if parallel is not None and choice != "none":
        made["disable_parallel_tool_use"] = not parallel
    return made


def _thinking(request: ModelRequest, effort: Effort, refused: Collection[str]) -> dict[str, Any]:
    forms = _NO_THINKING_FORMS if effort == "none" else _THINKING_FORMS
    form = next((form for form in forms if refusal_key(f"thinking {form}", request.model) not in refused), None)
    if form is None:
        return {}
    if form == "enabled":
        return _thinking_budget(request, effort, goes_back=EARLIER_REASONING not in refused)
    body: dict[str, Any] = {"thinking": {"type": form}}
    word: str | None = {"minimal": "low"}.get(effort, effort)
    while word is not None and refusal_key(f"effort {word}", request.model) in refused:
        word = _LOWER_EFFORT.get(word)
    if word is not None and effort != "none":
        body["output_config"] = {"effort": word}
    return body


def _thinking_budget(request: ModelRequest, effort: Effort, *, goes_back: bool) -> dict[str, Any]:
    """A budget leaves room for the answer. Where a call is forced, or follows one that was made without thinking, the
    API takes none."""
    limit = max_tokens(request)
    budget = min(BUDGETS[effort], limit - max(MIN_BUDGET, limit // 4))
    choice = request.options.tool_choice
    is_forced = bool(request.tools) and choice not in (None, "auto", "none")
    if budget < MIN_BUDGET or is_forced or not begins_with_thinking(request, goes_back=goes_back):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}

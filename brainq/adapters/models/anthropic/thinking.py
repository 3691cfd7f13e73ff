"""Thinking: its parameters, and its blocks, which are read with their signatures and positions and sent back unchanged.

The API needs them back with the results of the calls that they led to, within the same turn. Blocks of earlier turns
are left out, as the API allows: older models ignore them, and newer models bind them to all that came before, which a
new turn's prompt changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

from brainq.adapters.models.error_body import error_detail
from brainq.adapters.models.failures import refusal_key
from brainq.adapters.models.wire import EARLIER_REASONING, replayable_reasoning
from brainq.contracts.message import Message, Reasoning
from brainq.contracts.model import ModelRequest
from brainq.contracts.model_options import Effort
from brainq.runtime.text.surrogates import clean

WIRE = "anthropic"
THINKING = ("thinking", "redacted_thinking")
Block = dict[str, Any]
DEFAULT_MAX_TOKENS = 4096  # the API requires a number
MIN_BUDGET = 1024  # the API's minimum
BUDGETS: dict[Effort, int] = {
    "none": 0,
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 24_576,
}
"""The tokens that a model may think. With them, an answer still fits the limit of the oldest thinking models."""
_THINKING_FORMS = ("adaptive", "enabled")
_NO_THINKING_FORMS = ("disabled", "between_tools")
_LOWER_EFFORT = {"xhigh": "high", "max": "high"}


class BlockOrder:
    """Records the order in which the blocks of a reply begin."""

    def __init__(self) -> None:
        self._made: list[Block] = []
        self._calls: list[int] = []

    def begin(self, block: Block, *, at: int) -> None:
        """Add a block. A thinking block may still grow.

        at: the length of the reply's text so far.
        """
        if block.get("type") == "text":
            block = {"type": "text", "at": at}
        self._made.append(block)

    def reasoning(self) -> tuple[Reasoning, ...]:
        """Return the thinking with its positions.

        The positions of texts are included unless the text comes before all calls and after all thinking before them.
        """
        marks: list[Reasoning] = []
        before = 0
        for block in self._made:
            kind = block.get("type")
            if kind == "tool_use":
                before += 1
            elif kind == "text":
                marks.append(Reasoning(wire=WIRE, block=block, before=before))
            elif kind in THINKING:
                rest = {name: value for name, value in block.items() if name != "thinking"}
                text = clean(str(block.get("thinking") or ""))
                marks.append(Reasoning(wire=WIRE, text=text, block=rest, before=before))
        thoughts = [one for one in marks if not _is_text_position(one)]
        if not thoughts:
            return ()
        first = [one for one in thoughts if not one.before]
        is_plain = sum(map(_is_text_position, marks)) <= 1 and not any(
            _is_text_position(one) and (one.before or marks.index(one) < len(first)) for one in marks
        )
        return tuple(thoughts if is_plain else marks)


def replayed_thinking(message: Message, request: ModelRequest, *, goes_back: bool = True) -> tuple[Reasoning, ...]:
    """Return the thinking of this message that the request sends back."""
    return replayable_reasoning(message, WIRE, request.model if goes_back and message.turn == request.turn_id else None)


def blocks_in_order(thoughts: Sequence[Reasoning], text: str, calls: Sequence[Block]) -> list[Block]:
    """Return the blocks of a reply in their original order: thinking, text and calls."""
    marks = [one for one in thoughts if _is_text_position(one)]
    bounds = pairwise([*(int(str(mark.block["at"])) for mark in marks), len(text)])
    parts = {id(mark): text[start:end] for mark, (start, end) in zip(marks, bounds, strict=True)}
    blocks: list[Block] = []
    for index in range(len(calls) + 1):
        for thought in thoughts:
            if thought.before == index:
                blocks.append(
                    _text_block(parts[id(thought)]) if _is_text_position(thought) else _thinking_block(thought)
                )
        if index == 0 and not marks:
            blocks.append(_text_block(text))
        blocks += calls[index : index + 1]
    blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    while blocks and blocks[-1]["type"] in THINKING:  # the API requires a block after thinking
        blocks.pop()
    return blocks


def begins_with_thinking(request: ModelRequest, *, goes_back: bool) -> bool:
    """Return whether the newest reply with calls is sent back with its thinking.

    A model with a thinking budget requires that.
    """
    newest = next((one for one in reversed(request.messages) if one.role == "assistant"), None)
    if newest is None or not newest.calls:
        return True
    return any(not one.before for one in replayed_thinking(newest, request, goes_back=goes_back))


def is_thinking_rejected(status: int, body: Any) -> bool:
    """Return whether the service refuses thinking that was sent back."""
    text = error_detail(body).message.lower()
    words = ("signature", "bound to a different conversation", "cannot be modified", "expected `thinking`")
    return status == 400 and "thinking" in text and any(word in text for word in words)


def _is_text_position(one: Reasoning) -> bool:
    return one.block.get("type") == "text"


def _thinking_block(one: Reasoning) -> Block:
    block: Block = dict(one.block)
    return block if block.get("type") == "redacted_thinking" else {**block, "thinking": one.text}


def _text_block(text: str) -> Block:
    return {"type": "text", "text": text}


# The parameters that make a model think.

# They differ by model: older models take a budget of tokens, newer ones take an effort and decide themselves, and some
# cannot stop thinking. A table of models would become outdated. Therefore the newest form is tried first, and a form
# that a model refuses is not tried again.


def max_tokens(request: ModelRequest) -> int:
    """Return the most tokens that the model may write, its thinking included."""
    effort = request.options.reasoning_effort
    return request.max_output_tokens or DEFAULT_MAX_TOKENS + (BUDGETS[effort] if effort else 0)


def thinking_parameters(request: ModelRequest, effort: Effort, refused: Collection[str]) -> dict[str, Any]:
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
    """Return a budget that leaves room for the answer.

    The API accepts none if a call is forced, or if it follows a call that was made without thinking.
    """
    limit = max_tokens(request)
    budget = min(BUDGETS[effort], limit - max(MIN_BUDGET, limit // 4))
    choice = request.options.tool_choice
    is_forced = bool(request.tools) and choice not in (None, "auto", "none")
    if budget < MIN_BUDGET or is_forced or not begins_with_thinking(request, goes_back=goes_back):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}

"""Every way that text takes into a turn, a store or a diff says the same of an emoji's halves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brainq.calls.function_run import jsonable, one_line
from brainq.models.vendors.openai.chat_wire import from_body
from brainq.models.vendors.wire import parse_arguments
from brainq.store.text import sql_text
from brainq.text.shorten import beginning
from brainq.text.surrogates import clean
from brainq.tools.context_pack import pack_json
from brainq.turn.prompt.untrusted import untrusted
from brainq.turn.turn_diff import turn_diff

WAYS: dict[str, Callable[[str], object]] = {
    "clean": clean,
    "a reply": lambda text: from_body({"choices": [{"message": {"content": text}}]}).text,
    "arguments": lambda text: parse_arguments(text + "{"),
    "a result": jsonable,
    "a result's parts": lambda text: jsonable({text: [text]}),
    "an error": lambda text: one_line(ValueError(text)),
    "a pack": lambda text: pack_json({"text": text}),
    "a fence": lambda text: untrusted("pack", text, lead=""),
    "a row": sql_text,
    "a diff": lambda text: turn_diff([{"path": "a", "before": "", "after": text}]),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_two_halves_are_an_emoji_and_one_is_replaced(way: Callable[[str], object]) -> None:
    found = str(way("so \ud83d\ude00 and \ud83d"))
    assert "so 😀 and \ufffd" in found
    assert "?" not in found


@pytest.mark.parametrize(("text", "most", "short"), [("abcdef", 6, "abcdef"), ("abcdef", 5, "ab..."), ("abc", 2, "..")])
def test_a_beginning(text: str, most: int, short: str) -> None:
    assert beginning(text, most) == short

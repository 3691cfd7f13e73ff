"""Samples from texts. The tokenizer that counts them is OpenAI's o200k_base, in the package `bpe-openai`."""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brainq
from brainq.runtime.text.estimate import estimate_text
from lab.estimate.ratios import Sample

ENCODING = "o200k_base"
MIN_CHARS = 40  # of a shorter text, rounding up is all there is to see

# The Universal Declaration of Human Rights, articles 1, 3 and 9, as the United Nations publish them.
RIGHTS = {
    "Chinese": (
        "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"
        "人人有权享有生命、自由和人身安全。任何人不得加以任意逮捕、拘禁或放逐。"
    ),
    "Japanese": (
        "すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを"
        "授けられており、互いに同胞の精神をもって行動しなければならない。すべて人は、生命、自由及び身体の安全に"
        "対する権利を有する。何人も、ほしいままに逮捕、拘禁、又は追放されることはない。"
    ),
    "Korean": (
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 "
        "부여받았으며 서로 형제애의 정신으로 행동하여야 한다. 모든 사람은 생명과 신체의 자유와 안전에 대한 권리를 "
        "가진다. 어느 누구도 자의적으로 체포, 구금 또는 추방되지 아니한다."
    ),
}


def counter() -> Callable[[str], int] | None:
    """Return a function from a text to its number of tokens. Returns None if the tokenizer is not installed."""
    try:
        library: Any = importlib.import_module("bpe_openai")
    except ImportError:
        return None
    encode: Callable[[str], list[int]] = library.get_encoding(ENCODING).encode
    return lambda text: len(encode(text))


def text_samples(recorded: Path, count: Callable[[str], int]) -> dict[str, list[Sample]]:
    """Return kind of text -> samples."""
    kinds = {
        "English prose": list(_said(recorded)),
        "JSON tool results": list(_results(recorded)),
        "Python code": [path.read_text() for path in sorted(Path(brainq.__file__).parent.rglob("*.py"))],
        **{name: [text] for name, text in RIGHTS.items()},
    }
    return {
        kind: [Sample(estimate_text(text), count(text)) for text in texts if len(text) >= MIN_CHARS]
        for kind, texts in kinds.items()
    }


def _steps(recorded: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with gzip.open(recorded, "rt", encoding="utf-8") as lines:
        for line in lines:
            for turn in json.loads(line)["turns"]:
                for step in turn["steps"]:
                    yield turn["user"], step


def _said(recorded: Path) -> Iterator[str]:
    messages = dict.fromkeys(message for message, _ in _steps(recorded))
    yield from messages
    yield from dict.fromkeys(step["text"] or "" for _, step in _steps(recorded))


def _results(recorded: Path) -> Iterator[str]:
    """Return the results that are JSON objects or lists. The others are short sentences."""
    contents = dict.fromkeys(result["content"] for _, step in _steps(recorded) for result in step["results"])
    return (content for content in contents if content.startswith(("{", "[")))

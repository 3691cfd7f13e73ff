"""Colours of the page: what is read stands out from its ground as WCAG 2.2 AA asks, in both schemes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from brainq.gateway.page.routes import FOLDER

TOKENS = (FOLDER / "style" / "1_tokens.css").read_text()
SHEETS = "".join(path.read_text() for path in sorted((FOLDER / "style").glob("*.css")))
COLOURS: dict[str, tuple[str, str]] = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS)
}
GROUNDS = ("ground", "panel", "sunken", "hover")
AS_TEXT = sorted(set(re.findall(r"(?<![\w-])color: var\(--([\w-]+)", SHEETS)) & set(COLOURS))
LEAST = 4.5


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_counted_as_wcag_does() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)  # pyright: ignore[reportUnknownMemberType]
    assert 4.5 < contrast("#767676", "#ffffff") < 4.6


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_read_on_every_ground(scheme: int) -> None:
    assert {"soft", "text", "bad", "park"} <= set(AS_TEXT)
    low: dict[Any, float] = {
        (name, ground): round(found, 2)
        for name in AS_TEXT
        for ground in GROUNDS
        if (found := contrast(COLOURS[name][scheme], COLOURS[ground][scheme])) < LEAST
    }
    assert not low


@pytest.mark.parametrize(("scheme", "text"), [(0, "#ffffff"), (1, "#17120a")], ids=["light", "dark"])
def test_a_count_is_read_on_its_amber(scheme: int, text: str) -> None:
    assert "background: var(--park); color: light-dark(#fff, #17120a)" in SHEETS
    assert contrast(COLOURS["park"][scheme], text) >= LEAST

"""What pages are made of: a head of names and values, and sections under titles."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

NAME_WIDTH = 9


def print_head(console: Console, lines: Iterable[tuple[str, Text]]) -> None:
    """One line each; a long one is left to the terminal, so that it can be copied whole."""
    for name, value in lines:
        console.print(Text(f"{name:<{NAME_WIDTH}} ", "dim").append_text(value), soft_wrap=True)


def print_section(console: Console, title: str, *content: RenderableType) -> None:
    console.print()
    console.print(Text(title, "bold"))
    for part in content:
        console.print(part, soft_wrap=isinstance(part, Text))

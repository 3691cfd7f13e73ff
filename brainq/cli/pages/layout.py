"""Lay out pages: heads, sections, and a table that fits the terminal without cutting ids that people copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

GAP = 2
NAME_WIDTH = 9


@dataclass(frozen=True)
class Column:
    """A column of a page's table.

    kind    `key`: complete at any width; `fact`: complete or left out; `words`: wrapped, down to the width `least`
    worth   columns with the lowest worth are left out first
    """

    name: str
    kind: Literal["key", "fact", "words"]
    worth: int = 0
    least: int = 16
    right: bool = False


def key(name: str) -> Column:
    return Column(name, "key")


def fact(name: str, worth: int, *, right: bool = False) -> Column:
    return Column(name, "fact", worth, right=right)


def words(name: str, worth: int, least: int = 16) -> Column:
    return Column(name, "words", worth, least)


class PageTable:
    """The table of all pages, without lines. It fits the terminal and never cuts a key.

        row = {key("turn"): "01k7...", fact("took", 1): "3.2 s", words("note", 3): "waits for an approval"}
        console.print(PageTable([row]))

    If the terminal is too narrow, the columns with the lowest worth are left out and words are wrapped. Columns without
    content are always left out. In a pipe, all columns are printed.
    """

    def __init__(self, rows: Iterable[Mapping[Column, str | Text]] = (), *, header: bool = True) -> None:
        """Add the rows. The first row must have every column in order; later rows may omit some."""
        self._columns: tuple[Column, ...] = ()
        self._header = header
        self._rows: list[list[Text]] = []
        for row in rows:
            self.add(row)

    def add(self, cells: Mapping[Column, str | Text]) -> None:
        """Add a row. Raises ValueError for a column that the first row does not have."""
        self._columns = self._columns or tuple(cells)
        if unknown := [column.name for column in cells if column not in self._columns]:
            raise ValueError(f"the table has no column {unknown[0]!r}")
        row = [cells.get(column, "") for column in self._columns]
        self._rows.append([Text(cell) if isinstance(cell, str) else cell for cell in row])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        natural = [self._natural(index) for index in range(len(self._columns))]
        widths = fit_columns(self._columns, natural, options.max_width)
        table = Table(box=None, pad_edge=False, show_header=self._header, header_style="dim", padding=(0, GAP, 0, 0))
        visible = [index for index, width in enumerate(widths) if width]
        for index in visible:
            column = self._columns[index]
            table.add_column(
                column.name,
                # Rich does not count the gap after a column as part of its width.
                width=widths[index],
                overflow="fold",
                justify="right" if column.right else "left",
            )
        for row in self._rows:
            table.add_row(*(row[index] for index in visible))
        yield table

    def _natural(self, index: int) -> int:
        """Return the width that shows a complete column, or 0 if it has no content."""
        widest = max((cell_len(row[index].plain) for row in self._rows), default=0)
        if not widest and self._columns[index].kind != "key":
            return 0
        return max(widest, cell_len(self._columns[index].name) if self._header else 1)


def fit_columns(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """Return the width of each column, or 0 for one that is left out.

    If the keys alone do not fit on a line, the widest ones are folded onto several lines and lose nothing.
    """
    least = [
        min(width, column.least) if column.kind == "words" else width
        for column, width in zip(columns, natural, strict=True)
    ]
    visible = {index for index, width in enumerate(natural) if width}

    def taken() -> int:
        return sum(least[index] for index in visible) + GAP * max(0, len(visible) - 1)

    while taken() > room:
        optional = [index for index in visible if columns[index].kind != "key"]
        if not optional:
            break
        visible.remove(min(optional, key=lambda index: (columns[index].worth, -index)))
    left = room - taken()
    widths = [least[index] if index in visible else 0 for index in range(len(columns))]
    if left < 0 and visible:
        widest = max(visible, key=lambda index: widths[index])
        widths[widest] = max(1, widths[widest] + left)
        return widths
    for index in sorted(visible, key=lambda index: -columns[index].worth):
        if columns[index].kind == "words":
            more = min(left, natural[index] - widths[index])
            widths[index] += more
            left -= more
    return widths


def print_head(console: Console, lines: Iterable[tuple[str, Text]]) -> None:
    """Print one line each. A long line is wrapped by the terminal, so that it can be copied whole."""
    for name, value in lines:
        console.print(Text(f"{name:<{NAME_WIDTH}} ", "dim").append_text(value), soft_wrap=True)


def print_section(console: Console, title: str, *content: RenderableType) -> None:
    console.print()
    console.print(Text(title, "bold"))
    for part in content:
        console.print(part, soft_wrap=isinstance(part, Text))

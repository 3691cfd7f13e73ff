"""A note: its title, its links and its open loops, read from its Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_HEADING = re.compile(r"#+\s+(.+)")
_LINK = re.compile(r"\[\[([^\]|#]+)")
_BOX = re.compile(r"\s*[-*]\s+\[( |x|X)\]\s+(.+)")
_LINK_MARKS = re.compile(r"\[\[(?:[^\]|]*[|/])?([^\]]+)\]\]")


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """An unticked checkbox. `line` counts from 1."""

    path: str
    title: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """One Markdown file. `path` is its place in the vault, with slashes, such as `projects/garden.md`."""

    path: str
    text: str

    @property
    def title(self) -> str:
        """The first heading, else the file's name."""
        for line in self.text.splitlines():
            if heading := _HEADING.match(line):
                return heading[1].strip()
        return PurePosixPath(self.path).stem

    @property
    def links(self) -> tuple[str, ...]:
        """Where its [[wikilinks]] point, as paths, in order and without repeats."""
        names = (name.strip().removesuffix(".md") for name in _LINK.findall(self.text))
        return tuple(dict.fromkeys(f"{name}.md" for name in names))

    @property
    def open_loops(self) -> tuple[OpenLoop, ...]:
        title = self.title
        return tuple(
            OpenLoop(self.path, title, number, without_link_marks(box[2]))
            for number, line in enumerate(self.text.splitlines(), 1)
            if (box := _BOX.match(line)) and box[1] == " "
        )


def without_link_marks(text: str) -> str:
    """`see [[people/noor-haddad]]` -> `see noor-haddad`."""
    return _LINK_MARKS.sub(r"\1", text)

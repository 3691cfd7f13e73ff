"""A bug to be seeded: which text of which file becomes what, and which tests must notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug.

    name    says what is wrong, in a few words
    file    path from the root of the repository
    old     text that stands in the file exactly once
    new     what stands there instead
    tests   files, or `file::test`, of which at least one test must fail
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def seeded(self, root: Path) -> str:
        """The file's text with the bug in it. Raises ValueError when `old` does not stand there once."""
        text = (root / self.file).read_text()
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name!r}: {self.file} has {self.old!r} {found} times; it must stand there once")
        return text.replace(self.old, self.new)

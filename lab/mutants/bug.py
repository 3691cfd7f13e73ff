"""A bug to seed: the text of a file that is replaced, and the tests that must fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug.

    name    a few words about what is wrong
    file    the path from the root of the repository
    old     a text that occurs in the file exactly once
    new     the text that replaces it
    tests   files, or `file::test`, of which at least one test must fail
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def seeded(self, root: Path) -> str:
        """Return the file's text with the bug in it. Raises ValueError if `old` does not occur exactly once."""
        text = (root / self.file).read_text()
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name!r}: {self.file} has {self.old!r} {found} times; it must stand there once")
        return text.replace(self.old, self.new)

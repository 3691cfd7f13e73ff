"""What a tool says it changed: what files held before and after."""

from __future__ import annotations

from dataclasses import dataclass, field

from brainq.errors import InvalidInput
from brainq.text.surrogates import clean

MAX_CHANGES = 200
MAX_CHANGE_CHARS = 1_000_000
MAX_TOO_LARGE = 1_000
MAX_PATH_CHARS = 4_096


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file. None: it did not exist, or was deleted. `too_large`: the contents were not kept."""

    path: str
    before: str | None = None
    after: str | None = None
    too_large: bool = False

    def row(self) -> dict[str, str]:
        """As it is kept with the turn: what is None is left out."""
        if self.too_large:
            return {"path": self.path, "too_large": "1"}
        texts = {"before": self.before, "after": self.after}
        return {"path": self.path} | {name: text for name, text in texts.items() if text is not None}

    @classmethod
    def of_row(cls, row: dict[str, str]) -> Change:
        return cls(row["path"], row.get("before"), row.get("after"), "too_large" in row)


def checked_change(path: str, before: str | None, after: str | None) -> Change:
    """Raises InvalidInput for what is not a path, or not a text."""
    values: dict[str, object] = {"path": path, "before": before, "after": after}
    for name, value in values.items():
        if not (isinstance(value, str) or (value is None and name != "path")):
            raise InvalidInput(name, f"is a {type(value).__name__}; record_change takes text")
    if not 0 < len(path) <= MAX_PATH_CHARS:
        raise InvalidInput("path", f"use 1 to {MAX_PATH_CHARS} characters")
    return Change(
        clean(path), None if before is None else clean(before), None if after is None else clean(after)
    )


@dataclass(slots=True)
class CollectedChanges:
    """The changes of one call, in order. Past the limits a path is kept once, without its contents."""

    kept: list[Change] = field(default_factory=list[Change])
    _chars: int = 0
    _full: int = 0
    _too_large: set[str] = field(default_factory=set[str])

    def add(self, change: Change) -> None:
        chars = len(change.path) + len(change.before or "") + len(change.after or "")
        if not change.too_large and self._full < MAX_CHANGES and self._chars + chars <= MAX_CHANGE_CHARS:
            self._full += 1
            self._chars += chars
            self.kept.append(change)
        elif change.path not in self._too_large and len(self._too_large) < MAX_TOO_LARGE:
            self._too_large.add(change.path)
            self.kept.append(Change(change.path, too_large=True))

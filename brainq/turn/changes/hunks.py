"""The hunks of a unified diff between two texts, in bounded time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

CONTEXT_LINES = 3
MATCHED_LINES_A_FILE = 2_000
MATCHED_LINES = 20_000
MATCHED_PAIRS_A_FILE = 20_000
_Op = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


@dataclass(slots=True)
class MatchBudget:
    """How many lines may still be matched in one diff of many files.

    difflib takes time that grows with the square of the lines, sometimes their cube, and the diff is made
    while the turn's owner holds it. Where this is used up, a changed stretch is shown as removed and added
    whole: longer to read, and as true.
    """

    lines_left: int = MATCHED_LINES

    def ops(self, before: Sequence[str], after: Sequence[str]) -> list[_Op]:
        """How to come from one stretch to the other; they share neither their first nor their last line."""
        lines = len(before) + len(after)
        if not lines:
            return []
        if lines > min(MATCHED_LINES_A_FILE, self.lines_left) or _pairs(before, after) > MATCHED_PAIRS_A_FILE:
            return [("replace", 0, len(before), 0, len(after))]
        self.lines_left -= lines
        return SequenceMatcher(None, before, after).get_opcodes()


def _pairs(before: Sequence[str], after: Sequence[str]) -> int:
    """In how many ways one line could be matched: many for a text of few different lines."""
    there = Counter(after)
    return sum(times * there[line] for line, times in Counter(before).items())


class _BoundedMatcher(SequenceMatcher[str]):
    """A SequenceMatcher that compares only what lies between the common beginning and the common end."""

    def __init__(self, before: Sequence[str], after: Sequence[str], matching: MatchBudget) -> None:
        # Not given to super().__init__: that would index all lines.
        super().__init__(None, (), ())
        self._ops = _ops(before, after, matching)

    def get_opcodes(self) -> list[_Op]:
        return list(self._ops)


def hunks(before: str, after: str, matching: MatchBudget) -> list[str]:
    """The lines of all hunks, each with its newline; a last line without one is marked as git does."""
    old, new = _lines(before), _lines(after)
    found: list[str] = []
    for group in _BoundedMatcher(old, new, matching).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        found.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [_marked_line(" ", line) for line in old[i1:i2]]
                continue
            found += [_marked_line("-", line) for line in old[i1:i2]]
            found += [_marked_line("+", line) for line in new[j1:j2]]
    return found


def _lines(text: str) -> list[str]:
    """Lines with their newline. Only newlines part them: patch knows no other separator."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _ops(old: Sequence[str], new: Sequence[str], matching: MatchBudget) -> list[_Op]:
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    most = shortest - head
    tail = next((i for i in range(most) if old[-1 - i] != new[-1 - i]), most)
    old_end, new_end = len(old) - tail, len(new) - tail
    inner = matching.ops(old[head:old_end], new[head:new_end])
    ops: list[_Op] = [("equal", 0, head, 0, head)] if head else []
    for tag, i1, i2, j1, j2 in inner:
        ops.append((tag, i1 + head, i2 + head, j1 + head, j2 + head))
    if tail:
        ops.append(("equal", old_end, len(old), new_end, len(new)))
    return ops


def _range(start: int, stop: int) -> str:
    """As in difflib: lines count from 1; an empty range names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked_line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"

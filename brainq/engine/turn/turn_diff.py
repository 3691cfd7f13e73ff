"""The changes of a turn as a unified diff, with the hunks between two texts computed in bounded time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from brainq.runtime.text.surrogates import clean

CONTEXT_LINES = 3
MATCHED_LINES_A_FILE = 2_000
MATCHED_LINES = 20_000
MATCHED_PAIRS_A_FILE = 20_000
_Op = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]
_ESCAPES = {raw: f"\\{letter}" for raw, letter in zip('"\\\a\b\t\n\v\f\r', '"\\abtnvfr', strict=True)}
MAX_DIFF_CHARS = 200_000
_LAST_LINE_CHARS = 100
ChangeRow = Mapping[str, str | None]


@dataclass(slots=True)
class MatchBudget:
    """The number of lines that may still be matched in one diff of many files.

    The time that difflib takes grows with the square of the lines, sometimes with their cube, and the diff is made
    while the turn's owner holds the turn. Once the budget is used up, a changed stretch is shown as removed and added
    whole, which is longer but just as correct.
    """

    lines_left: int = MATCHED_LINES

    def ops(self, before: Sequence[str], after: Sequence[str]) -> list[_Op]:
        """Return the operations that turn one stretch into the other. The stretches have different first lines and
        different last lines."""
        lines = len(before) + len(after)
        if not lines:
            return []
        if lines > min(MATCHED_LINES_A_FILE, self.lines_left) or _pairs(before, after) > MATCHED_PAIRS_A_FILE:
            return [("replace", 0, len(before), 0, len(after))]
        self.lines_left -= lines
        return SequenceMatcher(None, before, after).get_opcodes()


def _pairs(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of pairs of equal lines. It is large for a text with few different lines."""
    there = Counter(after)
    return sum(times * there[line] for line, times in Counter(before).items())


class _BoundedMatcher(SequenceMatcher[str]):
    """A SequenceMatcher that compares only what lies between the common beginning and the common end."""

    def __init__(self, before: Sequence[str], after: Sequence[str], matching: MatchBudget) -> None:
        # The texts are not given to super().__init__, which would index all lines.
        super().__init__(None, (), ())
        self._ops = _ops(before, after, matching)

    def get_opcodes(self) -> list[_Op]:
        return list(self._ops)


def hunks(before: str, after: str, matching: MatchBudget) -> list[str]:
    """Return the lines of all hunks, each with its newline. A last line without a newline is marked as git does."""
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
    """Return the lines with their newlines. Only newlines separate lines, as for `patch`."""
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
    """Return the range as difflib writes it: lines count from 1, and an empty range names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked_line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def quoted_path(prefix: str, path: str) -> str:
    """Return `prefix` and `path`, in quotes and with escapes if a character could be misread.

    Letters of all languages are kept, as git does with core.quotePath off. Leading slashes of an absolute path are
    removed, as `patch` does.
    """
    name = prefix + path.lstrip("/")
    quoted = "".join(_escaped(character) for character in name)
    # git does not quote for a space. `patch` then finds no name in the header of an empty file, and `git apply` fails
    # in some cases.
    return name if quoted == name and " " not in name else f'"{quoted}"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\{code:03o}"
    if 0xDC80 <= code <= 0xDCFF:  # how Python reads a byte of a file name that is not UTF-8
        return f"\\{code - 0xDC00:03o}"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else character


@dataclass(slots=True)
class _NetChange:
    """The change of one path over the whole turn: the first `before`, the last `after`, and whether each is known."""

    before: str | None
    after: str | None
    before_known: bool
    after_known: bool

    @property
    def is_text(self) -> bool:
        known = self.before_known and self.after_known
        return known and "\0" not in (self.before or "") and "\0" not in (self.after or "")

    @property
    def is_change(self) -> bool:
        return not (self.before_known and self.after_known) or self.before != self.after


def turn_diff(changes: Sequence[ChangeRow]) -> str | None:
    """Return the diff from before the turn to after it, as `git diff` writes it. Returns None if nothing changed.

    changes   rows of `path`, `before` and `after`, oldest first. A `before` or `after` that is None or missing means
              that the file did not exist. A row with `too_large` records that the path changed, but not how

    Paths are sorted. A content that is too large or contains a NUL is shown as one line. The diff has at most
    MAX_DIFF_CHARS characters: files that do not fit are left out whole, so that the rest can still be applied, and the
    last line counts them. `patch -p1` and `git apply` accept the diff.
    """
    net = {path: change for path, change in sorted(_net(changes).items()) if change.is_change}
    matching = MatchBudget()
    shown: list[str] = []
    room = MAX_DIFF_CHARS - _LAST_LINE_CHARS
    for path, change in net.items():
        # A file that is longer than the remaining space is not compared.
        part = _file_diff(path, change, matching) if _min_diff_chars(change) <= room else None
        if part is not None and len(part) <= room:
            shown.append(part)
            room -= len(part)
    left_out = len(net) - len(shown)
    if left_out:
        shown.append(f"[{left_out} of {len(net)} changed files not shown: the diff is too long]\n")
    return "".join(shown) or None


def _net(changes: Sequence[ChangeRow]) -> dict[str, _NetChange]:
    found: dict[str, _NetChange] = {}
    for row in changes:
        path, known = row.get("path") or "", not row.get("too_large")
        before, after = (row.get(side) if known else None for side in ("before", "after"))
        before, after = (None if text is None else clean(text) for text in (before, after))
        net = found.setdefault(path, _NetChange(before, after, known, known))
        net.after, net.after_known = after, known
    return found


def _min_diff_chars(change: _NetChange) -> int:
    """Return the least number of characters in the diff of a file that was created or deleted."""
    if not change.is_text or (change.before is not None and change.after is not None):
        return 0
    return len(change.before or change.after or "")


def _file_diff(path: str, change: _NetChange, matching: MatchBudget) -> str:
    if not change.is_text:
        return f"Binary or too large: {quoted_path('', path)} changed\n"
    old, new = quoted_path("a/", path), quoted_path("b/", path)
    lines = [f"diff --git {old} {new}\n"]
    if change.before is None:
        lines.append("new file mode 100644\n")
    if change.after is None:
        lines.append("deleted file mode 100644\n")
    body = hunks(change.before or "", change.after or "", matching)
    if body:
        lines.append(f"--- {'/dev/null' if change.before is None else old}\n")
        lines.append(f"+++ {'/dev/null' if change.after is None else new}\n")
    return "".join([*lines, *body])

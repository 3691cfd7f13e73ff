"""One unified diff over all changes that the tools of a turn reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainq.text.surrogates import clean
from brainq.turn.planning.hunks import Matching, hunks
from brainq.turn.planning.patch_path import quoted_path

MAX_DIFF_CHARS = 200_000
_LAST_LINE_CHARS = 100
FileChange = Mapping[str, str | None]


@dataclass(slots=True)
class _Net:
    """What became of one path over the turn: the first `before`, the last `after`, and whether each is known."""

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


def turn_diff(changes: Sequence[FileChange]) -> str | None:
    """The diff from before the turn to after it, as `git diff` writes it; None where nothing changed.

    changes   rows of `path`, `before`, `after` in the order of time; a content that is None or missing: there
              was no such file. A row with `too_large` tells that the path changed, not how

    Paths are sorted. What is too large, or holds a NUL, is one line. The whole is at most MAX_DIFF_CHARS long:
    files that do not fit are left out whole, so that the rest can still be applied, and the last line counts
    them. `patch -p1` and `git apply` take it.
    """
    net = {path: change for path, change in sorted(_net(changes).items()) if change.is_change}
    matching = Matching()
    shown: list[str] = []
    room = MAX_DIFF_CHARS - _LAST_LINE_CHARS
    for path, change in net.items():
        # A file that is longer than what is left is not even compared.
        part = _of_file(path, change, matching) if _least(change) <= room else None
        if part is not None and len(part) <= room:
            shown.append(part)
            room -= len(part)
    left_out = len(net) - len(shown)
    if left_out:
        shown.append(f"[{left_out} of {len(net)} changed files not shown: the diff is too long]\n")
    return "".join(shown) or None


def _net(changes: Sequence[FileChange]) -> dict[str, _Net]:
    found: dict[str, _Net] = {}
    for row in changes:
        path, known = row.get("path") or "", not row.get("too_large")
        before, after = (row.get(side) if known else None for side in ("before", "after"))
        before, after = (None if text is None else clean(text) for text in (before, after))
        net = found.setdefault(path, _Net(before, after, known, known))
        net.after, net.after_known = after, known
    return found


def _least(change: _Net) -> int:
    """At least so many characters are in the diff of a file that was made or deleted."""
    if not change.is_text or (change.before is not None and change.after is not None):
        return 0
    return len(change.before or change.after or "")


def _of_file(path: str, change: _Net, matching: Matching) -> str:
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

"""One diff over a whole turn: what it says, and that patch and git make `after` of `before` with it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brainq.engine.turn.turn_diff import MAX_DIFF_CHARS, MatchBudget, hunks, turn_diff
from tests.unit.engine.turn.conversations import unhurried

APPLY = {"patch": ("patch", "-p1", "-s", "-f"), "git": ("git", "apply", "-p1", "-")}
ODD_LINES = (
    "",
    "a",
    "b",
    "carriage\r",
    "form\x0cfeed \u2028 and \x85",
    "-- a/x",
    "++ b/x",
    "@@ -1 +1 @@",
    "\\ No newline at end of file",
    "diff --git a/x b/x",
    "ключ 鍵",
)


def row(path: str, before: str | None, after: str | None) -> dict[str, str | None]:
    return {"path": path, "before": before, "after": after}


def test_a_change_reads_as_git_writes_it() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 11))
    after = before.replace("line 5\n", "line five\n")

    assert turn_diff([row("notes/a.md", before, after)]) == (
        "diff --git a/notes/a.md b/notes/a.md\n"
        "--- a/notes/a.md\n"
        "+++ b/notes/a.md\n"
        "@@ -2,7 +2,7 @@\n"
        " line 2\n line 3\n line 4\n"
        "-line 5\n"
        "+line five\n"
        " line 6\n line 7\n line 8\n"
    )


def test_a_file_that_was_made_and_one_that_was_deleted() -> None:
    assert turn_diff([row("new", None, "x\n"), row("gone", "y", None)]) == (
        "diff --git a/gone b/gone\n"
        "deleted file mode 100644\n"
        "--- a/gone\n"
        "+++ /dev/null\n"
        "@@ -1 +0,0 @@\n"
        "-y\n"
        "\\ No newline at end of file\n"
        "diff --git a/new b/new\n"
        "new file mode 100644\n"
        "--- /dev/null\n"
        "+++ b/new\n"
        "@@ -0,0 +1 @@\n"
        "+x\n"
    )


def test_an_empty_file_has_no_hunk() -> None:
    assert turn_diff([row("new", None, "")]) == "diff --git a/new b/new\nnew file mode 100644\n"


def test_the_first_before_and_the_last_after_of_a_path_count() -> None:
    several = [row("a", "1\n", "2\n"), row("b", None, "x\n"), row("a", "2\n", "3\n"), row("b", "x\n", "y\n")]
    assert turn_diff(several) == turn_diff([row("b", None, "y\n"), row("a", "1\n", "3\n")])


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [row("a", "1", "1")],
        [row("a", "1", "2"), row("a", "2", "1")],
        [row("a", None, "1"), row("a", "1", None)],
        [{"path": "a"}],
        [row("a", "half a pair \ud83d", "half a pair \ufffd")],
        [row("a", "1", "2"), {"path": "a", "too_large": "1"}, row("a", "3", "1")],
    ],
)
def test_what_is_as_it_was_is_left_out(changes: list[dict[str, str | None]]) -> None:
    assert turn_diff(changes) is None


def test_a_missing_content_is_a_missing_file() -> None:
    assert turn_diff([{"path": "a", "after": "x\n"}]) == turn_diff([row("a", None, "x\n")])


@pytest.mark.parametrize(
    "changes",
    [
        [{"path": "a", "too_large": "1"}],
        [row("a", "1", "2"), {"path": "a", "too_large": "1"}],
        [{"path": "a", "too_large": "1"}, row("a", "1", "2")],
        [row("a", "1", "\0")],
        [row("a", "\0", None)],
    ],
)
def test_what_cannot_be_shown_is_one_line(changes: list[dict[str, str | None]]) -> None:
    assert turn_diff(changes) == "Binary or too large: a changed\n"


@pytest.mark.parametrize(
    ("path", "old"),
    [
        ("/abs/x", "a/abs/x"),
        ("my file", '"a/my file"'),
        ("two\nlines", '"a/two\\nlines"'),
        ('a "q" \\', '"a/a \\"q\\" \\\\"'),
        ("bell\x07 \x01\x7f", '"a/bell\\a \\001\\177"'),
        ("ключ", "a/ключ"),
        ("byte\udcff", '"a/byte\\377"'),
        ("half\ud83d", '"a/half\ufffd"'),
    ],
)
def test_odd_paths_are_quoted(path: str, old: str) -> None:
    diff = turn_diff([row(path, "1\n", "2\n")]) or ""

    assert f"\n--- {old}\n" in diff
    assert diff.encode()


def test_a_diff_that_is_too_long_keeps_the_files_that_fit_and_counts_the_others() -> None:
    changes = [
        row("a", None, "x\n" * MAX_DIFF_CHARS),
        row("b", "y\n" * MAX_DIFF_CHARS, "z\n" * MAX_DIFF_CHARS),
        row("c", "1\n", "2\n"),
    ]
    diff = turn_diff(changes) or ""

    assert diff == (turn_diff(changes[2:]) or "") + "[2 of 3 changed files not shown: the diff is too long]\n"
    assert turn_diff(changes[:1]) == "[1 of 1 changed files not shown: the diff is too long]\n"


def test_a_diff_of_many_files_stays_within_its_length() -> None:
    diff = turn_diff([row(f"{number:05}", None, "x" * 1_000) for number in range(1_000)]) or ""

    assert MAX_DIFF_CHARS - 2_000 < len(diff) <= MAX_DIFF_CHARS
    shown = diff.count("diff --git")
    assert diff.endswith(f"\n[{1_000 - shown} of 1000 changed files not shown: the diff is too long]\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([f"line {i}" for i in range(20_000)], [f"line {i}" if i % 2 else f"new {i}" for i in range(20_000)]),
        (["q", *["x", "y"] * 20_000], ["w", *["x"] * 20_000]),
    ],
    ids=["every other line", "two lines, often"],
)
def test_long_texts_take_no_long_time(before: list[str], after: list[str]) -> None:
    began = time.monotonic()
    hunks("\n".join(before), "\n".join(after), MatchBudget())
    assert time.monotonic() - began < 40  # difflib alone: minutes


def test_a_small_change_in_a_long_text_is_small() -> None:
    lines = [f"{number}\n" for number in range(50_000)]
    changed = [*lines[:30_000], "new\n", *lines[30_001:]]

    found = hunks("".join(lines), "".join(changed), MatchBudget())

    assert found[0] == "@@ -29998,7 +29998,7 @@\n"
    assert len(found) == 1 + 3 + 2 + 3


def test_where_no_lines_are_left_to_match_the_stretch_is_replaced_whole() -> None:
    assert hunks("a\nsame\nb\n", "c\nsame\nd\n", MatchBudget(lines_left=5)) == [
        *("@@ -1,3 +1,3 @@\n", "-a\n", "-same\n", "-b\n", "+c\n", "+same\n", "+d\n")
    ]


@st.composite
def contents(draw: st.DrawFn) -> str | None:
    if draw(st.integers(0, 5)) == 0:
        return None
    line = st.sampled_from(ODD_LINES) | st.text(st.characters(exclude_characters="\0\n", codec="utf-8"))
    text = "\n".join(draw(st.lists(line, max_size=30)))
    return text + draw(st.sampled_from(["", "\n"]))


@st.composite
def names(draw: st.DrawFn) -> str:
    character = st.sampled_from(' \n\t"\\.-bк') | st.characters(exclude_characters="\0/", codec="utf-8")
    part = st.text(character, min_size=1, max_size=12)
    # A path must not be a folder on the way to another: all files lie at the same depth.
    return f"d{draw(part)}/{draw(part)}f"


@pytest.mark.parametrize(
    "tool",
    [pytest.param(tool, marks=pytest.mark.needs(bool(shutil.which(line[0])), tool)) for tool, line in APPLY.items()],
)
@settings(unhurried, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_diff_can_be_applied(tool: str, data: st.DataObject) -> None:
    lives = data.draw(st.dictionaries(names(), st.lists(contents(), min_size=2, max_size=4), min_size=1, max_size=4))
    changes = [row(path, *pair) for path, life in lives.items() for pair in pairwise(life)]
    diff = turn_diff(changes)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write(root, {path: life[0] for path, life in lives.items()})
        if diff is not None:
            done = subprocess.run(
                APPLY[tool], cwd=root, input=diff.encode(), capture_output=True, check=False, timeout=60
            )
            assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace") + diff
        assert _read(root) == {path: life[-1] for path, life in lives.items() if life[-1] is not None}


def _write(root: Path, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        if text is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())


def _read(root: Path) -> dict[str, str]:
    files = (found for found in root.rglob("*") if found.is_file())
    return {str(found.relative_to(root)): found.read_bytes().decode() for found in files}

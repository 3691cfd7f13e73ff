"""Changes are kept as told, within limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.engine.tools.context import (
    MAX_CHANGE_CHARS,
    MAX_CHANGES,
    MAX_PATH_CHARS,
    MAX_TOO_LARGE,
    ChangeCollector,
    FileChange,
    check_change,
)
from brainq.errors import InvalidInput

ANY = st.characters(categories=["L", "N", "P", "Z", "C"])
TEXT = st.none() | st.text(ANY)


def utf8(text: str | None) -> str | None:
    """With pairs of surrogates joined, and the others replaced."""
    return text and text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def collected(*changes: FileChange) -> list[FileChange]:
    collecting = ChangeCollector()
    for change in changes:
        collecting.add(change)
    return collecting.kept


@given(st.text(ANY, min_size=1), TEXT, TEXT)
def test_a_row_says_the_same_and_fits_any_store(path: str, before: str | None, after: str | None) -> None:
    change = check_change(path, before, after)
    row = json.loads(json.dumps(change.row(), ensure_ascii=False).encode())
    assert FileChange.from_row(row) == change
    assert ("before" in row, "after" in row) == (before is not None, after is not None)
    assert (change.path, change.before, change.after) == (utf8(path), utf8(before), utf8(after))


def test_order_and_repeats_are_kept() -> None:
    changes = [
        FileChange("a", None, "1"),
        FileChange("b", "", "x"),
        FileChange("a", "1", "2"),
        FileChange("a", "2", "1"),
    ]
    assert collected(*changes) == changes


def test_past_the_number_only_the_path_is_kept_once() -> None:
    changes = [FileChange("a", str(number), str(number + 1)) for number in range(MAX_CHANGES)]
    more = [FileChange("a", "x", "y"), FileChange("b", "x", "y"), FileChange("a", "y", "z")]
    assert collected(*changes, *more) == [*changes, FileChange("a", too_large=True), FileChange("b", too_large=True)]


def test_past_the_size_only_the_path_is_kept_and_smaller_ones_still_fit() -> None:
    half = "x" * (MAX_CHANGE_CHARS // 2)
    kept = collected(
        FileChange("a", None, half),
        FileChange("b", half, half),
        FileChange("c", None, "small"),
        FileChange("d", half, None),
    )
    assert kept == [
        FileChange("a", None, half),
        FileChange("b", too_large=True),
        FileChange("c", None, "small"),
        FileChange("d", too_large=True),
    ]


def test_paths_without_contents_have_a_limit_too() -> None:
    kept = collected(*(FileChange(str(number), too_large=True) for number in range(MAX_TOO_LARGE + 10)))
    assert len(kept) == MAX_TOO_LARGE


def test_what_was_collected_elsewhere_comes_out_the_same() -> None:
    changes = [FileChange("a", None, "x" * (MAX_CHANGE_CHARS + 1)), FileChange("b", None, "x")]
    once = collected(*changes)
    assert collected(*once) == once


@pytest.mark.parametrize(
    ("path", "before", "after", "field"),
    [
        ("", None, "x", "path"),
        ("x" * (MAX_PATH_CHARS + 1), None, "x", "path"),
        (None, None, "x", "path"),
        ("a", b"x", "x", "before"),
        ("a", "x", 7, "after"),
    ],
)
def test_what_is_no_text_is_refused(path: str, before: str | None, after: str | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_change(path, before, after)
    assert refused.value.field == field

"""A request passes no more functions and files than `lab/house.toml` allows."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lab.bench.walk import WALKS, figures, walk_of
from lab.house import CAPS

WALK_CAPS: dict[str, list[int]] = tomllib.loads(CAPS.read_text())["walks"]


@pytest.mark.parametrize("kind", WALKS)
def test_a_walk_stays_within_its_cap(kind: str, tmp_path: Path) -> None:
    functions, files = figures(walk_of(kind, tmp_path))
    most_functions, most_files = WALK_CAPS[kind]
    assert functions > 20, "the walk was recorded"
    assert (functions <= most_functions, files <= most_files) == (True, True), f"{functions} functions in {files} files"

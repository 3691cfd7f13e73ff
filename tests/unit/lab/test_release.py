"""What `make release` refuses, and what it writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.release import LOCK, ROOT, SUMS, NotReleased, require_equal, run, write_sums


def built(directory: Path, **files: str) -> list[Path]:
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    return sorted(directory.iterdir())


def test_two_builds_must_be_alike(tmp_path: Path) -> None:
    first = built(tmp_path / "first", wheel="one", sdist="two")
    require_equal(first, built(tmp_path / "second", wheel="one", sdist="two"))
    with pytest.raises(NotReleased, match=r"differ: wheel$"):
        require_equal(first, built(tmp_path / "third", wheel="another", sdist="two"))
    with pytest.raises(NotReleased, match=r"differ: sdist$"):
        require_equal(first, built(tmp_path / "fourth", wheel="one"))


def test_sums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    write_sums(built(tmp_path / "dist", wheel="one", sdist="two"), tmp_path / "dist" / SUMS)
    subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=tmp_path / "dist", check=True, capture_output=True)


def test_a_command_that_fails_ends_the_release_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(NotReleased, match="failed:\nbroken"):
        run([sys.executable, "-c", "print('broken'); raise SystemExit(3)"], tmp_path)


def test_the_locks_name_no_index() -> None:
    locks = [ROOT / LOCK, ROOT / "requirements.lock", *(ROOT / "lab/requirements").glob("*.lock")]
    assert len(locks) > 4
    assert [lock.name for lock in locks if "://" in lock.read_text()] == []

"""The files of one revision of this repository, in a directory of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def check_out(revision: str, target: Path) -> Path:
    """Write the revision's files into `target`. Uncommitted files are not included.

    Raises CalledProcessError for a revision that git does not know.
    """
    packed = subprocess.run(["git", "archive", "--format=tar", revision], cwd=ROOT, check=True, capture_output=True)
    target.mkdir(parents=True, exist_ok=True)
    # `tarfile` of Python 3.11.2, which Debian has, knows no filter, and that of later versions warns without one.
    subprocess.run(["tar", "-xf", "-", "-C", target], input=packed.stdout, check=True)
    return target

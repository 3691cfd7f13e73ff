"""Images without a container engine. Debian's buildah builds a Dockerfile and runs commands in the result.

No public image can be pulled on a machine without a registry, so `stand_in_base` makes one of Debian's own Python.
User, files, read-only mounts and environment are real; network and process ids are the machine's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ISOLATION = ("--isolation", "chroot")
BASE = "localhost/brainq-stand-in-python:bookworm"
HERE = os.geteuid() == 0 and all(shutil.which(tool) for tool in ("buildah", "debootstrap"))
"""Whether images can be made on this machine."""

_FOLDER = re.compile(r"(file://)?(/[^\s']+)")
PIP = (Path("/etc/pip.conf"), Path("/etc/ssl/certs"), Path.home() / ".config/pip")


def pip_paths() -> list[Path]:
    """Return the paths of packages and certificates of this machine's pip, also from its settings, which a build
    needs."""
    settings = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    # A folder that is an index (file://.../simple) refers to files beside it.
    named = [Path(path).parent if scheme else Path(path) for scheme, path in _FOLDER.findall(settings.stdout)]
    named = [path for path in named if not any(path.is_relative_to(known) for known in PIP)]
    return [path for path in dict.fromkeys((*PIP, *named)) if path.exists()]


def stand_in_base() -> str:
    """Return an image with `python` and `pip` as in python:3.12-slim, made once per machine. Its Python is Debian's."""
    if _buildah("images", "--quiet", "--filter", f"reference={BASE}"):
        return BASE
    with tempfile.TemporaryDirectory(prefix="bq-base-") as name:
        root = Path(name) / "root"
        packages = "python3,python3-pip,python3-venv,ca-certificates"
        _run("debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(root))
        for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            marker.unlink()
        (root / "usr/bin/python").symlink_to("python3")
        working = _buildah("from", "scratch")
        try:
            _buildah("add", working, str(root), "/")
            _buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", working)
            _buildah("commit", working, BASE)
        finally:
            _buildah("rm", working)
    return BASE


def build(dockerfile: Path, context: Path, name: str) -> None:
    """Build an image from the Dockerfile, but on the stand-in. Existing layers are used."""
    mounts = [part for path in pip_paths() for part in ("-v", f"{path}:{path}:ro")]
    _buildah(
        *("bud", *ISOLATION, "--layers", "--from", stand_in_base(), "-f", str(dockerfile), "-t", name),
        *mounts,
        str(context),
    )


@dataclass(frozen=True, slots=True)
class Container:
    """A container of an image. `volumes`: host:container[:ro]."""

    name: str
    user: str
    volumes: tuple[str, ...]
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """Return the command that runs `arguments` in the container."""
        given = [part for volume in self.volumes for part in ("-v", volume)]
        given += [part for name, value in self.environment.items() for part in ("--env", f"{name}={value}")]
        return ["buildah", "run", *ISOLATION, "--user", self.user, *given, self.name, "--", *arguments]

    def run(self, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False)

    def start(self, arguments: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command(*arguments), stdout=log, stderr=log, start_new_session=True)


def container(image: str, user: str, volumes: Sequence[str], environment: Mapping[str, str]) -> Container:
    """Return a new container, which `remove` removes."""
    return Container(_buildah("from", "--pull-never", image), user, tuple(volumes), dict(environment))


def remove(one: Container) -> None:
    _buildah("rm", one.name)


def _buildah(*arguments: str) -> str:
    return _run("buildah", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()

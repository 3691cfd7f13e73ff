"""Small disks. Each is a tmpfs, which is filled with a file until nothing more fits, and is then freed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

SMALL_DISK_MB = 48
BLOCKS = (b"\0" * 65536, b"\0")


class SmallDisk:
    """A file system of a few megabytes at this directory. `refused` counts how often it was full."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.refused = 0

    def fill(self) -> None:
        """Fill the room that is left. Call it repeatedly, because others may free some of it meanwhile."""
        file = os.open(self._filler, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            for block in BLOCKS:
                self._write_all(file, block)
        finally:
            os.close(file)

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    def _write_all(self, file: int, block: bytes) -> None:
        try:
            while True:
                os.write(file, block)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self.refused += 1

    @property
    def _filler(self) -> Path:
        return self.directory / "filler"


@contextmanager
def small_disk(directory: Path, megabytes: int = SMALL_DISK_MB) -> Generator[SmallDisk]:
    """Mount a small disk inside the block. Then it is unmounted, even if in use, and the directory is removed."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory], check=True)
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "-l", directory], check=True)
        with suppress(OSError):
            directory.rmdir()


def no_small_disk() -> str:
    """Return why a small disk cannot be mounted here, or "" if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a small disk is a tmpfs, which only root may mount, on Linux"
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this container may not mount a tmpfs"

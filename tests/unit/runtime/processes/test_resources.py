"""What a process needs of its machine: each look finds what is missing, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import pytest

from brainq.runtime.processes import resources
from brainq.runtime.processes.resources import find_shortage, is_short_now, is_shortage, writable_directories

PROBE = """
import resource, sys
from pathlib import Path
from brainq.runtime.processes.resources import find_shortage
limit, left = getattr(resource, sys.argv[1]), int(sys.argv[2])
print(find_shortage())
before = resource.getrlimit(limit)
if limit == resource.RLIMIT_AS:
    left += int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(limit, (left, before[1]))
print(find_shortage())
resource.setrlimit(limit, before)
print(find_shortage())
"""


@pytest.mark.parametrize(
    ("limit", "left", "found"),
    [("RLIMIT_NOFILE", 12, "no file descriptors are left"), ("RLIMIT_AS", 1_000_000, "no memory is left")],
)
def test_what_a_limit_leaves_out_is_found_and_found_again_when_it_is_back(limit: str, left: int, found: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROBE, limit, str(left)], capture_output=True, text=True, check=True, timeout=60
    )
    before, short, after = told.stdout.splitlines()
    assert (before, after) == ("", "")
    assert short.startswith(found)


def test_a_thread_that_cannot_be_started_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    assert find_shortage().startswith("no thread can be started")


@pytest.mark.needs(Path("/dev/full").exists(), "/dev/full")
def test_a_full_disk_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_shortage([tmp_path]) == ""

    def full(*_: object, **__: object) -> object:
        return Path("/dev/full").open("wb", buffering=0)

    with monkeypatch.context() as broken:
        broken.setattr("tempfile.TemporaryFile", full)
        assert (
            find_shortage([tmp_path])
            == f"{tmp_path} cannot be written (No space left on device); free space on that disk"
        )
        assert writable_directories([tmp_path]) == (tmp_path,), "there will be room again"
    assert os.listdir(tmp_path) == []


def test_a_directory_that_was_never_written_to_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert writable_directories([tmp_path / "none", tmp_path / "file", tmp_path]) == (tmp_path,)


def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        assert find_shortage([tmp_path]) == ""
    assert len(os.listdir("/proc/self/fd")) == before
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > before


@pytest.mark.parametrize(
    ("failure", "is_one"),
    [
        (OSError(errno.EMFILE, "x"), True),
        (OSError(errno.ENFILE, "x"), True),
        (OSError(errno.ENOSPC, "x"), True),
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("a bug"), False),
        (ConnectionResetError(errno.ECONNRESET, "x"), False),
        (BlockingIOError(errno.EAGAIN, "x"), False),
        (KeyError("x"), False),
    ],
)
def test_which_failures_are_a_shortage(failure: Exception, is_one: bool) -> None:
    assert is_shortage(failure) is is_one
    assert is_shortage(ExceptionGroup("some", [KeyError("x"), failure])) is is_one
    wrapped = URLError(failure)
    wrapped.__cause__ = failure
    assert is_shortage(wrapped) is is_one
    raised_meanwhile = ValueError("x")
    raised_meanwhile.__context__ = failure
    assert is_shortage(raised_meanwhile) is is_one
    raised_meanwhile.__suppress_context__ = True
    assert not is_shortage(raised_meanwhile)


def test_a_shortage_that_is_over_is_not_one_now(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = OSError(errno.EMFILE, "x")
    assert not is_short_now(failure)
    monkeypatch.setattr(resources, "find_shortage", lambda: "no file descriptors are left")
    assert is_short_now(failure)
    assert not is_short_now(KeyError("x"))

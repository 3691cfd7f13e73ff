"""Files of operator's keys."""

from __future__ import annotations

from pathlib import Path

from brainq.contracts.encryption import KeyPlace
from brainq.contrib.encryption.envelope import new_operator_key


def key_file(directory: Path, *names: str, name: str = "content-keys") -> Path:
    """A file of new keys of these names; the first is the current one."""
    path = directory / name
    path.write_text("".join(f"{new_operator_key(each)}\n" for each in names or ("op-1",)))
    return path


def key_place(directory: Path, *names: str) -> KeyPlace:
    """Such a file, and a database of tenants' keys beside it."""
    return KeyPlace(str(key_file(directory, *names)), f"sqlite:///{directory / 'tenants.keys.db'}")

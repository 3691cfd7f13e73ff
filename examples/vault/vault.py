"""The folder of notes: find, read, write, delete, and never leave it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from examples.vault.note import Note, OpenLoop
from examples.vault.ranking import rank

SHIPPED_NOTES = Path(__file__).parent / "notes"
MAX_NOTE_CHARS = 200_000


class VaultError(Exception):
    """A path or a text that the vault does not take; the message says what it would."""


class Vault:
    """Markdown files below `folder`. The folder is read afresh each time, so edits of others show at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def name(self, given: str) -> str:
        """The one spelling of a note's path: relative, with slashes and `.md`.

        Raises VaultError for what is absolute, hidden, or outside the vault, also by way of a symbolic link.
        """
        cleaned = given.strip().removeprefix("[[").removesuffix("]]").replace("\\", "/")
        path = PurePosixPath(cleaned if cleaned.endswith(".md") else f"{cleaned}.md")
        bad = path.is_absolute() or not path.stem or any(part.startswith(".") for part in path.parts)
        if bad or not cleaned.isprintable() or ":" in cleaned:
            raise VaultError(f"{given!r} is not a note's path; use one such as 'projects/garden.md'")
        if not (self.folder / path).resolve().is_relative_to(self.folder):
            raise VaultError(f"{given!r} lies outside the vault")
        return str(path)

    def notes(self) -> list[Note]:
        """All notes, by path."""
        paths = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.md"))
        return [self.read(path) for path in paths if not path.startswith(".") and "/." not in path]

    def read(self, given: str) -> Note:
        """Raises VaultError when there is no such note."""
        name = self.name(given)
        try:
            return Note(name, (self.folder / name).read_text(encoding="utf-8", errors="replace"))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise VaultError(f"there is no note {name!r}; search for it first") from None

    def exists(self, given: str) -> bool:
        return (self.folder / self.name(given)).is_file()

    def write(self, given: str, text: str) -> Note:
        """Replace or create a note. Readers see the old text or the new one, never half of it."""
        name = self.name(given)
        if len(text) > MAX_NOTE_CHARS:
            raise VaultError(f"a note holds at most {MAX_NOTE_CHARS} characters, not {len(text)}; split it")
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=".note-", dir=target.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text if text.endswith("\n") else f"{text}\n")
                file.flush()
                os.fsync(file.fileno())
            os.chmod(scratch, target.stat().st_mode & 0o777 if target.exists() else 0o644)
            os.replace(scratch, target)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
        return Note(name, text)

    def append(self, given: str, text: str) -> Note:
        """Add lines at the end. Safe only while nobody else writes the note: brainq's lane sees to that."""
        old = self.read(given).text if self.exists(given) else ""
        return self.write(given, f"{old.rstrip()}\n{text.strip()}\n" if old.strip() else text)

    def delete(self, given: str) -> Note:
        """Take a note away and return what it held. Raises VaultError when there is none."""
        note = self.read(given)
        (self.folder / note.path).unlink()
        return note

    def search(self, query: str, limit: int) -> list[tuple[Note, float]]:
        """The notes about a query with their scores, best first."""
        return rank(self.notes(), query)[: max(0, limit)]

    def open_loops(self) -> list[OpenLoop]:
        """Every unticked checkbox, by path and line."""
        return [loop for note in self.notes() for loop in note.open_loops]

    def linking_to(self, given: str) -> list[str]:
        """Paths of the notes that link to one."""
        name = self.name(given)
        return [note.path for note in self.notes() if name in note.links and note.path != name]


def open_vault(environment: Mapping[str, str] = os.environ) -> Vault:
    """The vault in VAULT_DIR; without it a copy of the shipped notes, so that trying things out changes nothing here.

    Raises VaultError when VAULT_DIR is not a folder.
    """
    given = environment.get("VAULT_DIR")
    if given:
        if not Path(given).is_dir():
            raise VaultError(f"VAULT_DIR={given!r} is not a folder; set it to the folder of your notes")
        return Vault(Path(given))
    copy = Path(environment.get("BRAINQ_DATA_DIR") or ".brainq") / "vault"
    if not copy.is_dir():
        _copy_notes(copy)
    return Vault(copy)


def _copy_notes(copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="vault-", dir=copy.parent))
    shutil.copytree(SHIPPED_NOTES, scratch, dirs_exist_ok=True)
    try:
        scratch.rename(copy)  # at once: several workers may come here together, and the first one wins
    except OSError:
        shutil.rmtree(scratch)

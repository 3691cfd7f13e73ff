"""The folder of notes: it is never left, and a write is whole or absent."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from examples.vault.note import Note
from examples.vault.vault import MAX_NOTE_CHARS, SHIPPED_NOTES, Vault, VaultError, open_vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    folder = tmp_path / "notes"
    folder.mkdir()
    (tmp_path / "secret.md").write_text("not yours")
    return Vault(folder)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("garden.md", "garden.md"),
        ("garden", "garden.md"),
        ("[[projects/garden]]", "projects/garden.md"),
        ("projects//./garden", "projects/garden.md"),
        ("  v1.2 plans ", "v1.2 plans.md"),
    ],
)
def test_a_note_has_one_name(vault: Vault, given: str, name: str) -> None:
    assert vault.name(given) == name


@pytest.mark.parametrize(
    "given",
    [
        "../secret.md",
        "/etc/passwd",
        "a/../../secret",
        "..",
        "",
        ".md",
        ".git/config",
        "a/.b/c.md",
        "a\\..\\..\\secret",
        "C:/notes.md",
        "a\0b.md",
        "a\nb.md",
        "[[../secret]]",
    ],
)
def test_a_path_that_leaves_the_vault_is_refused_everywhere(vault: Vault, given: str) -> None:
    for use in (vault.read, vault.delete, vault.linking_to, partial(vault.write, text="x")):
        with pytest.raises(VaultError, match=r"note's path|outside"):
            use(given)
    assert list(vault.folder.rglob("*")) == []


def test_a_link_out_of_the_vault_is_refused(vault: Vault, tmp_path: Path) -> None:
    (vault.folder / "door").symlink_to(tmp_path)
    with pytest.raises(VaultError, match="outside"):
        vault.read("door/secret.md")


def test_what_is_written_is_read_again_and_nothing_else_is_left(vault: Vault) -> None:
    vault.write("inbox/new.md", "# New\n")
    vault.append("inbox/new.md", "- more")
    assert vault.read("inbox/new").text == "# New\n- more\n"
    assert [path.name for path in vault.folder.rglob("*") if path.is_file()] == ["new.md"]


def test_a_failed_write_leaves_the_old_text(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.write("a.md", "old")

    def full(_: object, __: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("examples.vault.vault.os.replace", full)
    with pytest.raises(OSError, match="no space"):
        vault.write("a.md", "new")
    assert vault.read("a.md").text == "old\n"
    assert len(list(vault.folder.iterdir())) == 1


def test_a_text_that_is_too_long_is_refused(vault: Vault) -> None:
    with pytest.raises(VaultError, match="split it"):
        vault.write("a.md", "x" * (MAX_NOTE_CHARS + 1))


def test_a_note_that_is_not_there_is_named(vault: Vault) -> None:
    with pytest.raises(VaultError, match=r"no note 'lost\.md'"):
        vault.delete("lost")


def test_open_loops_are_the_unticked_boxes() -> None:
    note = Note("a.md", "# Plan\n\n- [ ] call [[people/ann]]\n- [x] done\n* [ ] two\n")
    assert [(loop.line, loop.text) for loop in note.open_loops] == [(3, "call ann"), (5, "two")]
    assert (note.title, note.links) == ("Plan", ("people/ann.md",))


def test_every_link_in_the_shipped_notes_leads_to_a_note() -> None:
    shipped = Vault(SHIPPED_NOTES)
    notes = shipped.notes()
    assert 12 <= len(notes) <= 18
    assert [(note.path, link) for note in notes for link in note.links if not shipped.exists(link)] == []


def test_without_a_folder_of_ones_own_the_tools_get_a_copy(tmp_path: Path) -> None:
    environment = {"BRAINQ_DATA_DIR": str(tmp_path / "data")}
    open_vault(environment).write("home.md", "changed")
    assert open_vault(environment).read("home.md").text == "changed\n"
    assert (SHIPPED_NOTES / "home.md").read_text() != "changed\n"


def test_a_vault_dir_that_is_no_folder_is_named() -> None:
    with pytest.raises(VaultError, match="VAULT_DIR='/no/such'"):
        open_vault({"VAULT_DIR": "/no/such"})

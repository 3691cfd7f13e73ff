"""The examples' brains in whole turns, in one process."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from brainq import Brain
from brainq.contracts.status import Ending, TraceStatus
from examples.vault.stage import temporary_folder
from examples.vault.vault import Vault
from tests.support.pump import Pump

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "BRAINQ_MODEL")


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    folder = tmp_path / "vault"
    folder.mkdir()
    monkeypatch.setenv("VAULT_DIR", str(folder))
    made = Vault(folder)
    made.write("boat.md", "# Boat\n\n- [ ] paint the hull\n")
    return made


@pytest.fixture
def vault_brain(monkeypatch: pytest.MonkeyPatch) -> Brain:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    app = importlib.import_module("examples.vault.app")
    return importlib.reload(app).brain


def test_a_tool_of_ones_own(pumps: Callable[..., Pump], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_tool = importlib.import_module("examples.own_tool")
    monkeypatch.setattr(own_tool, "LIST", tmp_path / "shopping.txt")
    pump = pumps(own_tool.brain)
    handle = pump.submit("s1", "Put oats on my list")
    result = pump.finish(handle)
    assert (result.text, result.ending, result.tool_calls) == ("Oats are on it.", Ending.COMPLETED, 2)
    assert (tmp_path / "shopping.txt").read_text() == "oats\n"
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert [(entry.tool, entry.lanes) for entry in snapshot.trace] == [
        ("read_list", ()),
        ("add_item", ("shopping-list",)),
    ]


def test_the_first_program(capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module("examples.first").main()
    said = capsys.readouterr().out
    assert "order A1 cost 120" in said
    assert "waits, because refund is a large refund" in said
    assert "120 paid back for A1" in said


def test_a_note_is_one_lane_however_its_path_is_spelled(
    pumps: Callable[..., Pump], vault: Vault, vault_brain: Brain
) -> None:
    pump = pumps(vault_brain)
    handle = pump.submit("s1", "Note down in ./boat.md that the rope is old.")
    result = pump.finish(handle)
    assert "I added a line to “Boat” (./boat.md), which keeps its 1 open loop" in result.text
    assert vault.read("boat").text == "# Boat\n\n- [ ] paint the hull\n- The rope is old.\n"
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert [entry.tool for entry in snapshot.trace if entry.step == 0] == ["retrieve_for_context", "get_context_pack"]
    assert [entry.lanes for entry in snapshot.trace if entry.step > 0] == [(), ("note:boat.md",)]
    assert [citation.source for citation in result.local_citations] == ["boat.md"]


def test_a_path_that_leaves_the_vault_fails_the_call_and_not_the_turn(
    pumps: Callable[..., Pump], vault: Vault, vault_brain: Brain
) -> None:
    pump = pumps(vault_brain)
    handle = pump.submit("s1", "Delete the note ../../secret")
    result = pump.finish(handle)
    assert result.ending is Ending.COMPLETED
    assert result.text.startswith("I deleted nothing.")
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert [entry.status for entry in snapshot.trace if entry.step > 0] == [TraceStatus.FAILED]
    assert [note.path for note in vault.notes()] == ["boat.md"]


def test_the_demos_folder_is_gone_unless_kept() -> None:
    with temporary_folder(keep=False) as folder:
        (folder / "a").write_text("x")
    assert not folder.exists()

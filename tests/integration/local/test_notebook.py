"""The notebook of the examples: its cells run in a kernel, and print what is kept in it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

NOTEBOOK = Path(__file__).parents[3] / "examples" / "notebook.ipynb"


def test_the_cells_print_what_the_notebook_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    shown = nbformat.read(NOTEBOOK, as_version=4)
    ran = nbformat.read(NOTEBOOK, as_version=4)
    sockets = Config({"KernelManager": {"transport": "ipc", "ip": str(tmp_path / "kernel")}})
    NotebookClient(ran, config=sockets, timeout=200, coalesce_streams=True).execute(cwd=str(tmp_path))
    assert [cell.get("outputs") for cell in ran.cells] == [cell.get("outputs") for cell in shown.cells]

"""`brainq db` where there are several cells: it is for the SQL of each, not of home alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from brainq.adapters.sql.store import Store
from brainq.cli.main import app
from brainq.contracts.act import Act
from brainq.errors import SetupError


def acts_in(path: Path) -> tuple[Act, ...]:
    with Store.open(f"sqlite:///{path}") as store:
        return store.acts.list(9)


def test_each_cell_is_upgraded_and_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"{name}.db" for name in ("a", "b", "c")]
    cells = {
        path.stem: {"redis": f"redis://127.0.0.1:{1 + number}/0", "sql": f"sqlite:///{path}"}
        for number, path in enumerate(paths)
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BRAINQ_CELLS", json.dumps(cells))
    upgraded = CliRunner().invoke(app, ["db", "upgrade"])
    assert (upgraded.exit_code, [path.exists() for path in paths]) == (0, [True] * 3)
    for path in paths:
        with Store.open(f"sqlite:///{path}") as store:
            store.acts.add(who="ann", source="cli", act="stop", session_id="", turn_id="", subject="b", reason="a test")
            with store.engine.connect() as connection:
                connection.exec_driver_sql("UPDATE acts SET at = '2020-01-01'")
    paths[1].unlink()

    pruned = CliRunner().invoke(app, ["db", "prune", "--older-than", "30d", "--yes", "--json"])
    assert isinstance(pruned.exception, SetupError)
    assert "cell b: there is no database" in pruned.stderr.replace("\n", " ")
    assert json.loads(pruned.stdout)["rows"]["acts"] == 2
    assert (acts_in(paths[0]), acts_in(paths[2])) == ((), ())

"""The README's own tool is real: it loads, and its schema and effects are what the text says."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

from brainq import Brain, Effect

README = Path(__file__).parents[2] / "README.md"
PROJECT = README.parent / "brainq" / "cli" / "project"


def test_the_own_tools_of_the_readme_are_those_of_a_new_project() -> None:
    written = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert (PROJECT / "app.py").read_text() in written


def test_the_own_tools_of_the_readme_share_their_stock_over_processes(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text((PROJECT / "app.py").read_text())
    brain = runpy.run_path(str(tmp_path / "app.py"))["brain"]
    assert isinstance(brain, Brain)
    assert {name: spec.effect for name, spec in brain.tools.specs.items()} == {
        "count": Effect.READ_ONLY,
        "restock": Effect.LOCAL_WRITE,
    }
    assert "ctx" not in brain.tools.specs["restock"].parameters["properties"]
    restocking = "from app import restock; from types import SimpleNamespace as Context; import sys\n"
    for key, after in (("k1", 8), ("k1", 8), ("k2", 13)):  # the same key is the same order
        code = f"{restocking}print(restock('apples', 5, Context(idempotency_key={key!r})))"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"apples: now {after}\n"
        assert brain.tools["count"].function("apples") == after


def test_every_page_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    missing = [link for link in links if not link.startswith("http") and not (README.parent / link).exists()]
    assert links
    assert not missing

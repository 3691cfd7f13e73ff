"""The README's own tool is real: it loads, and its schema and effects are what the text says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from brainq import Brain, Effect

README = Path(__file__).parents[2] / "README.md"
PEOPLE = README.parent / "docs" / "people.md"


def test_the_own_tool_of_the_readme_loads(tmp_path: Path) -> None:
    (code,) = [
        text
        for text in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        if "# app.py" in text
    ]
    path = tmp_path / "app.py"
    path.write_text(code)
    brain = runpy.run_path(str(path))["brain"]
    assert isinstance(brain, Brain)
    assert {name: spec.effect for name, spec in brain.tools.specs.items()} == {
        "count": Effect.READ_ONLY,
        "restock": Effect.LOCAL_WRITE,
    }
    assert "ctx" not in brain.tools.specs["restock"].parameters["properties"]
    assert brain.tools["count"].function("apples") == 3


def test_the_shop_of_people_md_loads_and_its_other_code_is_whole(tmp_path: Path) -> None:
    shop, *others = re.findall(r"```python\n(.*?)```", PEOPLE.read_text(), re.DOTALL)
    path = tmp_path / "shop.py"
    path.write_text(shop)
    brain = runpy.run_path(str(path))["brain"]
    assert isinstance(brain, Brain)
    assert set(brain.tools.specs) == {"refund", "order", "delegate"}
    assert others
    for code in others:
        compile(code, "people.md", "exec")
        assert "from brainq import" in code


def test_every_page_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    missing = [link for link in links if not link.startswith("http") and not (README.parent / link).exists()]
    assert links
    assert not missing

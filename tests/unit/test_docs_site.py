"""The documentation's site: every page is in it, and every public name has its place on an API page."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

import brainq
import brainq.engine
from brainq import testing

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
needs_docs = pytest.mark.needs(bool(find_spec("mkdocs") and find_spec("griffe")), "what `make docs` installs")


def pages_of(nav: Any) -> list[str]:
    match nav:
        case str():
            return [nav]
        case dict():
            return [page for part in nav.values() for page in pages_of(part)]
        case _:
            return [page for part in nav for page in pages_of(part)]


def test_every_page_is_in_the_sites_contents() -> None:
    site = yaml.safe_load((ROOT / "ops/docs/mkdocs.yml").read_text())
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    listed = pages_of(site["nav"])
    assert len(listed) == len(set(listed))
    assert set(listed) == there


def test_every_public_name_has_its_place_on_one_api_page() -> None:
    told = [name for page in (DOCS / "api").glob("*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)]
    public = {f"brainq.{name}" for name in brainq.__all__ if name != "__version__"}
    scripted = {f"brainq.testing.{name}" for name in testing.__all__}
    engine = {f"brainq.engine.{name}" for name in brainq.engine.__all__}
    assert len(told) == len(set(told))
    assert set(told) - scripted - engine == public - {"brainq.ScriptedProvider"}
    assert set(told) >= scripted | engine


@pytest.mark.full
@needs_docs
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    build: Any = import_module("mkdocs.commands.build")
    config: Any = import_module("mkdocs.config")
    build.build(config.load_config(str(ROOT / "ops/docs/mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    page = (tmp_path / "api/client/index.html").read_text()
    assert "the same key again is the same turn" in page


@pytest.mark.full
@needs_docs
def test_a_docstrings_columns_become_a_list() -> None:
    spec = spec_from_file_location("columns_source", ROOT / "ops/docs/columns.py")
    assert spec is not None
    assert spec.loader is not None
    columns = module_from_spec(spec)
    spec.loader.exec_module(columns)
    text = "One line.\n\nkey    the same\n       again\nlimits   of this turn\nThe rest.\n\n    code   here"
    assert columns.as_lists(text) == (
        "One line.\n\n- **`key`** the same again\n- **`limits`** of this turn\n\nThe rest.\n\n    code   here"
    )

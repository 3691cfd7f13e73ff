"""The documentation's site: every page and public name has its place in it, and every link and path leads somewhere."""

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
    site = yaml.safe_load((ROOT / "lab/docs/mkdocs.yml").read_text())
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    listed = pages_of(site["nav"])
    assert len(listed) == len(set(listed))
    assert set(listed) == there


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = [re.sub(r"\]\([^)]*\)|[`*\[]", "", title) for title in re.findall(r"^#+ (.+)$", text, re.M)]
    made = {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}
    return made | set(re.findall(r'id="([\w-]+)"', text))


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    lost: list[str] = []
    pages = [*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
    for page in [*pages, ROOT / "ops/README.md"]:
        text = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            anchored = target.suffix == ".md" and anchor and "/api/" not in path
            if "://" not in link and not (target.exists() and (not anchored or anchor in headings(target))):
                lost.append(f"{page.relative_to(ROOT)}: {link}")
    assert lost == []


def test_every_path_into_the_docs_that_is_named_anywhere_is_there() -> None:
    tops = [ROOT / name for name in ("brainq", "docs", "examples", "ops", "tests", "workers")]
    files = [path for path in [*ROOT.iterdir(), *(path for top in tops for path in top.rglob("*"))] if path.is_file()]
    named: dict[str, Path] = {}
    for path in files:
        if path.suffix not in {".png", ".pyc", ".lock", ".woff2"}:
            text = path.read_text(errors="ignore")
            named |= dict.fromkeys(re.findall(r"(?<![\w./-])docs/[\w./-]*\w", text), path)
    assert {name: str(path) for name, path in named.items() if not (ROOT / name).exists()} == {}
    assert len(named) > 40


def test_every_public_name_has_its_place_on_one_api_page() -> None:
    told = [
        name
        for page in (DOCS / "reference" / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
    ]
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
    build.build(config.load_config(str(ROOT / "lab/docs/mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    page = (tmp_path / "reference/api/client/index.html").read_text()
    assert "the same key again is the same turn" in page


@pytest.mark.full
@needs_docs
def test_a_docstrings_columns_become_a_list() -> None:
    spec = spec_from_file_location("columns_source", ROOT / "lab/docs/columns.py")
    assert spec is not None
    assert spec.loader is not None
    columns = module_from_spec(spec)
    spec.loader.exec_module(columns)
    text = "One line.\n\nkey    the same\n       again\nlimits   of this turn\nThe rest.\n\n    code   here"
    assert columns.as_lists(text) == (
        "One line.\n\n- **`key`** the same again\n- **`limits`** of this turn\n\nThe rest.\n\n    code   here"
    )

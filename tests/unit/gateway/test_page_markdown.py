"""Markdown of the page: what models write becomes elements, and nothing they write becomes anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.page_modules import NODE, run

pytestmark = pytest.mark.needs(NODE, "node")

READ = """
import { markdown } from "./parts/markdown.js";
told(given.map((text) => {
  const found = { tags: [], links: [], props: [], text: "" };
  (function walk(node) {
    if (typeof node === "string") return (found.text += node);
    found.tags.push(node.tag);
    const plain = Object.entries(node.props).filter(([, value]) => typeof value !== "function");
    found.props.push(...plain.map(([name, value]) => `${node.tag} ${name}=${value}`));
    if (node.props.href) found.links.push(node.props.href);
    node.children.forEach(walk);
  })(markdown(text));
  return found;
}));
"""


def read(directory: Path, *texts: str) -> list[dict[str, Any]]:
    return run(directory, READ, list(texts))


HOSTILE = "\n".join(
    (
        "# Title <b>x</b>",
        "- one **two** `a<b`",
        "1. [here](javascript:alert(1)) and [there](https://example.org/?q=1)",
        "```html",
        "<script>alert(1)</script>",
        "```",
        "",
        "<img src=x onerror=alert(1)> *soft* snake_case_stays",
        "![pixel](https://evil.example/p.png) [data](data:text/html,x) <https://a.example/b>",
        "[ref]: https://hidden.example",
    )
)


def test_marks_become_elements_and_nothing_else_does(tmp_path: Path) -> None:
    (found,) = read(tmp_path, HOSTILE)
    assert set(found["tags"]) <= {*("div", "p", "ul", "ol", "li", "strong", "code", "a", "pre", "em", "button")}
    assert found["links"] == [
        "https://example.org/?q=1",
        "https://evil.example/p.png",
        "https://a.example/b",
        "https://hidden.example",
    ]
    for kept in (
        "<b>x</b>",
        "<script>alert(1)</script>",
        "onerror=alert(1)",
        "javascript:alert(1)",
        "data:text/html,x",
        "snake_case_stays",
    ):
        assert kept in found["text"], kept


def test_a_link_shows_where_it_leads_and_ends_before_the_full_stop(tmp_path: Path) -> None:
    bare, labelled, wrapped = read(
        tmp_path, "See https://example.org/a.", "[docs](https://example.org/b)", "(https://example.org/c)"
    )
    assert (bare["links"], bare["text"]) == (["https://example.org/a"], "See https://example.org/a.")
    assert labelled["text"] == "docs (https://example.org/b)"
    assert wrapped["links"] == ["https://example.org/c"]


def test_tables_tasks_rules_and_struck_text(tmp_path: Path) -> None:
    table, tasks, rule, struck = read(
        tmp_path,
        "| Tree | Price |\n|:--|--:|\n| maple | **84** |",
        "- [x] done\n- [ ] open\n- [link](https://example.org)",
        "a\n\n---\n\nb",
        "~~old~~ new",
    )
    assert [table["tags"].count(tag) for tag in ("table", "th", "td", "strong")] == [1, 2, 2, 1]
    assert "td data-align=right" in table["props"]
    assert [prop for prop in tasks["props"] if prop.startswith("input checked")] == [
        "input checked=true",
        "input checked=false",
    ]
    assert tasks["links"] == ["https://example.org"], "it is no task"
    assert "[" not in tasks["text"]
    assert "hr" in rule["tags"]
    assert "del" in struck["tags"]


def test_headings_differ_and_text_goes_the_way_it_is_written(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "# One\n\n### Three\n\nplain")
    assert [prop for prop in found["props"] if "data-size" in prop or "aria-level" in prop] == [
        "p data-size=1",
        "p aria-level=4",
        "p data-size=3",
        "p aria-level=6",
    ]
    assert found["props"].count("p dir=auto") == 3


def test_deep_and_long_text_is_read_in_bounds(tmp_path: Path) -> None:
    deep, long = read(tmp_path, ">" * 5_000 + " x", "*a " * 30_000)
    assert deep["tags"].count("blockquote") <= 20
    assert long["tags"] == ["div"], "text that is too long stays as it is"


def test_the_same_text_is_the_same_elements(tmp_path: Path) -> None:
    source = """
    import { markdown } from "./parts/markdown.js";
    told([markdown("**a**") === markdown("**a**"), markdown("**a**") === markdown("**b**")]);
    """
    assert run(tmp_path, source, None) == [True, False]

"""What pages say of each other and of the code: figures, settings, links to commands."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


def rows(text: str, heads: str) -> dict[str, list[str]]:
    """The cells of the table that begins with these heads, by their first cell."""
    found: dict[str, list[str]] = {}
    for line in text.split(heads)[1].splitlines()[2:]:
        if not line.startswith("|"):
            break
        first, *others = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        found[first] = others
    return found


def test_the_comparison_has_the_figures_of_the_benchmarks() -> None:
    measured = rows(page("benchmarks.md"), "| system | turns/s | CPU ms a turn | p99 ms, 300 at once | what")
    told = rows(page("why.md"), "| | unit that survives a crash |")
    names = {
        "brainq": "**brainq**",
        "LangGraph": "LangGraph",
        "Temporal (dev server)": "Temporal",
        "Restate": "Restate",
        "DBOS": "DBOS",
        "Celery, blocking": "plain Celery",
    }
    for system, cells in measured.items():
        if system in names:
            figures = [cell.split(" (")[0] for cell in cells[:2]]
            assert told[names[system]][-1] == ", ".join(figures), system
    assert {told[name][-1] for name in ("Hatchet", "Trigger.dev")} == {"not measured"}


def test_each_rival_is_told_by_what_it_does_better() -> None:
    told = re.findall(r"^### (.+)$", page("why.md"), re.M)
    assert len(told) == 7
    for part in page("why.md").split("\n### ")[1:]:
        assert "**What it does better.**" in part
        assert "**What differs.**" in part


def test_each_answer_names_a_command_and_a_page() -> None:
    answers = re.split(r"^### ", page("faq.md"), flags=re.M)[1:]
    assert len(answers) > 20
    for answer in answers:
        symptom = answer.splitlines()[0]
        assert re.search(r"`(brainq \w+|request_key)", answer), symptom
        assert re.search(r"\]\([\w-]+\.md", answer), symptom


def test_the_glossary_is_sorted_and_has_the_words_that_commands_print() -> None:
    words = [re.sub(r"<.*?>", "", word) for word in rows(page("glossary.md"), "| word | is |")]
    assert words == sorted(words)
    assert set(words) >= {
        *("turn", "step", "call", "wave", "lane", "lease", "heartbeat", "session", "effect", "approval"),
        *("hold", "park", "fence", "intent", "unknown", "doorbell", "finalizer"),
    }

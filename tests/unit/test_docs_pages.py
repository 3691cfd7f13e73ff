"""What pages say of each other and of the code: figures, settings, links to commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brainq.app.wiring.preflight import MIN_REDIS_VERSION
from brainq.runtime.settings.deployment import Concurrency, Settings
from brainq.runtime.settings.environment import OTHER_VARIABLES
from brainq.runtime.settings.http import HttpSettings
from lab import words
from lab.mutants.bugs import BUGS
from tests.lua import test_model
from tests.support.model.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOT_MEASURED = ("## The reference turn", "## What is measured", "## Targets", "## Options")


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
    measured = rows(page("reference/benchmarks.md"), "| system | turns/s | CPU ms a turn | p99 ms, 300 at once | what")
    told = rows(page("start/why.md"), "| | unit that survives a crash |")
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


def test_the_oldest_redis_is_one_on_every_page() -> None:
    oldest = {
        version
        for path in (ROOT / "README.md", *DOCS.rglob("*.md"))
        for line in path.read_text().splitlines()
        if "Redis" in line or "redis" in line
        for version in re.findall(r"(?:Redis |older than )(\d+\.\d+)(?: or newer|\+|, or| are)", line)
    }
    assert oldest == {".".join(map(str, MIN_REDIS_VERSION))}


def test_each_rival_is_told_by_what_it_does_better() -> None:
    told = re.findall(r"^### (.+)$", page("start/why.md"), re.M)
    assert len(told) == 7
    for part in page("start/why.md").split("\n### ")[1:]:
        assert "**What it does better.**" in part
        assert "**What differs.**" in part


def test_each_answer_names_a_command_and_a_page() -> None:
    answers = re.split(r"^### ", page("start/faq.md"), flags=re.M)[1:]
    assert len(answers) > 20
    for answer in answers:
        symptom = answer.splitlines()[0]
        assert re.search(r"`(brainq \w+|request_key)", answer), symptom
        assert re.search(r"\]\([\w./-]+\.md", answer), symptom


def test_the_glossary_is_sorted_and_has_the_words_that_commands_print() -> None:
    words = re.findall(r"^- \*\*(.+?)\*\*: ", page("start/glossary.md"), re.M)
    assert words == sorted(words)
    assert set(words) >= {
        *("turn", "step", "call", "wave", "lane", "lease", "heartbeat", "session", "effect", "approval"),
        *("hold", "park", "fence", "intent", "unknown", "doorbell", "finalizer"),
    }


def settings_of(text: str) -> dict[str, list[str]]:
    """The default of each setting that a page lists, by its variable."""
    return {name: [default] for name, default in re.findall(r"^- (`BRAINQ_\w+`) \(([^()]+)\)", text, re.M)}


INTERNAL = {"OWNER_FD", "HTTP_FD", "NAMES_TOLD", "RENEW_FILE"}
"""One process of brainq's tells another by these."""


def test_every_setting_is_in_a_table_with_its_default() -> None:
    told = settings_of(page("operate/operations.md"))
    fields = {
        name: field.default
        for name, field in Settings.model_fields.items()
        if name not in HttpSettings.model_fields and name != "concurrency"
    }
    pools = {f"concurrency__{name}": field.default for name, field in Concurrency.model_fields.items()}
    expected = {f"`BRAINQ_{name.upper()}`": default for name, default in {**fields, **pools}.items()}
    others = {f"`BRAINQ_{name}`" for name in set(OTHER_VARIABLES) - INTERNAL}
    assert set(told) == set(expected) | others
    for name, default in expected.items():
        match default:
            case bool():
                shown = f"`{str(default).lower()}`"
            case int() | float():
                shown = f"{default:.10g}"
            case str() | Path() if str(default):
                shown = f"`{default}`"
            case _:
                continue  # worked out from other things, or nothing
        assert told[name][0] == shown, name


def test_the_promises_counts_are_those_of_the_tests() -> None:
    text = " ".join(page("reference/promises.md").split())
    assert f"in {test_model.SAMPLE:,} seeded random interleavings" in text
    more = test_model.SCHEDULES - test_model.SAMPLE + test_model.FRESH
    assert f"(`make test-full`: {more:,} more" in text
    for count, said in ((len(MUTANTS), r"each of more than (\d+) scripts"), (len(BUGS), r"more than (\d+) bugs")):
        (least,) = re.findall(said, text)
        assert int(least) < count


def test_the_tests_that_a_promise_names_are_there() -> None:
    named = re.findall(r"`([\w/*]+/[\w*]+(?:\.py)?|engine_\w+)`", page("reference/promises.md"))
    folders = {"promises/": "acceptance/promises/", "engine_": "integration/engine/test_engine_"}
    for name in named:
        path = name
        for short, long in folders.items():
            path = path.replace(short, long, 1) if path.startswith(short) else path
        path = path if path.endswith((".py", "/")) or (ROOT / "tests" / path).is_dir() else f"{path}.py"
        assert list((ROOT / "tests").glob(path.rstrip("/"))), name
    assert len(named) > 40


def test_the_tests_that_the_security_page_names_are_there() -> None:
    named = re.findall(r"`((?:unit|integration|acceptance)/[\w/]+\.py)`", page("operate/security.md"))
    assert [name for name in named if not (ROOT / "tests" / name).is_file()] == []
    assert len(named) > 20


@pytest.mark.parametrize("section", re.findall(r"^##+ .+$", page("reference/benchmarks.md"), re.M))
def test_measured_figures_are_dated_and_name_their_build(section: str) -> None:
    text = page("reference/benchmarks.md").split(f"\n{section}\n")[1].split("\n## ")[0].split("\n### ")[0]
    has_figures = re.search(r"^\| .*\d(\.\d+)? ?(ms|s|kB|MB)?\b.* \|$", text, re.M) and section not in NOT_MEASURED
    if has_figures:
        assert re.search(r"[Bb]uild `[0-9a-f]{7}`, \d{1,2} \w+ 20\d\d", text), section


FIRST_SCREEN = 45
"""Lines."""


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("wires/http.md", "Authorization: Bearer"),
        ("operate/operations.md", "brainq doctor"),
        ("operate/fairness.md", "client.submit("),
        ("guides/people.md", "client.approve("),
        ("guides/testing.md", "from brainq.testing import"),
        ("guides/tools.md", "@brain.tool("),
        ("start/why.md", "client.submit("),
    ],
)
def test_a_first_screen_shows_the_smallest_example(name: str, example: str) -> None:
    first = page(name).splitlines()[:FIRST_SCREEN]
    fences = [index for index, line in enumerate(first) if line.startswith("```")]
    assert len(fences) >= 2
    assert fences[0] < 20
    assert any(example in line for line in first)


@pytest.mark.parametrize("path", words.pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_plain_words_and_short_sentences(path: Path) -> None:
    assert words.faults(path) == []

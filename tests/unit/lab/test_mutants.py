"""The list of seeded bugs fits the code: what each changes is there, and so are the tests that must notice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lab.mutants.__main__ import chosen, main
from lab.mutants.bug import Bug
from lab.mutants.bugs import BUGS

ROOT = Path(__file__).parents[3]


def test_each_bug_has_a_name_of_its_own() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_can_be_seeded_and_somebody_is_to_notice(bug: Bug) -> None:
    text = bug.seeded(ROOT)
    if bug.file.endswith(".py"):
        ast.parse(text)
    assert bug.tests
    for named in bug.tests:
        file, _, test = named.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text() if test else (ROOT / file).exists()


def test_a_text_that_stands_elsewhere_by_now_is_said() -> None:
    with pytest.raises(ValueError, match="0 times; it must stand there once"):
        Bug("none", "README.md", "surely not here", "x", ("tests",)).seeded(ROOT)


@pytest.mark.parametrize("words", [["zzz"], ["deadline", "zzz"]])
def test_a_word_that_no_bug_has_is_an_error_that_names_it(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["lab.mutants", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "no bug's name or file holds 'zzz'" in capsys.readouterr().err


def test_words_choose_bugs_by_name_or_file() -> None:
    one, other = (Bug(name, f"brainq/{name}.py", "a", "b", ("tests",)) for name in ("one", "other"))
    assert chosen([one, other], []) == ([one, other], [])
    assert chosen([one, other], ["othe", "x"]) == ([other], ["x"])

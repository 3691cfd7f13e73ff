"""`--help`: commands and options in groups, whole summaries, values named for people; and what `-A` says is wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from brainq.app.access import Verb
from brainq.cli.help import summary_of
from brainq.cli.main import COMMANDS, app
from brainq.cli.options import use_app
from brainq.cli.output import note
from brainq.engine.brain.brains import load_brains
from brainq.errors import BrainNotLoaded, InvalidInput
from brainq.runtime.settings.environment import TYPED_OPTIONS

BRAIN = "from brainq import Brain\nbrain = Brain('a', 'offline:rules', 'Be brief.')\nnumber = 3\n"


def helped(*command: str) -> str:
    return CliRunner().invoke(app, [*command, "--help"]).output


def every_command(group: Any = None, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    main: Any = group or typer.main.get_command(app)
    for name, command in main.commands.items():
        yield (*before, name), command
        if hasattr(command, "commands"):
            yield from every_command(command, (*before, name))


def test_commands_stand_in_groups_each_with_its_whole_summary() -> None:
    said = helped()
    places = [said.index(f"\n{group}:\n") for group in COMMANDS]
    assert places == sorted(places)
    for (name, *inner), command in every_command():
        summary = summary_of(command)
        assert summary, name
        if not inner:
            assert re.search(rf"^  {name} +{re.escape(summary)}$", said, re.MULTILINE), name
    assert "..." not in said.partition("\nBegin:\n")[2]


def test_values_have_names_for_people() -> None:
    for name, _ in every_command():
        said = helped(*name)
        assert not re.search(r"<(str|int|float|list|bool)|x>=|<=x|\{[A-Z]", said), name
        usage = said.partition("\n\n")[0].split("[OPTIONS]")[1]
        assert usage == usage.upper(), name
        assert "[default: (" not in said, name
        assert not re.search(r"--\w+ (ADDRES|STATU|ACCES)\b", said), name


def test_a_token_s_help_names_every_verb() -> None:
    for verb in Verb:
        assert re.search(rf"^ +{verb} ", helped("token"), re.MULTILINE), verb
        assert verb in helped("token", "create").partition("--verb VERB")[2], verb


def test_a_state_that_is_none_is_said_with_the_endings() -> None:
    refused = CliRunner().invoke(app, ["list", "--state", "finished"]).exception
    assert isinstance(refused, InvalidInput)
    assert refused.field == "--state"
    assert "'finished' is not one of queued, active, parked, closing, accepted, ended, rejected" in refused.problem
    assert "completed" in refused.problem


def test_what_a_submit_rarely_needs_comes_last() -> None:
    said = helped("submit")
    assert said.startswith("Usage: brainq submit [OPTIONS] SESSION MESSAGE\n")
    titles = re.findall(r"^(\S.*):$", said, re.MULTILINE)
    assert titles == ["Arguments", "Options", "This turn", "Together with other turns", "Rarely needed"]
    assert len(said.splitlines()) <= 70
    assert "--request-key KEY" in said
    assert "[0 or more]" in " ".join(said.split())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BRAINQ_APP", "")
    monkeypatch.delitem(TYPED_OPTIONS, "BRAINQ_APP", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "pantry", raising=False)
    (tmp_path / "pantry.py").write_text(BRAIN)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "remedy"),
    [("pantry", "-A pantry:brain"), ("a b:c", "-A shop.agent:brain"), ("x:", "-A shop.agent:brain")],
)
@pytest.mark.usefixtures("here")
def test_what_names_no_variable_is_said_with_what_would(given: str, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"-A: {given!r} is not module:variable")) as said:
        use_app(given)
    assert str(said.value).endswith(remedy)


@pytest.mark.parametrize(
    ("given", "wrong", "remedy"),
    [
        ("nowhere:brain", "there is no module 'nowhere' in ", "Run this where nowhere.py is, or name another one"),
        ("pantry:bran", "the module has no 'bran'", "There is pantry:brain"),
        ("pantry:number", "an int is not a Brain", "There is pantry:brain"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_brain_that_is_not_there_is_named_as_it_was_typed(given: str, wrong: str, remedy: str) -> None:
    use_app(given)
    with pytest.raises(BrainNotLoaded) as said:
        load_brains(given)
    text = str(said.value)
    assert text.startswith(f"-A {given}: {wrong}")
    assert remedy in text


def test_a_note_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    note("no -A shop:brain: here, :cat:")
    assert capsys.readouterr().err == "no -A shop:brain: here, :cat:\n"
